"""`tradewind own`: buy or rent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.base.units import format_hours, parse_count, parse_duration
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.economics.own import Answer
    from tradewind.economics.team import Team
    from tradewind.economics.use import Use

_DRAWN_YEARS = 10
"""Hours are drawn for so many years, whatever is asked: another horizon is the same use."""
_SHOWN_SWINGS = 6


@click.command(
    "own",
    cls=Command,
    examples="""
    # a team's recurring work (docs/own.md has the file)
    tradewind own team.yaml --years 3
    # so many GPU-hours a month, always about the same
    tradewind own --on 8xH100-SXM --gpu-hours 20000 \\
        --pattern steady --html own.html
    # what the ledger says was used
    tradewind own --on 8xH100-SXM --store s3://my-runs
    """,
)
@click.argument("file", metavar="[TEAM.yaml]", required=False)
@click.option("--on", metavar="MACHINE", help="The machine to own, e.g. 8xH100-SXM.")
@click.option("--gpu-hours", metavar="N", help="Accelerator-hours a month, instead of a file.")
@click.option(
    "--pattern",
    type=click.Choice(["jobs", "steady", "office"]),
    help="How they come: as jobs at any time, always alike, or in office hours. Default: jobs.",
)
@click.option(
    "--job", metavar="NxTIME", help="Of jobs: accelerators and time of each. Default: 8x12h."
)
@click.option("--store", "url", metavar="URL", help="The use that the ledger of a store tells.")
@click.option("--years", type=int, default=3, show_default=True, help="How long, 1 to 10.")
@click.option("--growth", metavar="SHARE", help="Growth of use, a year, e.g. 20%.")
@click.option("--lease", is_flag=True, help="Lease machines instead of buying them.")
@click.option("--machines", type=int, metavar="N", help="Own exactly so many.")
@click.option(
    "--wait", default="4h", show_default=True, metavar="TIME",
    help="Mean waiting that is allowed where work waits for own machines.",
)  # fmt: skip
@click.option(
    "--site", type=click.Choice(["colo", "room"]), default="colo", show_default=True,
    help="Where own machines stand: in colocation, or in a room of one's own.",
)  # fmt: skip
@click.option(
    "--place", default="USA", show_default=True, metavar="CODE",
    help="Whose electricity: a country (DEU) or a state (US-VA).",
)  # fmt: skip
@click.option("--provider", metavar="GLOB", help="Rent only there.")
@click.option("--region", metavar="GLOB", help="Rent only in these regions.")
@click.option(
    "--market", multiple=True, metavar="NAME",
    help="Rent only so: on_demand, spot, reserved. Repeatable.",
)  # fmt: skip
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE",
    help="Another figure for an input, or a range: NAME=LOW:LIKELY:HIGH. Repeatable.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Of all that is drawn.")
@click.option("--inputs", "show_inputs", is_flag=True, help="Show every input with its source.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--plot", metavar="FILE", help="Draw the answer into FILE.png or .svg.")
@click.option("--html", metavar="FILE", help="Write a page with sliders.")
def command(
    file: str | None, on: str | None, gpu_hours: str | None, pattern: str | None, job: str | None,
    url: str | None, years: int, growth: str | None, lease: bool, machines: int | None, wait: str,
    site: str, place: str, provider: str | None, region: str | None, market: tuple[str, ...],
    settings: tuple[str, ...], seed: int, show_inputs: bool, as_json: bool, plot: str | None,
    html: str | None,
) -> None:  # fmt: skip
    """Buy or rent: what a team's use costs over years, owned, rented, or owned for the base and
    rented for the rest; when owning pays, what waiting it means, and which inputs decide it.

    The use stands in TEAM.yaml, in --gpu-hours, or in the ledger of a --store.
    """
    from tradewind.economics import own, own_figures
    from tradewind.economics.owning import Terms

    if (file is not None) + (gpu_hours is not None) + (url is not None) != 1:
        raise InvalidValue(
            "the use stands in one place: TEAM.yaml, --gpu-hours or --store",
            hint="tradewind own team.yaml (docs/own.md)",
        )
    if (pattern or job) and gpu_hours is None:
        raise InvalidValue("--pattern and --job go with --gpu-hours", hint="leave them out")
    if plot is not None and not plot.lower().endswith((".png", ".svg")):
        raise click.UsageError(f"--plot {plot}: a picture is FILE.png or FILE.svg")
    catalog = catalogs.load()
    team = None if file is None else team_of(file, catalog)
    wanted = on or (team.on if team else "")
    if not wanted:
        raise InvalidValue("on which machine?", hint="--on 8xH100-SXM")
    accelerator, count = catalog.variant(wanted)
    each = int(count or 8)
    use = _use(team, gpu_hours, pattern, job, url, catalog, seed, each)
    question = own.Question(
        use=use,
        accelerator=accelerator.name,
        terms=Terms(years, each, share_of("--growth", growth), lease),
        inputs=own_figures.inputs_for(
            catalog, accelerator.name, each, place=place, site=site, provider=provider,
            region=region, settings=[*(team.settings if team else ()), *settings],
        ),
        wait_h=parse_duration(wait) / 3600,
        machines=machines,
        seed=seed,
        markets=_markets(market),
    )  # fmt: skip
    found = own.answer(question)
    _write(found, plot, html)
    if as_json:
        render.print_json(document(found))
    else:
        _show(found, show_inputs)


def team_of(file: str, catalog: Catalog) -> Team:
    from tradewind.economics import team

    path = Path(file)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NoAccess(f"{path} cannot be read: {error}") from None
    chips: list[str] = []

    def planned(name: str) -> tuple[float, float]:
        return _planned(path.parent / name, catalog, chips[0] if chips else "")

    found = text.partition("on:")[2].split("\n")[0].strip().strip("'\"")
    if found:
        chips.append(found)
    return team.read(text, file, planned)


def _planned(path: Path, catalog: Catalog, on: str) -> tuple[float, float]:
    """Accelerators and hours of a workload's best plan on that chip."""
    from tradewind import workload
    from tradewind.api import planned

    now = clock.now()
    work = workload.load(path, now=now, known=workload.known_names(catalog))
    if on:
        chip, _ = catalog.variant(on)
        limits = replace(work.limits, accelerators=(chip.name,), deadline=None, budget=None)
        work = replace(work, limits=limits)
    best = planned.planner(work, catalog, now=now).plans(explain=False).best
    if best is None:
        raise InvalidValue(f"{path.name} cannot be planned on {on}", hint="tradewind plan says why")
    return float(best.accelerators), best.work_hours


