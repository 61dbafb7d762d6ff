"""`tradewind schedule`: when to run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import parse_duration
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.economics.hours import Cell, Choice, Hour
    from tradewind.model.windows import Window

_SHOWN = 5
_WEEKS = 2


@click.command(
    "schedule",
    cls=Command,
    examples="""
    # by what spot machines cost and when they were there
    tradewind schedule --trace t.csv --prices p.csv
    # by the tariff of one's own site
    tradewind schedule --power 0.2 --tariff 22:00-06:00=0.1
    # by what runs of this store met with
    tradewind schedule --store s3://bucket --on 'p5.*'
    """,
)
@click.option(
    "--hours", "work", default="8h", show_default=True, metavar="TIME", help="Length of the work."
)
@click.option("--trace", metavar="FILE", help="Observed spot capacity: a CSV of series.")
@click.option("--prices", metavar="FILE", help="Spot prices of the same series.")
@click.option("--series", metavar="ID", help="Only this series of --trace.")
@click.option("--store", "url", metavar="URL", help="What runs of this store met with and paid.")
@click.option("--on", "types", metavar="GLOB", help="With --store: only these instance types.")
@click.option("--power", metavar="USD", help="Price of a kWh at one's own site.")
@click.option("--place", metavar="CODE", help="The same by country (DEU) or state (US-VA).")
@click.option(
    "--tariff",
    "tariffs",
    multiple=True,
    metavar="WINDOW=USD",
    help="Another price of a kWh in a window, such as 22:00-06:00=0.09. Repeatable.",
)
@click.option("--kw", type=float, default=10.2, show_default=True, help="Power of the machines.")
@click.option("--zone", default="UTC", show_default=True, help="Time zone of the answer.")
@click.option("--within", metavar="TIME", help="Also list the windows until then: 3d.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    work: str,
    trace: str | None,
    prices: str | None,
    series: str | None,
    url: str | None,
    types: str | None,
    power: str | None,
    place: str | None,
    tariffs: tuple[str, ...],
    kw: float,
    zone: str,
    within: str | None,
    as_json: bool,
) -> None:
    """When to run: the hours and days that were cheaper, by observed spot prices and capacity, or
    by the price of electricity at one's own site; and whether that is more than chance.

    `tradewind run --window` keeps a run to such hours."""
    from tradewind.api import scheduled
    from tradewind.economics import hours as reckoning

    now = clock.now()
    length = math.ceil(parse_duration(work) / 3600)
    if not 1 <= length <= 23:
        raise InvalidValue(
            f"--hours {work}: a window of the day has 1 to 23 hours",
            hint="longer work saves at its end and goes on in the next: give what one day may have",
        )
    site = bool(power or place or tariffs)
    if (trace is not None) + (url is not None) + site != 1:
        raise click.UsageError("one of --trace, --store and --power (or --place): what was seen")
    there = scheduled.window(f"00:00-24:00 {zone}", now)
    offset: Callable[[int], int] = there.offset_s
    exact = False
    if trace is not None:
        seen, about = _of_trace(trace, prices, series)
    elif url is not None:
        seen, about = _of_store(url, types)
    else:
        seen, about = _of_site(power, place, tariffs, kw, now, offset)
        exact = True
    found = reckoning.choices(seen, length, offset, exact=exact)
    if not found:
        raise NotFound(
            f"{about}: nothing of it tells one hour of a day from another",
            hint="a longer series, or shorter --hours",
        )
    best = found[0]
    spans = _spans(best, zone, now, within)
    if as_json:
        render.print_json(_document(best, found, seen, offset, zone, about, spans))
        return
    _show(best, found, reckoning.by_hour(seen, offset), zone, about)
    if not exact or tariffs:
        _days(reckoning.by_day(seen, offset))
    for begin, end in spans:
        click.echo(f"from {begin:%a %Y-%m-%d %H:%M} to {end:%a %H:%M} {zone}")
    if best.sure or best.saved is None:
        click.echo(f"Keep a run to it: tradewind run WORKLOAD --window '{_window(best, zone)}'")


# -- what was seen -------------------------------------------------------------------------------


def _of_trace(path: str, prices: str | None, wanted: str | None) -> tuple[dict[int, Hour], str]:
    from tradewind.economics.hours import gathered
    from tradewind.spot import series as reading

    every = reading.read(Path(path), Path(prices) if prices else None)
    chosen = [one for one in every if wanted in (None, one.trace_id)]
    if not chosen:
        raise NotFound(
            f"{path} has no series {wanted}",
            hint=f"one of {', '.join(one.trace_id for one in every[:_SHOWN])}",
        )
    looks = (
        (
            one.start_s + n * one.gap_s,
            float(count >= 1),
            float(price) / 1e6 if one.priced else None,
        )
        for one in chosen
        for n, (count, price) in enumerate(zip(one.counts, one.prices, strict=True))
    )
    return gathered(looks), render.count(len(chosen), "series")


def _of_store(url: str, types: str | None) -> tuple[dict[int, Hour], str]:
    from fnmatch import fnmatch

    from tradewind import store as stores
    from tradewind.economics.hours import gathered, of_journals
    from tradewind.journal import runs_store

    opened = stores.open(url)
    loaded, troubles = runs_store.load_all(opened, runs_store.run_ids(opened))
    for run_id, error in troubles:
        click.echo(f"{run_id} is not counted: {error.message}", err=True)
    looks = of_journals(
        [each.commits for each in loaded], lambda name: types is None or fnmatch(name, types)
    )
    if not looks:
        raise NotFound(
            f"no run in {opened.url} has asked for spot machines{f' {types}' if types else ''}",
            hint="--trace FILE reads measured series, --power has electricity",
        )
    return gathered(
        looks
    ), f"{render.count(len(looks), 'look')} of {render.count(len(loaded), 'run')}"


def _of_site(
    power: str | None,
    place: str | None,
    tariffs: Sequence[str],
    kw: float,
    now: datetime,
    offset: Callable[[int], int],
) -> tuple[dict[int, Hour], str]:
    """A week from a midnight there on, and another: windows of its last day end in that."""
    from tradewind.api import scheduled
    from tradewind.economics.hours import Hour
    from tradewind.economics.own_figures import power_price

    if not kw > 0:
        raise InvalidValue(f"--kw {kw:g}: machines need some power", hint="legal: above 0")
    if power is None and place is None:
        raise click.UsageError("--tariff says when it costs something else: add --power or --place")
    if power is not None:
        usual, about = _usd("--power", power), "yours"
    else:
        known = power_price(place or "")
        usual, about = known.typical, f"{known.words}, {known.as_of} ({known.source})"
    windows: list[tuple[Window, float]] = []
    for text in tariffs:
        window, equals, price = text.rpartition("=")
        if not equals:
            raise InvalidValue(f"--tariff {text!r} has no price", hint="22:00-06:00=0.09")
        windows.append((scheduled.window(window, now), _usd("--tariff", price)))
    today = int(now.timestamp())
    first = (today + offset(today)) // 86_400 * 86_400 - offset(today)
    found: dict[int, Hour] = {}
    for hour in range(first // 3600, first // 3600 + _WEEKS * 7 * 24):
        # A window that covers half of an hour has half of it; the last that is given counts.
        parts = [_at(windows, usual, hour * 3600 + n * 900 + 450) for n in range(4)]
        found[hour] = Hour(1.0, kw * sum(parts) / 4)
    return found, f"electricity at ${usual:.4g} a kWh ({about}), {kw:g} kW"


def _at(windows: Sequence[tuple[Window, float]], usual: float, moment_s: int) -> float:
    for window, price in reversed(windows):
        begin, _ = next(window.spans(moment_s), (math.inf, 0.0))
        if begin <= moment_s:
            return price
    return usual


def _usd(option: str, text: str) -> float:
    from tradewind.economics.inputs import number

    value = number(option, text, "USD/kWh")
    if not 0 <= value <= 10:
        raise InvalidValue(f"{option} {text}: a kWh costs 0 to 10 dollars", hint="in US dollars")
    return value


# -- the answer ----------------------------------------------------------------------------------


def _window(choice: Choice, zone: str) -> str:
    return f"{choice.start:02d}:00-{choice.end:02d}:00{'' if zone == 'UTC' else f' {zone}'}"


def _spans(
    choice: Choice, zone: str, now: datetime, within: str | None
) -> list[tuple[datetime, datetime]]:
    from zoneinfo import ZoneInfo

    from tradewind.api import scheduled

    if within is None:
        return []
    until_s = (now + timedelta(seconds=parse_duration(within))).timestamp()
    window = scheduled.window(_window(choice, zone), now)
    spans = takewhile(lambda span: span[1] <= until_s, window.spans(now.timestamp()))
    there = ZoneInfo(zone)
    return [
        (datetime.fromtimestamp(max(a, now.timestamp()), UTC).astimezone(there),
         datetime.fromtimestamp(b, UTC).astimezone(there))
        for a, b in spans
    ][:14]  # fmt: skip


def _show(
    best: Choice, every: Sequence[Choice], hours: Mapping[int, Cell], zone: str, about: str
) -> None:
    render.paragraph(_verdict(best, every, zone), bold=True)
    click.echo()
    columns = [
        Column("HOUR", keep=9), Column("$ AN HOUR", right=True, keep=9),
        Column("THERE", right=True, keep=8), Column("SEEN", right=True, keep=4), Column("", keep=7),
    ]  # fmt: skip
    inside = {(best.start + n) % 24 for n in range(best.length)}
    if best.exact:
        _tariff(hours, inside, about, zone)
        return
    rows = [
        [f"{hour:02d}:00", _dollars(cell.price), f"{cell.up:.0%}", f"{cell.hours} h",
         "window" if hour in inside else ""]
        for hour, cell in hours.items()
    ]  # fmt: skip
    render.table(columns, rows)
    render.note(f"From {about}; hours are of {zone}.")


def _tariff(hours: Mapping[int, Cell], inside: set[int], about: str, zone: str) -> None:
    """Hours that cost the same are one line."""
    rows: list[list[str]] = []
    for hour, cell in hours.items():
        told = [_dollars(cell.price), "window" if hour in inside else ""]
        if rows and rows[-1][1:] == told:
            rows[-1][0] = f"{rows[-1][0][:5]}-{(hour + 1) % 24:02d}:00"
        else:
            rows.append([f"{hour:02d}:00-{(hour + 1) % 24:02d}:00", *told])
    if len({row[1] for row in rows}) > 1:
        columns = [Column("HOURS", keep=9), Column("$ AN HOUR", right=True, keep=9), Column("")]
        render.table(columns, rows)
    render.note(f"From {about}; hours are of {zone}.")


def _verdict(best: Choice, every: Sequence[Choice], zone: str) -> str:
    window = f"{best.start:02d}:00 to {best.end:02d}:00 {zone}"
    if best.saved is None:
        least = min(choice.up for choice in every)
        return (
            f"From {window} machines were there most often: {best.up:.0%} of the time, and"
            f" {least:.0%} in the worst window. No prices were seen."
        )
    if best.exact:
        if best.saved <= 1e-9:
            return "Every hour costs the same: nothing is saved by waiting."
        dearest = every[-1]
        return (
            f"{window} is cheapest: {_dollars(best.price)} an hour, {best.saved:.0%} less than a"
            f" day's mean, and {1 - (best.price or 0) / (dearest.price or 1):.0%} less than the"
            f" dearest {best.length} hours. What decides it: the tariff."
        )
    many = render.count(best.days, "day")
    if best.saved <= 1e-9:
        return f"No hours were cheaper than others, by {many}. Run when you like."
    if best.low is None or best.high is None:
        return (
            f"{window} was cheapest: {best.saved:.1%} less than all hours, in {many}: too few to"
            " say whether that is more than chance."
        )
    span = f"{best.low:.1%} to {best.high:.1%} in eight of ten cases"
    if not best.sure:
        return (
            f"No hours decide it: the cheapest, {window}, cost {best.saved:.1%} less than all"
            f" ({span}, {many}), which may be chance. Run when you like."
        )
    return (
        f"{window} was cheapest: {best.saved:.1%} less than all hours ({span}, by {many}), and"
        f" machines were there {best.up:.0%} of it. What decides it: that days to come are like"
        " these."
    )


def _days(days: Mapping[int, Cell]) -> None:
    from tradewind.model.windows import NAMES

    told = [
        f"{NAMES[day]} {_dollars(cell.price) or format(cell.up, '.0%')}"
        for day, cell in days.items()
    ]
    render.note("By day: " + ", ".join(told) + ".")


def _dollars(price: float | None) -> str:
    return "" if price is None else f"${price:,.4f}" if price < 10 else f"${price:,.2f}"


def _document(
    best: Choice,
    every: Sequence[Choice],
    seen: Mapping[int, Hour],
    offset: Callable[[int], int],
    zone: str,
    about: str,
    spans: Sequence[tuple[datetime, datetime]],
) -> dict[str, Any]:
    from tradewind.economics import hours as reckoning
    from tradewind.model.windows import NAMES

    def one(choice: Choice) -> dict[str, Any]:
        return {
            "window": _window(choice, zone), "usd_hour": choice.price, "there": choice.up,
            "saved_share": choice.saved, "saved_low": choice.low, "saved_high": choice.high,
            "days": choice.days, "more_than_chance": choice.sure,
        }  # fmt: skip

    def cell(each: Cell) -> dict[str, Any]:
        return {"usd_hour": each.price, "there": each.up, "hours_seen": each.hours}

    return {
        "best": one(best),
        "windows": [one(choice) for choice in every],
        "by_hour": {f"{k:02d}:00": cell(v) for k, v in reckoning.by_hour(seen, offset).items()},
        "by_day": {NAMES[k]: cell(v) for k, v in reckoning.by_day(seen, offset).items()},
        "zone": zone,
        "from": about,
        "next": [{"from": a.isoformat(), "to": b.isoformat()} for a, b in spans],
        "decided_by": ["tariff"] if best.exact else ["days to come are like those seen"],
    }
