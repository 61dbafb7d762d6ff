"""`tradewind measure`: a short load against a server, and the points that it gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound, SourceFailed
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.plan import askoptions

if TYPE_CHECKING:
    from tradewind.measure.figures import Figures, Load
    from tradewind.measure.loads import Sent
    from tradewind.measure.prompts import Prompts
    from tradewind.measure.server import Server

_MOST_TOKENS = 10_000_000
_SHARES = (0.5, 0.8)  # of the most requests/s seen, offered as an open loop


@click.command(
    "measure",
    cls=Command,
    examples="""
    # the server on this computer, whatever it serves
    tradewind measure http://localhost:8000/v1
    # for the estimate of your own stack
    tradewind measure http://localhost:8000/v1 \\
      --on 1xH100-SXM --engine vllm --as llama-3.1-8b \\
      --lengths 200:100,2000:200 --out own.csv
    """,
)
@askoptions.of_the_server
@click.option(
    "--lengths",
    default="512:128",
    show_default=True,
    metavar="IN:OUT,…",
    help="Tokens of prompts and of answers.",
)
@click.option(
    "--concurrency",
    default="1,4,16",
    show_default=True,
    metavar="N,…",
    help="Clients at once, each with one request (a closed loop). 0: none of these.",
)
@click.option(
    "--rate",
    metavar="R,…",
    help="Requests a second, at random moments (an open loop). Default: half and four fifths of "
    "the most that the clients have reached. 0: none of these.",
)
@click.option(
    "--requests",
    type=click.IntRange(2, 100_000),
    default=16,
    show_default=True,
    help="At least so many for each load; three for each client.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Take the loads in turn, so often: each meets what else the machine does.",
)
@click.option("--on", metavar="ACCELERATORS", help="What it runs on, e.g. 2xH100-SXM, or cpu.")
@click.option("--engine", metavar="NAME", help="What serves: vllm, sglang, llama.cpp …")
@click.option("--weights", metavar="FORMAT", help="Of the served weights: bf16, fp8, int4 …")
@click.option("--as", "known_as", metavar="MODEL", help="What the estimate calls the model.")
@click.option("--tp", type=click.IntRange(min=1), help="Tensor-parallel degree of the server.")
@askoptions.of_the_requests
@click.option("--out", metavar="FILE", help="Write the points as CSV; a file that is there grows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    url: str,
    model: str | None,
    lengths: str,
    concurrency: str,
    rate: str | None,
    requests: int,
    rounds: int,
    key_env: str,
    timeout: float,
    seed: int | None,
    out: str | None,
    as_json: bool,
    **stack: Any,
) -> None:
    """Throughput, time to the first token and time per token of an OpenAI-compatible server.

    A short load: first so many clients at once, then requests at random moments whether or not
    others were answered. Prompts are random words, none sent twice.
    """
    from tradewind.measure import figures, table
    from tradewind.measure.server import Server

    sizes = [size(text) for text in lengths.split(",")]
    clients = [int(each) for each in _numbers("--concurrency", concurrency, whole=True)]
    rates = None if rate is None else _numbers("--rate", rate)
    columns = _stack(stack)
    known = Path(out) if out else None
    before = table.read(known) if known else []
    draw = clock.generator(seed)
    server = Server(
        url,
        os.environ.get(key_env),
        os.environ,
        timeout_s=timeout,
        connections=max([64, *clients]),
    )
    name = server.choose(model)
    prompts = fitted_prompts(server, name, draw)
    rows: list[dict[str, Any]] = []
    shown: list[Figures] = []

    def take(wanted: list[Load]) -> list[Figures]:
        sent: list[list[Sent]] = [[] for _ in wanted]
        made = []
        for number in range(rounds):
            for load, so_far in zip(wanted, sent, strict=True):
                with render.busy(load.words):
                    so_far.append(_run(server, name, prompts, load, requests, draw))
                if number == rounds - 1:
                    made.append(note(figures.of(load, *so_far)))
        return made

    def note(found: Figures) -> Figures:
        shown.append(found)
        rows.append(figures.row(found, {**columns, "model": columns["model"] or name}))
        if known:  # what was measured so far is not lost if the rest fails
            table.write(known, [*before, *rows])
        if not as_json:
            _line(found, first=len(shown) == 1)
        return found

    busy = take([figures.Load(*size, clients=many) for size in sizes for many in clients])
    offers = _offers(sizes, busy, rates)
    take([figures.Load(*size, rate=each) for size, each in offers if each])
    if not any(found.ttft_ms for found in shown):
        reasons = [reason for found in shown for reason in found.failures]
        raise SourceFailed(
            f"every request to {server.url} failed: {reasons[0] if reasons else 'none was sent'}",
            hint="its log says more; fewer at once: --concurrency 1 --rate 0",
        )
    if as_json:
        render.print_json({"url": server.url, "model": name, "loads": rows})
        return
    _closing(shown, columns, name, out, len(rows))


def _offers(
    sizes: list[tuple[int, int]], busy: list[Figures], rates: list[float] | None
) -> list[tuple[tuple[int, int], float]]:
    """Requests a second by size: those asked for, else shares of the most that clients got."""
    offers = []
    for size in sizes:
        mine = [f.requests_per_s or 0.0 for f in busy if (f.load.input, f.load.output) == size]
        most = max(mine, default=0.0)
        offers += [
            (size, each) for each in (rates if rates is not None else [most * s for s in _SHARES])
        ]
    return offers


def fitted_prompts(server: Server, model: str, draw: Any) -> Prompts:
    """Finds how the server wants to be asked, and how many tokens a word is to it."""
    from tradewind.measure import prompts

    few, many = 40, 120
    with render.busy(f"asking {server.url}"):
        first = server.probe(model, prompts.words(few, draw))
        if first.prompt_tokens is None:
            return prompts.Prompts()
        second = server.ask(model, prompts.words(many, draw), 1, clock.stopwatch())
    if second.error is not None or second.prompt_tokens is None:
        raise SourceFailed(f"{server.url} answered once, and then: {second.error}")
    return prompts.fitted((few, first.prompt_tokens), (many, second.prompt_tokens))


def _run(
    server: Server, model: str, prompts: Prompts, load: Load, requests: int, draw: Any
) -> Sent:
    from tradewind.measure import arrivals, loads

    number = max(requests, 3 * (load.clients or 0))
    texts = [prompts.of(load.input, draw) for _ in range(number)]

    def ask(due_s: float) -> Any:
        return server.ask(model, texts.pop(), load.output, due_s)

    if load.clients:
        return loads.clients(ask, load.clients, number)
    return loads.open_loop(ask, arrivals.poisson(load.rate or 1.0, number, draw))


def size(text: str) -> tuple[int, int]:
    parts = text.split(":")
    if len(parts) != 2 or not all(p.strip().isdigit() and int(p) >= 1 for p in parts):
        raise InvalidValue(
            f"--lengths: {text!r} is not a pair of lengths", hint="for example 512:128,2000:200"
        )
    length, answer = (int(part) for part in parts)
    if max(length, answer) > _MOST_TOKENS or answer < 2:
        raise InvalidValue(
            f"--lengths: {text}", hint=f"answers of 2 tokens or more, at most {_MOST_TOKENS:,}"
        )
    return length, answer


def _numbers(option: str, text: str, *, whole: bool = False) -> list[float]:
    from tradewind.measure.loads import MOST_AT_ONCE

    found = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            raise InvalidValue(f"{option}: {part!r} is not a number", hint="1,4,16") from None
        if not 0 <= value <= MOST_AT_ONCE * (1 if whole else 100) or (whole and value % 1):
            raise InvalidValue(
                f"{option}: {part}",
                hint=f"whole numbers up to {MOST_AT_ONCE}" if whole else "requests a second",
            )
        if value:
            found.append(value)
    return found


def _stack(given: dict[str, Any]) -> dict[str, Any]:
    """The columns that say what was measured, checked as the estimate would."""
    from tradewind.cli.plan import serving
    from tradewind.estimate.serving import engines, formats

    columns: dict[str, Any] = {
        "source": "own", "date": clock.today().isoformat(), "model": "", "accelerator": "",
        "engine": "", "weight_precision": "",
    }  # fmt: skip
    if given["on"]:
        accelerator, count = serving.accelerator(given["on"])
        columns |= {"accelerator": accelerator.name, "n_accelerators": count}
        columns |= {"tp": given["tp"] or count}
    elif given["tp"]:
        raise InvalidValue("--tp without what it is spread over", hint="add --on, e.g. 2xH100-SXM")
    if given["engine"]:
        columns["engine"] = engines.named(given["engine"]).name
    if given["weights"]:
        columns["weight_precision"] = formats.named(given["weights"])
    if given["known_as"]:
        columns["model"] = serving.model(given["known_as"]).name
    return columns


_HEAD = ("LOAD", "IN", "OUT", "TOKENS/S", "FIRST TOKEN ms", "EACH FURTHER ms", "FAILED")
_WIDTHS = (16, 6, 6, 9, 15, 16, 7)


def _line(found: Figures, *, first: bool) -> None:
    if first:
        click.echo(_row(_HEAD))
    load = found.load
    cells = (
        f"{load.clients} at once" if load.clients else f"{load.rate:.3g}/s",
        digits(found.input_len),
        digits(found.output_len),
        digits(found.output_tokens_per_s),
        _two(found.ttft_ms),
        _two(found.tpot_ms),
        str(sum(found.failures.values()) or ""),
    )
    click.echo(_row(cells))


def _row(cells: tuple[str, ...]) -> str:
    first, *others = (
        cell.ljust(wide) if not place else cell.rjust(wide)
        for place, (cell, wide) in enumerate(zip(cells, _WIDTHS, strict=True))
    )
    return "".join([first, *others]).rstrip()


def _two(values: dict[str, float]) -> str:
    return f"{digits(values['p50'])}, {digits(values['p99'])}" if values else "–"


def digits(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _closing(
    shown: list[Figures], columns: dict[str, Any], name: str, out: str | None, number: int
) -> None:
    render.note("latencies: median, and 99 of 100 are below the second")
    reasons = {reason: 0 for found in shown for reason in found.failures}
    for found in shown:
        for reason, times in found.failures.items():
            reasons[reason] += times
    for reason, times in reasons.items():
        render.remark(f"{render.count(times, 'request')} failed: {reason}")
    if any(found.saturated for found in shown):
        render.remark("the server fell behind so far that not all of a load was sent")
    late = max(found.late_ms for found in shown)
    if late > 0.1 * max(min(f.ttft_ms["p50"] for f in shown if f.ttft_ms), 50.0):
        render.remark(f"requests were sent up to {late:.0f} ms late: this computer is too busy")
    if not all(found.counted for found in shown):
        render.remark("the server does not count tokens: each event is taken as one")
    if not out:
        return
    click.echo(f"{render.count(number, 'point')} → {out}")
    lacking = [
        option
        for option, column in (("--on", "accelerator"), ("--engine", "engine"))
        if not columns[column]
    ]
    if lacking:
        render.remark(f"for estimates the file must say more: measure with {', '.join(lacking)}")
    if not columns["model"]:
        from tradewind.estimate.serving import served

        try:
            served.find(name)
        except (NotFound, InvalidValue):
            render.remark(f"the estimate does not know {name!r}: --as says what it is")
