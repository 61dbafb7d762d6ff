"""`tradewind estimate --serve` of a model that does not generate text."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import InvalidValue
from tradewind.base.units import parse_count
from tradewind.cli import render
from tradewind.cli.plan import serveparts

if TYPE_CHECKING:
    from tradewind.estimate.serving.onepass import Answer
    from tradewind.model import Accelerator
    from tradewind.model.shape import Shape, Work

# What means nothing where a request is one pass on one accelerator.
_OTHERS = (
    "tp", "pp", "cache", "cv", "ttft", "tpot", "e2e", "adapters", "speculate", "accept", "draft",
    "prefix_cached", "lora",
)  # fmt: skip


def answer(
    model: Shape | Work,
    chip: Accelerator,
    count: int,
    measured: str | None,
    given: dict[str, Any],
    as_json: bool,
) -> None:
    from tradewind.estimate.serving.onepass import Question, ask

    said = [name.replace("_", "-") for name in _OTHERS if given[name] is not None]
    said += ["measured"] if measured is not None else []
    said += ["dp-attention"] if given["dp_attention"] else []
    for name in said:
        raise InvalidValue(
            f"--{name} is about models that generate text, and {model.name} does not",
            hint="leave it out",
        )
    if given["rate"] is not None and given["concurrency"] is not None:
        raise InvalidValue(
            "--concurrency and --rate are both given",
            hint="clients that wait for their answer, or requests that arrive: one of them",
        )
    found = ask(
        Question(
            model=model,
            accelerator=chip,
            count=count,
            input=_tokens("--input", given["input_tokens"]),
            output=_tokens("--output", given["output_tokens"]),
            steps=given["steps"],
            concurrency=given["concurrency"] or 1,
            rate=given["rate"],
            engine=given["engine"],
            weights=given["weights"],
        )
    )
    if as_json:
        render.print_json(asdict(found))
        return
    _show(found, given["rate"])


def _tokens(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_count(text, noun="tokens")
    except InvalidValue as error:
        raise InvalidValue(f"{option}: {error.message}", hint=error.hint) from None


def _show(found: Answer, rate: float | None) -> None:
    serveparts.title(found)
    render.paragraph(f"a request: {found.request}; {_digits(found.gflops)} GFLOPs", indent="  ")
    for text in found.notes:
        render.note(text)
    serveparts.memory(found)
    if not found.fits:
        click.secho("does not fit: no room for one request", fg="red", bold=True)
        render.note("smaller --weights, or an accelerator with more memory")
        return
    click.echo(f"  room for {render.count(found.most_at_once, 'request')} at once on each\n")
    if not found.stable:
        click.secho("overloaded: the queue only grows", fg="red", bold=True)
        render.note(f"at most {_digits(found.most_requests_per_s)} requests a second")
        return
    mean, late = (found.latency_ms[name] or 0.0 for name in ("mean", "p99"))
    low, high = (_digits(each["latency_ms"]) for each in (found.low, found.high))
    click.echo(f"latency       {_digits(mean):>8} ms ({low} to {high} in 4 of 5 cases)")
    if rate is None:
        low, high = (_digits(each["requests_per_s"]) for each in (found.low, found.high))
        speed = _digits(found.requests_per_s)
        click.echo(f"requests      {speed:>8} a second ({low} to {high} in 4 of 5 cases)")
    else:
        click.echo(f"p99           {_digits(late):>8} ms")
        load = rate / found.most_requests_per_s
        click.echo(f"load          {load:>8.0%} of what it can take")
    click.echo(f"batch         {_digits(found.batch):>8} on each accelerator")
    click.echo(f"at most       {_digits(found.most_requests_per_s):>8} a second, in large batches")
    render.note(f"the range: {found.band}")


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")
