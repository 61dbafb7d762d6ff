"""`tradewind verify`: whether a training script resumes to the bit, tried by killing it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.torch.verify.compare import Compared
    from tradewind.torch.verify.lives import Life


@click.command(
    "verify",
    cls=Command,
    examples="""
    # kill train.py in its first 24 steps, and resume it
    tradewind verify train.py
    # with its own arguments, on two ranks
    tradewind verify train.py --ranks 2 -- --batch-size 8
    """,
)
@click.argument("script", metavar="SCRIPT")
@click.argument("arguments", metavar="[-- ARGUMENTS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--steps", type=click.IntRange(4, 100_000), default=24, show_default=True, help="To compare."
)
@click.option(
    "--ranks", type=click.IntRange(1, 64), default=1, show_default=True, help="By torchrun."
)
@click.option(
    "--timeout",
    type=click.FloatRange(1, 86_400),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="For each start of the script.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    script: str,
    arguments: tuple[str, ...],
    steps: int,
    ranks: int,
    timeout: float,
    as_json: bool,
) -> None:
    """Kill a training script, resume it, and see whether it comes to the same bits.

    It is run for some steps twice: undisturbed; and saved, killed, resumed, asked to end, resumed.

    Weights, averages of them, optimizers, the order of the data, random numbers, learning rates and
    metrics are compared after each step, to the bit; files that the script writes are not. What
    differs is said, with its likely cause, and what these steps did not reach.
    Checkpoints go to a folder that is removed afterwards; what else the script writes, it writes.
    Exit code 1: something differs, or the session refuses the script.
    """
    path = Path(script)
    if not path.is_file():
        raise NotFound(f"there is no script {script!r}", hint="give the path of a Python file")
    with tempfile.TemporaryDirectory(prefix="tradewind-verify-") as folder:
        result = _tried(path, list(arguments), Path(folder), steps, ranks, timeout)
    if as_json:
        render.print_json(result)
    else:
        _show(path, result)
    if not result["same"]:
        raise click.exceptions.Exit(1)


def _tried(
    script: Path, arguments: list[str], folder: Path, steps: int, ranks: int, timeout_s: float
) -> dict[str, Any]:
    from tradewind.torch.verify import compare, lives

    def say(words: str) -> None:
        click.echo(f"{script.name} {words}", err=True)

    start = lives.by_python(script, arguments, ranks, timeout_s)
    undisturbed = lives.whole(start, folder, steps, say=say)
    if undisturbed.refused:
        return _result(refused=undisturbed.refused)
    _check(undisturbed, script)
    steps = undisturbed.steps
    broken = lives.broken(start, folder, steps, say=say)
    for life in broken:
        if life.refused:
            return _result(refused=life.refused, warnings=_warnings(broken))
    if len(broken) == 1:
        raise _unsaved(script, steps, broken[0])
    if broken[-1].code != 0:
        raise InvalidValue(
            f"{script.name} was resumed and failed (exit code {broken[-1].code}):"
            f" {broken[-1].last()}",
            hint="run it by hand, end it in the middle (Ctrl-\\) and start it again",
        )
    compared = compare.compare(undisturbed.rows, compare.rows_of(broken))
    repeats = None
    if any(each.first is not None for each in compared):
        again = lives.whole(start, folder, steps, "again", say=say)
        once_more = compare.compare(undisturbed.rows, again.rows)
        repeats = all(each.first is None for each in once_more)
    return _result(
        compared=compared,
        causes=compare.causes(compared, repeats),
        warnings=_warnings(broken),
        steps=steps,
        untried="; ".join(compare.untried(undisturbed.rows)),
    )


def _unsaved(script: Path, steps: int, life: Life) -> InvalidValue:
    from tradewind.torch.verify.lives import ENOUGH

    words = f"{script.name} saved nothing in {steps} steps, so it could not be killed after a save"
    if life.waited_for and steps < ENOUGH:
        return InvalidValue(
            f"{words}: a gradient of {life.waited_for} is there after each of them, as if it were"
            " accumulated, and a save waits for it for 64 steps",
            hint=f"--steps {ENOUGH}; or clear such gradients at the end of the step"
            " (zero_grad(set_to_none=True))",
        )
    return InvalidValue(words, hint=f"try more: --steps {max(2 * steps, ENOUGH)}")


def _check(life: Life, script: Path) -> None:
    from tradewind.torch.verify.lives import LEAST

    if life.code != 0:
        raise InvalidValue(
            f"{script.name} failed by itself (exit code {life.code}): {life.last()}",
            hint="run it without verify first; its arguments go after --",
        )
    if life.steps < LEAST:
        raise InvalidValue(
            f"{script.name} made {life.steps} steps of a session, and {LEAST} are needed",
            hint="it has to train with tw.session(…), or with one of the frameworks' lines, and to"
            " call session.step(): docs/torch.md",
        )


def _result(
    compared: list[Compared] | None = None,
    causes: list[str] | None = None,
    warnings: list[str] | None = None,
    refused: str = "",
    steps: int = 0,
    untried: str = "",
) -> dict[str, Any]:
    same = bool(compared) and not refused and all(each.first is None for each in compared or ())
    rows = [
        {"what": each.what, "count": each.count, "differs_from": each.first, "words": each.words}
        for each in compared or ()
    ]
    return {
        "same": same,
        "steps": steps,
        "refused": refused,
        "compared": rows,
        "causes": causes or [],
        "warnings": warnings or [],
        "untried": untried,
    }


def _warnings(lives: list[Life]) -> list[str]:
    return list(dict.fromkeys(words for life in lives for words in life.warnings))


def _show(script: Path, result: dict[str, Any]) -> None:
    if result["refused"]:
        click.echo(f"{script.name} cannot be resumed bit-exact; the session warns:")
        click.echo(f"  {result['refused']}")
        return
    for row in result["compared"]:
        first = row["differs_from"]
        of = "batches" if row["what"] == "data" else "steps"
        if not row["count"]:
            verdict = "no loader"
        elif first is None:
            verdict = f"the same in {row['count']} {of}"
        else:
            verdict = f"differs from {of[:-2] if of == 'batches' else of[:-1]} {first} on"
            verdict += f": {row['words']}" if row["words"] else ""
        click.echo(f"{row['what']:<16}{verdict}")
    for words in result["warnings"]:
        click.echo(f"warning: {words}")
    for words in result["causes"]:
        click.echo(f"likely: {words}")
    if result["untried"]:
        click.echo(f"not tried: {result['untried']}")
    click.echo(
        f"{script.name} resumes bit-exact"
        if result["same"]
        else f"{script.name} does not resume bit-exact"
    )
