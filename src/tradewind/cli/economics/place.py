"""`tradewind place`: where one workload belongs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import format_hours, parse_bytes, parse_count
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.plan.plan import constants_of, points_of, workload_of
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.economics.placing import Placed, Verdict

_OF_REQUESTS = ("on", "requests", "seconds", "peak", "latency", "memory", "users", "region",
                "data", "data_at")  # fmt: skip


@click.command(
    "place",
    cls=Command,
    examples="""
    # a training that is done twice a month
    tradewind place work.yaml --runs 2
    # a model that is served
    tradewind place examples/serve-chat/chat.yaml
    # 20,000 requests a day, 2 s of an L4 each
    tradewind place --on L4 --requests 20k --seconds 2 \\
        --users gcp/europe-west3 --latency 3 \\
        --plot place.png
    """,
)
@click.argument("file", metavar="[WORKLOAD.yaml]", required=False)
@click.option("--runs", metavar="N", help="Of a file's work, a month.  [default: 1]")
@click.option("--on", metavar="ACCELERATOR", help="On which a request is measured.")
@click.option("--requests", metavar="N", help="Requests a day.")
@click.option("--seconds", type=float, metavar="S", help="Of that accelerator for a request.")
@click.option("--peak", type=float, metavar="TIMES",
              help="Requests in the fullest hour, by the mean.  [default: 3.0]")  # fmt: skip
@click.option("--latency", type=float, metavar="S", help="Answered within so many seconds.")
@click.option("--memory", metavar="SIZE", help="What model and cache need, e.g. 18GB.")
@click.option("--users", metavar="PLACE", help="The cloud region nearest to users.")
@click.option("--region", metavar="GLOB", help="Only in these regions: residency.")
@click.option("--keep", type=click.Choice(["any", "cloud", "own"]), default="any",
              show_default=True,
              help="Data may be anywhere, on machines for you alone, or yours only.")  # fmt: skip
@click.option("--offline", is_flag=True, help="It must work without a network.")
@click.option("--data", metavar="SIZE", help="Data that must be brought there, e.g. 2TB …")
@click.option("--data-at", metavar="PLACE", help="… and where it lies, e.g. aws/us-east-1.")
@click.option("--cpu-seconds", type=float, metavar="S",
              help="Of 8 cores for a request, or for a file's work, if tried.")  # fmt: skip
@click.option("--api-price", metavar="MONEY",
              help="Of a request or a run at a model API, if there is one.")  # fmt: skip
@click.option("--api-latency", type=float, default=1.0, show_default=True, metavar="S",
              help="Of such an answer.")  # fmt: skip
@click.option("--plot", metavar="FILE", help="Draw the flowchart into FILE.png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: str | None, plot: str | None, as_json: bool, **given: Any) -> None:
    """Where one workload belongs: a cloud machine, spot, a managed service, serverless, a CPU, a
    device at the edge, own machines or a model API; each with its figures and its reason, and from
    how many requests or runs on another one is cheaper.

    The workload is a file's, trained or served, or requests that were measured (--on, --requests
    and --seconds)."""
    if plot is not None and not plot.lower().endswith((".png", ".svg")):
        raise click.UsageError(f"--plot {plot}: a picture is FILE.png or FILE.svg")
    catalog = catalogs.load()
    found = _requests(catalog, given) if file is None else _file(file, catalog, given)
    if plot is not None:
        from tradewind.pictures import flow

        flow.draw(found, Path(plot), clock.now())
        render.remark(f"drawn: {plot}")
    if as_json:
        render.print_json(_document(found))
    else:
        _show(found)
    if found.best is None:
        raise NotFound("nothing keeps every constraint", hint="the table says what each breaks")


def _requests(catalog: Catalog, given: dict[str, Any]) -> Placed:
    from tradewind.economics import placing
    from tradewind.planning.placing import requests

    missing = [f"--{name}" for name in ("on", "requests", "seconds") if given[name] is None]
    if missing:
        raise click.UsageError(
            f"missing {', '.join(missing)}: which workload? Name a file, or say --on, --requests "
            "and --seconds"
        )
    if given["runs"] is not None:
        raise click.UsageError("--runs is of a workload file's work; of requests say --requests")
    data, data_at, memory = given["data"], given["data_at"], given["memory"]
    region, users, seconds = given["region"], given["users"], given["seconds"]
    if (data is None) != (data_at is None):
        raise InvalidValue("--data and --data-at go together", hint="--data 2TB --data-at …")
    chip, _ = catalog.variant(given["on"])
    asked = placing.Asked(
        requests_day=parse_count(given["requests"]), seconds=seconds,
        peak=3.0 if given["peak"] is None else given["peak"], latency_s=given["latency"],
        keep=given["keep"], offline=given["offline"],
        memory_gb=parse_bytes(memory) / 1e9 if memory else 0.0, accelerator=chip.name,
    )  # fmt: skip
    gb = parse_bytes(data) / 1e9 if data else 0.0
    ways = [
        *requests.machines(catalog, chip.name, chip.memory_gb, region, users, gb, data_at),
        *requests.serverless(chip.name, chip.memory_gb, seconds, users, region),
        *requests.own(catalog, chip.name, chip.memory_gb),
        *requests.edge(catalog, chip.name, seconds),
        *requests.cpu(catalog, given["cpu_seconds"], region, users),
        *requests.api(given["api_price"], given["api_latency"]),
    ]
    if not ways:
        raise NotFound(f"nothing is known to run {chip.name} on", hint="another --on or --region")
    return placing.place(asked, ways)


def _file(file: str, catalog: Catalog, given: dict[str, Any]) -> Placed:
    """What is asked and what limits it stands in the file."""
    for name in _OF_REQUESTS:
        if given[name] is not None:
            option = name.replace("_", "-")
            raise InvalidValue(
                f"--{option} is of requests that were measured, and {file} is a workload",
                hint=f"leave --{option} or {file} out; limits and data stand in the file",
            )
    work = workload_of(file, {}, catalog)
    now = clock.now()
    if work.serve is not None:
        from tradewind.planning.placing import served

        for name in ("runs", "cpu_seconds", "api_price"):
            if given[name] is not None:
                raise InvalidValue(
                    f"--{name.replace('_', '-')} is not for a workload that is served",
                    hint="its file has the traffic, and prices of model APIs are known",
                )
        with render.busy("weighing"):
            return served.placed(
                work, catalog, now=now, points=points_of(work), keep=given["keep"],
                offline=given["offline"],
            )  # fmt: skip
    from tradewind.api import planned
    from tradewind.economics import placing
    from tradewind.planning.placing.work import Places

    runs = 1.0 if given["runs"] is None else parse_count(given["runs"])
    places = Places(work, catalog, now=now, constants=constants_of(work), rates=planned.rates())
    with render.busy("weighing"):
        asked = places.asked(runs, given["keep"], given["offline"])
        return placing.place(asked, places.ways(given["api_price"], given["cpu_seconds"]))


# -- the answer ----------------------------------------------------------------------------------


def _show(found: Placed) -> None:
    best, asked = found.best, found.asked
    if best is not None:
        render.paragraph(
            f"{best.way.kind[:1].upper()}{best.way.kind[1:]}: {best.way.words}, "
            f"{_money(best.month)} a month{_each(found, best)}.", bold=True,
        )  # fmt: skip
    if found.crossovers:
        near = [text for text in found.crossovers if best and best.way.kind in text]
        first = (near or list(found.crossovers))[0]
        render.paragraph(f"What decides it: {asked.unit.often}. {first}.")
    else:
        render.paragraph(
            f"What decides it: the constraints; no other number of {_unit(found)} changes it."
        )
    click.echo()
    columns = [
        Column("WHERE", keep=9), Column("WHAT", grow=True, keep=6),
        Column("$ A MONTH", right=True, keep=9),
        Column("TIME" if _is_work(found) else "SECONDS", right=True, keep=8),
        Column("DATA ONCE", right=True, keep=3),
        Column("WHY NOT", grow=True, keep=7), Column("DOUBT", grow=True, keep=2),
    ]  # fmt: skip
    render.table(
        columns,
        [
            [v.way.kind, v.way.words, _cell(v), _time(found, v),
             _once(v), v.why_not, v.way.doubt]
            for v in found.verdicts
        ],
    )  # fmt: skip
    if _is_work(found):
        render.note(f"{asked.often:g} {asked.unit.often}, planned for each place.")
    else:
        told = asked.memory_gb or asked.limit
        render.note(
            f"{asked.busy:.2g} {asked.accelerator} busy on average, {asked.machines} for the "
            "fullest hour." + ("" if told else " Memory is not told, and rules nothing out.")
        )
    click.echo()
    for step in found.path:
        mark = f"yes → {step.to}" if step.yes else "no"
        render.note(f"{step.question} {mark} ({step.answer})")


def _is_work(found: Placed) -> bool:
    from tradewind.economics.placing import RUNS

    return found.asked.unit is RUNS


def _unit(found: Placed) -> str:
    return found.asked.unit.often.split()[0]


def _each(found: Placed, best: Verdict) -> str:
    if _is_work(found):
        return f", {format_hours(best.latency_s / 3600)} a run"
    return "" if found.asked.limit else f", {best.latency_s:.2f} s a request"


def _cell(verdict: Verdict) -> str:
    """Where there is no plan there is no price."""
    return "" if verdict.way.reason else _money(verdict.month).removeprefix("$")


def _once(verdict: Verdict) -> str:
    way = verdict.way
    return _money(way.once) if way.once >= 0.005 and not way.reason else ""


def _money(dollars: float) -> str:
    return f"${dollars:,.0f}" if dollars >= 10 else f"${dollars:,.2f}"


def _time(found: Placed, verdict: Verdict) -> str:
    if verdict.way.reason or found.asked.limit:
        return ""
    if _is_work(found):
        return format_hours(verdict.latency_s / 3600) if verdict.latency_s else ""
    return f"{verdict.latency_s:.2f}"


def _document(found: Placed) -> dict[str, Any]:
    return {
        "best": found.best and found.best.way.kind,
        "busy": round(found.asked.busy, 6),
        "ways": [
            {"kind": v.way.kind, "words": v.way.words,
             "usd_month": None if v.way.reason else round(v.month, 2),
             "latency_s": None if found.asked.limit or v.way.reason else round(v.latency_s, 4),
             "once_usd": round(v.way.once, 2),
             "why_not": v.why_not or None, "source": v.way.source, "doubt": v.way.doubt or None}
            for v in found.verdicts
        ],
        "crossovers": list(found.crossovers),
        "path": [
            {"question": s.question, "answer": s.answer, "yes": s.yes, "to": s.to}
            for s in found.path
        ],
        "decided_by": [_unit(found)] if found.crossovers else ["constraints"],
    }  # fmt: skip
