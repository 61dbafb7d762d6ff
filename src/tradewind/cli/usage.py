"""What click says of a wrong command line, where that can be said more plainly."""

from __future__ import annotations

import click

_PLAINER = {
    "is not a valid integer range": "is not a whole number",
    "is not a valid float range": "is not a number",
    "is not a valid integer": "is not a whole number",
    "is not a valid float": "is not a number",
}


def show(error: click.ClickException) -> None:
    _plainer(error).show()
    hint = _hint(error)
    if hint:
        click.echo(f"hint: {hint}", err=True)


def _plainer(error: click.ClickException) -> click.ClickException:
    if type(error) is not click.BadParameter:
        return error
    text = error.message
    for theirs, ours in _PLAINER.items():
        text = text.replace(theirs, ours)
    return click.BadParameter(text, error.ctx, error.param, error.param_hint)


def _hint(error: click.ClickException) -> str | None:
    param = error.param if isinstance(error, click.MissingParameter) else None
    if param is None:
        return None
    if param.secondary_opts:
        return f"say {param.opts[0]} or {param.secondary_opts[0]}"
    if param.name == "run":
        return "`tradewind ps --all` lists the runs"
    return None