def _use(
    team: Team | None, gpu_hours: str | None, pattern: str | None, job: str | None,
    url: str | None, catalog: Catalog, seed: int, each: int,
) -> Use:  # fmt: skip
    from tradewind.economics import use

    if team is not None:
        return use.of_jobs(team.jobs, _DRAWN_YEARS, seed)
    if url is not None:
        return _history(url, catalog)
    assert gpu_hours is not None
    try:
        hours = parse_count(gpu_hours)
    except InvalidValue as error:
        raise InvalidValue(f"--gpu-hours: {error.message}", hint=error.hint) from None
    if hours <= 0:
        raise InvalidValue("--gpu-hours is 0: nothing is used", hint="legal: 1 or more")
    if pattern in ("steady", "office"):
        if job:
            raise InvalidValue("--job goes with --pattern jobs", hint="leave it out")
        return use.of_pattern(hours, pattern)
    size, length = _job(job or f"{each}x12h")
    one = use.Job("job", size, length, hours / (size * length))
    return use.of_jobs([one], _DRAWN_YEARS, seed)


def _job(text: str) -> tuple[float, float]:
    many, cross, length = text.lower().partition("x")
    try:
        found = float(many), parse_duration(length) / 3600
    except ValueError:
        cross = ""
    if not cross or found[0] <= 0 or found[1] <= 0:
        raise InvalidValue(f"--job {text!r} is not accelerators and a time", hint="8x12h")
    return found


def _history(url: str, catalog: Catalog) -> Use:
    from tradewind import store
    from tradewind.cli.runs.cost import costs_of
    from tradewind.economics import history

    now_s = int(clock.now().timestamp())
    _, costs, troubles = costs_of(store.open(url), (), now_s)
    for run_id, error in troubles:
        render.remark(f"warning: {run_id} is not counted: {error.message}")

    def chips(provider: str, name: str) -> float:
        kind = catalog.instance_types(provider).get(name)
        return kind.accelerator_count if kind else 0.0

    return history.use(costs, chips, now_s)


def share_of(option: str, text: str | None) -> float:
    if text is None:
        return 0.0
    try:
        value = float(text.strip().rstrip("%"))
    except ValueError:
        raise InvalidValue(f"{option}: {text!r} is not a share", hint="20%, or 0.2") from None
    return value / 100 if text.strip().endswith("%") else value


def _markets(given: tuple[str, ...]) -> tuple[str, ...]:
    known = ("on_demand", "spot", "reserved")
    found = [one.strip().replace("-", "_") for text in given for one in text.split(",")]
    for one in found:
        if one not in known:
            raise InvalidValue(f"no market is called {one!r}", hint=f"one of {', '.join(known)}")
    return tuple(found) or known


def _write(found: Answer, plot: str | None, html: str | None) -> None:
    from tradewind.catalog.files import replace as write

    if html is not None:
        from tradewind.web import own_page

        write(Path(html), own_page.render(found, clock.now()).encode())
        render.remark(f"written: {html}")
    if plot is not None:
        from tradewind.pictures import owning

        owning.draw(found, Path(plot), clock.now())
        render.remark(f"drawn: {plot}")


# -- for people ----------------------------------------------------------------------------------


