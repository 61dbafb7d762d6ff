"""Money, grouped: what it was for, what the plan had predicted, and what on demand would have cost.

A line adds up postings, and all lines of a report are all postings: whatever they are grouped by,
they sum up to the same total. Two comparisons stand beside the cost, each only with what can be
compared:

- **predicted**: of runs whose plan predicted a cost. A prediction is for a whole run, so there is
  one only on lines that runs belong to as a whole, and not for a run that the period cuts. The
  difference is told for runs that are over.
- **on demand**: what the same machines would have cost for the same time, where the run's ways had
  them on demand.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from tradewind.base.errors import InvalidValue
from tradewind.ledger.periods import between, by_day, day_name, month_name
from tradewind.ledger.postings import MACHINE, STORE, SUSTAINED, Posting, RunCost

NONE = "(none)"
"""The name of a line for what has no project, user or tag."""


def _of_no_machine(posting: Posting) -> str:
    what = "kept" if posting.kind == STORE else "data"
    return f"{what}, leg {posting.leg} of {posting.run_id}"


_KEYS: dict[str, Callable[[Posting], str]] = {
    "run": lambda posting: posting.run_id,
    "leg": lambda posting: f"{posting.run_id} leg {posting.leg}",
    "machine": lambda posting: posting.machine_id or _of_no_machine(posting),
    "project": lambda posting: posting.project or NONE,
    "user": lambda posting: posting.user or NONE,
    "provider": lambda posting: posting.provider,
    "market": lambda posting: posting.market,
    "instance_type": lambda posting: posting.instance_type,
    "day": lambda posting: day_name(posting.from_s),
    "month": lambda posting: month_name(posting.from_s),
}
GROUPINGS = (*_KEYS, "tag:NAME")
WHOLE = ("run", "project", "user", "tag")
"""Groupings that never divide a run."""
_IN_TIME = ("day", "month")


class Line(Struct, frozen=True, kw_only=True):
    what: str
    name: str = ""
    """The run's own, on a line of one run."""
    outcome: str = ""
    runs: int = 0
    machines: int = 0
    seconds: int = 0
    """Of machines, added up."""
    micros: int = 0
    estimated: int = 0
    """So much of it no provider has told."""
    sustained: int = 0
    """So much was taken off for sustained use."""
    store: int = 0
    """So much of it is for the store: requests, traffic, and what lay there."""
    kept: int = 0
    """Bytes that its runs have left there when they were closed."""
    kept_month: int = 0
    """And what they cost a month."""
    open: int = 0
    """Machines that still live: the cost is so far."""
    predicted: int | None = None
    over_predicted: int | None = None
    """Cost less prediction, of the predicted runs that are over."""
    predicted_hours: float | None = None
    elapsed_hours: float | None = None
    """As predicted: from the first launch to the end. On a line of one run only."""
    on_demand: int | None = None
    saved: int | None = None
    """On demand less cost, of what can be compared."""


class Report(Struct, frozen=True, kw_only=True):
    by: str
    lines: tuple[Line, ...]
    total: Line


def check_by(by: str) -> str:
    """`by`, if there is such a grouping."""
    by = by.strip().replace("-", "_") if not by.startswith("tag:") else by.strip()
    if by in _KEYS or (by.startswith("tag:") and len(by) > len("tag:")):
        return by
    close = difflib.get_close_matches(by, GROUPINGS, n=1)
    advice = f"did you mean {close[0]}?" if close else f"one of {', '.join(GROUPINGS)}"
    raise InvalidValue(f"costs cannot be grouped by {by!r}", hint=advice)


def report(
    runs: Iterable[RunCost],
    by: str = "run",
    since_s: int | None = None,
    until_s: int | None = None,
) -> Report:
    """`by` is one of GROUPINGS. A run that has cost nothing has a line of its own only where runs
    are asked for, and no period is."""
    by = check_by(by)
    key = key_of(by)
    groups: dict[str, _Group] = {}
    everything = _Group()
    whole = set()
    for run in runs:
        cut = [between(posting, since_s, until_s) for posting in run.postings]
        if all(new is old for new, old in zip(cut, run.postings, strict=True)):
            whole.add(run.run_id)
        if run.spec and since_s is None and until_s is None:
            everything.runs[run.run_id] = run
            if by == "run":
                groups.setdefault(run.run_id, _Group()).runs[run.run_id] = run
        for part in (part for posting in cut if posting for part in _parts(posting, by)):
            groups.setdefault(key(part), _Group()).add(run, part)
            everything.add(run, part)
    predictable = whole if by.partition(":")[0] in WHOLE else set()
    lines = [_line(what, group, predictable, by == "run") for what, group in groups.items()]
    lines.sort(key=(lambda line: line.what) if by in _IN_TIME else _dearest_first)
    return Report(by=by, lines=tuple(lines), total=_line("total", everything, whole, False))


class _Group:
    def __init__(self) -> None:
        self.postings: list[Posting] = []
        self.runs: dict[str, RunCost] = {}

    def add(self, run: RunCost, posting: Posting) -> None:
        self.runs[run.run_id] = run
        self.postings.append(posting)


def _dearest_first(line: Line) -> tuple[int, str]:
    return -line.micros, line.what


def key_of(by: str) -> Callable[[Posting], str]:
    if by.startswith("tag:"):
        name = by.removeprefix("tag:")
        return lambda posting: posting.tags.get(name) or NONE
    return _KEYS[by]


def _parts(posting: Posting, by: str) -> Iterable[Posting]:
    return by_day(posting) if by in _IN_TIME else (posting,)


def _line(what: str, group: _Group, predictable: set[str], of_one_run: bool) -> Line:
    posts = group.postings
    machines = {
        (posting.run_id, posting.machine_id): posting.open
        for posting in posts
        if posting.kind == MACHINE
    }
    forecast = [
        (run, run.spec.predicted_cost)
        for run in group.runs.values()
        if run.run_id in predictable and run.spec
        if run.spec.predicted_cost is not None
    ]
    over = [run.micros - cost for run, cost in forecast if run.outcome]
    usual = [(p.on_demand, p.micros) for p in posts if p.on_demand is not None]
    line = Line(
        what=what,
        runs=len(group.runs),
        machines=len(machines),
        seconds=sum(posting.seconds or 0 for posting in posts),
        micros=sum(posting.micros for posting in posts),
        estimated=sum(posting.micros for posting in posts if posting.estimated),
        sustained=-sum(posting.micros for posting in posts if posting.kind == SUSTAINED),
        store=sum(posting.micros for posting in posts if posting.kind == STORE),
        kept=sum(run.kept for run in group.runs.values()),
        kept_month=sum(run.kept_month for run in group.runs.values()),
        open=sum(machines.values()),
        predicted=sum(cost for _, cost in forecast) if forecast else None,
        over_predicted=sum(over) if over else None,
        on_demand=sum(cost for cost, _ in usual) if usual else None,
        saved=sum(cost - micros for cost, micros in usual) if usual else None,
    )
    return _of_one(line, *group.runs.values(), predictable=predictable) if of_one_run else line


def _of_one(line: Line, run: RunCost, *, predictable: set[str]) -> Line:
    spec = run.spec
    if spec is None:
        return line
    line = replace(line, name=spec.name, outcome=run.outcome)
    if run.run_id not in predictable:
        return line
    elapsed = round(run.elapsed_s / 3600, 4)
    return replace(line, predicted_hours=spec.predicted_hours, elapsed_hours=elapsed)
