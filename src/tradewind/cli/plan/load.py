"""`tradewind load`: an open-loop load on a server, and how it was answered."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base import clock
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.plan import askoptions

if TYPE_CHECKING:
    from tradewind.measure.figures import Figures
    from tradewind.measure.goodput import Goodput, Targets

_MOST_REQUESTS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Due:
    """A request to come: seconds from the beginning, tokens in and out."""

    at: float
    input: int
    output: int


@click.command(
    "load",
    cls=Command,
    examples="""
    # 20 requests/s at random moments, for five minutes
    tradewind load http://localhost:8000/v1 --rate 20 \\
      --duration 5m --ttft 500ms --tpot 50ms
    # as a trace has them, at 3 requests/s on average
    tradewind load http://localhost:8000/v1 --rate 3 \\
      --trace requests.csv --duration 10m
    """,
)
@askoptions.of_the_server
@click.option(
    "--rate",
    type=click.FloatRange(0.001, 10_000),
    metavar="R",
    help="Requests a second. Default: 1, or the trace's own.",
)
@click.option(
    "--duration",
    metavar="TIME",
    help="How long requests are sent. Default: 60s, or the whole trace.",
)
@click.option(
    "--arrivals",
    type=click.Choice(["poisson", "constant"]),
    default="poisson",
    show_default=True,
    help="At random moments, or evenly.",
)
@click.option(
    "--trace",
    metavar="FILE",
    help="Arrivals and lengths from a CSV file: t_s, input_tokens, output_tokens.",
)
@click.option(
    "--lengths",
    default="512:128",
    show_default=True,
    metavar="IN:OUT",
    help="Tokens of prompts and of answers, without --trace.",
)
@click.option("--ttft", metavar="TIME", help="Target for the first token, e.g. 500ms.")
@click.option("--tpot", metavar="TIME", help="Target for each further token, e.g. 50ms.")
@click.option("--e2e", metavar="TIME", help="Target for a whole request, e.g. 10s.")
@askoptions.of_the_requests
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    url: str, model: str | None, rate: float | None, duration: str | None, arrivals: str,
    trace: str | None, lengths: str, key_env: str, timeout: float, seed: int | None,
    as_json: bool, **wanted: Any,
) -> None:  # fmt: skip
    """Open-loop load on an OpenAI-compatible server: latency percentiles, goodput, errors.

    Each request is sent when it is due, whether or not others were answered, and latency counts
    from then: a server that falls behind cannot slow down who measures it.
    """
    from tradewind.cli.plan.measure import fitted_prompts
    from tradewind.measure import figures, goodput, loads
    from tradewind.measure.server import Reply, Server

    targets = _targets(wanted)
    draw = clock.generator(seed)
    due, seconds = _due(rate, duration, arrivals, trace, lengths, draw)
    key = os.environ.get(key_env)
    most = loads.MOST_AT_ONCE
    server = Server(url, key, os.environ, timeout_s=timeout, connections=min(most, len(due)))
    name = server.choose(model)
    prompts = fitted_prompts(server, name, draw)
    texts = deque((prompts.of(each.input, draw), each.output) for each in due)

    def ask(due_s: float) -> Reply:
        text, tokens = texts.popleft()
        return server.ask(name, text, tokens, due_s)

    whole = figures.Load(
        round(sum(each.input for each in due) / len(due)),
        round(sum(each.output for each in due) / len(due)),
        rate=len(due) / seconds,
    )
    with render.busy(f"{render.count(len(due), 'request')} in {seconds:.0f} s"):
        sent = loads.open_loop(ask, [each.at for each in due])
    found = figures.of(whole, sent)
    good = goodput.of(targets, sent.replies, len(due), seconds)
    if as_json:
        render.print_json(_values(server.url, name, found, good, targets))
    else:
        _show(found, good, targets)


def _targets(wanted: dict[str, str | None]) -> Targets:
    from tradewind.cli.plan.serving import target
    from tradewind.measure.goodput import Targets

    return Targets(*(target(f"--{name}", wanted[name]) for name in ("ttft", "tpot", "e2e")))


def _due(
    rate: float | None, duration: str | None, how: str, trace: str | None, lengths: str, draw: Any
) -> tuple[list[_Due], float]:
    """What is sent, and over how many seconds."""
    from tradewind.base.units import parse_duration
    from tradewind.cli.plan.measure import size
    from tradewind.measure import arrivals

    within_s = parse_duration(duration) if duration is not None else None
    if within_s is not None and within_s < 1:
        raise InvalidValue(f"--duration: {duration} is less than a second", hint="--duration 60s")
    if trace is not None:
        return _traced(Path(trace).expanduser(), rate, within_s)
    tokens = size(lengths)
    rate, within_s = rate or 1.0, within_s or 60
    if rate * within_s > _MOST_REQUESTS:
        raise InvalidValue(
            f"{rate:g} requests/s for {within_s} s are more than {_MOST_REQUESTS:,}",
            hint="a lower --rate, or a shorter --duration",
        )
    if how == "constant":
        moments = arrivals.constant(rate, within_s)
    else:
        moments = arrivals.poisson_within(rate, within_s, draw) or [0.0]
    return [_Due(moment, *tokens) for moment in moments], float(within_s)


def _traced(path: Path, rate: float | None, within_s: int | None) -> tuple[list[_Due], float]:
    from tradewind.base import requesttrace
    from tradewind.measure import arrivals

    requests = sorted(requesttrace.read(path))
    if not requests:
        raise BadFile(f"{path} has no requests", hint=", ".join(requesttrace.COLUMNS))
    moments = arrivals.stretched([each.at for each in requests], rate)
    found = [
        _Due(moment, round(each.input), max(round(each.output), 1))
        for moment, each in zip(moments, requests, strict=True)
        if within_s is None or moment < within_s
    ]
    if len(found) > _MOST_REQUESTS:
        raise InvalidValue(f"{path} has {len(found):,} requests", hint="a shorter --duration")
    return found, max(found[-1].at, 1.0)


def _values(
    url: str, model: str, found: Figures, good: Goodput, targets: Targets
) -> dict[str, Any]:
    return {
        "url": url,
        "model": model,
        "requests": good.due,
        "sent": found.requests,
        "seconds": round(good.seconds, 3),
        "offered_requests_per_s": _round(found.load.rate),
        "input_tokens": _round(found.input_len),
        "output_tokens": _round(found.output_len),
        "output_tokens_per_s": _round(found.output_tokens_per_s),
        **{
            kind: {name: round(value, 3) for name, value in values.items()}
            for kind, values in (
                ("ttft_ms", found.ttft_ms), ("tpot_ms", found.tpot_ms), ("e2e_ms", found.e2e_ms),
            )
        },
        "targets_ms": {
            name: None if value is None else round(1e3 * value, 3)
            for name, value in (
                ("ttft", targets.ttft_s), ("tpot", targets.tpot_s), ("e2e", targets.e2e_s),
            )
        },
        "good": good.good,
        "attainment": round(good.attainment, 6),
        "goodput_requests_per_s": round(good.requests_per_s, 4),
        "errors": found.failures,
        "late_ms": round(found.late_ms, 3),
        "broken_off": found.saturated,
    }  # fmt: skip


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _show(found: Figures, good: Goodput, targets: Targets) -> None:
    from tradewind.cli.plan.measure import digits

    failed = sum(found.failures.values())
    click.echo(
        f"{render.count(found.requests, 'request')} in {good.seconds:.0f} s "
        f"({found.load.rate:.3g}/s), {found.requests - failed} answered, {failed} failed"
    )
    if found.output_tokens_per_s:
        click.echo(
            f"{found.output_tokens_per_s:,.0f} tokens/s out; a request has "
            f"{found.input_len:,.0f} in, {found.output_len:,.0f} out"
        )
    limits = {"first token": targets.ttft_s, "each further": targets.tpot_s}
    limits |= {"whole request": targets.e2e_s}
    rows = (found.ttft_ms, found.tpot_ms, found.e2e_ms)
    click.echo(f"{'milliseconds':<14}{'p50':>10}{'p90':>10}{'p99':>10}{'mean':>10}{'target':>10}")
    for (name, limit), values in zip(limits.items(), rows, strict=True):
        cells = [digits(values.get(each)) for each in ("p50", "p90", "p99", "mean")]
        cells.append("" if limit is None else digits(1e3 * limit))
        click.echo((f"{name:<14}" + "".join(f"{cell:>10}" for cell in cells)).rstrip())
    inside = "within all targets" if any(map(bool, limits.values())) else "answered"
    click.echo(
        f"goodput {good.requests_per_s:.3g} requests/s: {good.good} of {good.due} {inside} "
        f"({100 * good.attainment:.1f} %)"
    )
    for reason, times in found.failures.items():
        render.remark(f"{render.count(times, 'request')} failed: {reason}")
    if found.saturated:
        from tradewind.measure.loads import MOST_AT_ONCE

        render.remark(
            f"{MOST_AT_ONCE} requests waited at once: the load was broken off, and "
            f"{good.due - found.requests} were not sent (they count as missed)"
        )
    if found.late_ms > 50:
        render.remark(
            f"requests were sent up to {found.late_ms:.0f} ms late: this computer is too busy"
        )
    if not found.counted and found.requests > failed:
        render.remark("the server does not count tokens: each event is taken as one")