def _show(found: Answer, show_inputs: bool) -> None:
    from tradewind.economics.words import dollars, sentence

    render.paragraph(sentence(found), bold=True)
    _decides(found)
    click.echo()
    _options(found)
    click.echo()
    share, month = found.break_even_share, found.break_even_month
    render.note(
        "Break-even: owning those machines pays "
        + ("at no use of them" if share is None else f"from {share:.0%} use of all hours on")
        + ", against on demand"
        + ("" if month is None else f"; the money is back in month {month:.0f}")
        + "."
    )
    low, _, high = found.spread
    render.note(
        f"Uncertainty: owning is cheaper in {found.chance:.0%} of 2,000 draws of the inputs; it "
        f"costs {dollars(low)} to {dollars(high)} more than renting in eight of ten."
    )
    click.echo()
    _swings(found)
    for note in found.notes:
        render.note(f"{note[:1].upper()}{note[1:]}.")
    if show_inputs:
        click.echo()
        inputs_table(list(found.question.inputs.values()))


def _decides(found: Answer) -> None:
    names = ", ".join(found.deciding)
    if any(swing.decides for swing in found.swings):
        render.paragraph(f"What decides it: {names}. Within their ranges the other way is cheaper.")
    else:
        render.paragraph(f"No single input turns it; {names} moves it most.")


def _options(found: Answer) -> None:
    from tradewind.economics.words import dollars

    columns = [
        Column("WAY", grow=True, keep=9, least=24),
        Column("TOTAL", right=True, keep=9),
        Column("ACCELERATOR-HOUR", right=True, keep=7),
        Column("OWN HOURS", right=True, keep=4),
        Column("WAITING", right=True, keep=8),
        Column("REPLAYED", right=True, keep=3),
    ]
    rows = []
    for one in found.options:
        hours = one.owned_hours + one.rented_hours
        rows.append(
            [
                one.words,
                dollars(one.total),
                f"${one.usd_hour:.2f}",
                f"{one.owned_hours / hours:.0%}" if one.owned_hours else "",
                "" if one.wait_h is None else format_hours(one.wait_h),
                "" if one.wait_replayed_h is None else format_hours(one.wait_replayed_h),
            ]
        )
    render.table(columns, rows)


def _swings(found: Answer) -> None:
    from tradewind.economics.words import dollars

    columns = [
        Column("OWNING LESS RENTING, WHEN", grow=True, keep=9, least=20),
        Column("IS LOW", right=True, keep=9),
        Column("IS HIGH", right=True, keep=9),
        Column("", keep=8),
    ]
    render.table(
        columns,
        [
            [s.name, dollars(s.at_low), dollars(s.at_high), "decides" if s.decides else ""]
            for s in found.swings[:_SHOWN_SWINGS]
        ],
    )


def inputs_table(inputs: list[Any]) -> None:
    from tradewind.economics.words import figure

    columns = [
        Column("INPUT", keep=9),
        Column("LOW", right=True, keep=8),
        Column("LIKELY", right=True, keep=9),
        Column("HIGH", right=True, keep=8),
        Column("UNIT", grow=True, least=6, keep=6),
        Column("AS OF", keep=5),
        Column("SOURCE", grow=True, keep=7),
        Column("DOUBT", grow=True, keep=3),
    ]
    rows = [
        [
            one.name,
            *(figure(value) for value in (one.low, one.typical, one.high)),
            *(one.unit, one.as_of, one.source, one.doubt),
        ]
        for one in inputs
    ]
    render.table(columns, rows)


def document(found: Answer) -> dict[str, Any]:
    """For JSON."""
    from tradewind.economics import inputs

    question = found.question
    return {
        "accelerator": question.accelerator,
        "each": question.terms.each,
        "years": question.terms.years,
        "use": {
            "origin": question.use.origin,
            "hours_month": round(question.use.hours_month, 2),
            "mean": round(question.use.mean, 4),
            "peak": round(question.use.peak, 4),
        },
        "options": [
            {
                "name": one.name,
                "words": one.words,
                "machines": one.machines,
                "total_usd": round(one.total, 2),
                "usd_per_accelerator_hour": round(one.usd_hour, 4),
                "parts_usd": {name: round(value, 2) for name, value in one.parts.items()},
                "owned_hours": round(one.owned_hours, 1),
                "rented_hours": round(one.rented_hours, 1),
                "wait_hours": one.wait_h and round(one.wait_h, 3),
                "wait_replayed_hours": one.wait_replayed_h and round(one.wait_replayed_h, 3),
            }
            for one in found.options
        ],
        "by_machines": [{"machines": n, "total_usd": round(total, 2)} for n, total in found.curve],
        "break_even_share": found.break_even_share and round(found.break_even_share, 4),
        "break_even_month": found.break_even_month and round(found.break_even_month, 2),
        "by_year": [
            {"own_usd": round(own, 2), "rent_usd": round(rent, 2)} for own, rent in found.by_month
        ],
        "chance_own_is_cheaper": round(found.chance, 4),
        "own_less_rent_usd": dict(
            zip(("p10", "p50", "p90"), (round(x, 2) for x in found.spread), strict=True)
        ),
        "swings": [
            {
                "input": s.name,
                "at_low_usd": round(s.at_low, 2),
                "at_high_usd": round(s.at_high, 2),
                "decides": s.decides,
            }
            for s in found.swings
        ],
        "decided_by": list(found.deciding),
        "inputs": inputs.document(list(question.inputs.values())),
        "notes": list(found.notes),
    }
