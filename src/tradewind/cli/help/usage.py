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
    if isinstance(error, click.NoSuchOption):
        return _other_name(error)
    param = error.param if isinstance(error, click.MissingParameter) else None
    if param is None:
        return None
    if param.secondary_opts:
        return f"say {param.opts[0]} or {param.secondary_opts[0]}"
    if param.name == "run":
        return "`tradewind ps --all` lists the runs"
    return None


def _other_name(error: click.NoSuchOption) -> str | None:
    """The option that says what this one would, or the field of the file. click itself compares
    letters, and has no idea of meanings."""
    from tradewind.workload import synonyms

    meant = synonyms.place_of(error.option_name)
    if meant is None or error.ctx is None:
        return None
    for param in error.ctx.command.params:
        for option in param.opts:
            if (
                option.startswith("--")
                and (place := synonyms.place_of(option))
                and place.path == meant.path
            ):
                return None if option in (error.possibilities or ()) else f"it is {option} here"
    if any(param.name == "file" for param in error.ctx.command.params):
        return f"the workload file says it: {meant.path}" + (f": {meant.how}" * bool(meant.how))
    return None
