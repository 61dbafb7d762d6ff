"""A scripted market: a small file that says what a run meets, and what a good outcome would be.

    says: spot gets dearer than on demand
    work: 24h                 # at speed 1
    saves: 10m
    checkpoint: 20GB
    ways:
      here: {market: spot, price: $1.20}
      sure: {market: on-demand, price: $3.60, speed: 1.5, start: 6m}
    limits: {deadline: 48h, hard: true, budget: $60}
    happens:
      - {at: 2h, way: here, price: $4.00}
      - {at: 3h, way: here, gone: 4h}      # nobody can buy any; who has some keeps them
      - {at: 9h, way: here, taken: yes}    # who has some loses them
      - {at: 10h, asleep: 6h}              # no controller looks
      - {at: 12h, hangs: yes}              # the job does nothing any more
    good: {outcome: succeeded, cost: $40, hours: 26, legs: 3}

Moments are counted from the submission. `docs/commands/sim.md` has all fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path

from msgspec import Struct

from tradewind.base import yamltree
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import parse_bytes, parse_duration, parse_money
from tradewind.base.yamltree import Node, Problems, field

OUTCOMES = ("succeeded", "failed", "too_late", "too_long", "out_of_budget", "idle")
_WAY = (
    "market", "price", "speed", "really", "start", "nodes", "notice", "kind", "region", "read",
    "write",
)  # fmt: skip
_LIMITS = ("deadline", "hard", "budget", "max_duration", "late")
SHIPPED = Path(__file__).parent / "data"


class Offered(Struct, frozen=True):
    """Machines as they are sold."""

    name: str
    market: str
    prices: tuple[tuple[int, int], ...]
    """From when on, micro-dollars an hour; the first from the beginning."""
    speed: float
    """As estimated: work in a second of its time."""
    really: float
    start_s: int
    nodes: int
    notice_s: int
    kind: str
    """Machines of one kind are as fast as each other."""
    region: str
    gb_in: int
    """Micro-dollars for what is written into the store from there, by the GB."""
    gb_out: int
    """And for what is read."""
    gone: tuple[tuple[int, float], ...] = ()
    """From when to when none can be bought."""
    taken: tuple[int, ...] = ()

    def price(self, at_s: float) -> int:
        return [price for since, price in self.prices if since <= max(at_s, 0)][-1]

    def is_gone(self, at_s: float) -> bool:
        return any(since <= at_s < until for since, until in self.gone)


class Good(Struct, frozen=True):
    """What is asked of an outcome, beside the bounds of every market (`play.bounds`)."""

    outcome: str = "succeeded"
    cost: int | None = None
    hours: float | None = None
    legs: int | None = None


class Script(Struct, frozen=True):
    name: str
    says: str
    work_s: float
    saves_s: int
    checkpoint: int
    offered: tuple[Offered, ...]
    deadline_s: int | None = None
    hard: bool = False
    late: int | None = None
    """Micro-dollars that an hour past the deadline costs."""
    budget: int | None = None
    max_duration_s: int | None = None
    asleep: tuple[tuple[int, float], ...] = ()
    hangs_s: float | None = None
    """After so much work."""
    fails_s: float | None = None
    told: bool = True
    """Whether the job tells how fast it is."""
    counted: bool = True
    """Whether its work is counted in steps; else by the hours of machines."""
    good: Good = Good()


def shipped() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def load(name: str) -> Script:
    """A file, or one of those that come with Tradewind."""
    path = Path(name)
    if not path.suffix and (SHIPPED / f"{name}.yaml").is_file():
        path = SHIPPED / f"{name}.yaml"
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotFound(
            f"{name} cannot be read: {why}", hint=f"a file, or one of: {', '.join(shipped())}"
        ) from None
    return read(text, str(path))


def read(text: str, origin: str) -> Script:
    root = yamltree.parse(text, origin)
    problems = Problems(origin)
    found: Script | None = None
    with problems.at(root):
        found = _script(root, Path(origin).stem, problems)
    problems.raise_if_any(hint="docs/commands/sim.md has all fields")
    assert found is not None
    return found


def _script(root: Node, name: str, problems: Problems) -> Script:
    names = (
        "says", "work", "saves", "checkpoint", "told", "counted", "ways", "limits", "happens",
        "good",
    )  # fmt: skip
    top = root.mapping(names, problems)
    for wanted in ("work", "ways"):
        if wanted not in top:
            raise InvalidValue(f"{wanted} is missing")
    happens = _happens(top.get("happens"), problems)
    offered: list[Offered] = []
    ways = top["ways"].value
    if not isinstance(ways, dict) or not ways:
        raise InvalidValue("ways is missing: what can be bought, by name")
    for each in {event.way for event in happens if event.way} - set(ways):
        problems.add(top["ways"].line, f"happens: there is no way {each!r}")
    for word, node in ways.items():
        with problems.at(node):
            offered.append(_offered(word, node, [e for e in happens if e.way == word], problems))
    limits: Mapping[str, Node] = {}
    if "limits" in top:
        with problems.at(top["limits"]):
            limits = top["limits"].mapping(_LIMITS, problems)
    return Script(
        name=name,
        says=field(top, "says", Node.text, problems) or name,
        work_s=float(field(top, "work", _time, problems) or 1),
        saves_s=field(top, "saves", _time, problems) or 600,
        checkpoint=field(top, "checkpoint", _bytes, problems) or 0,
        offered=tuple(offered),
        deadline_s=field(limits, "deadline", _time, problems),
        hard=bool(field(limits, "hard", _yes, problems)),
        late=field(limits, "late", _hourly, problems),
        budget=field(limits, "budget", _money, problems),
        max_duration_s=field(limits, "max_duration", _time, problems),
        asleep=tuple((e.at_s, e.at_s + e.for_s) for e in happens if e.what == "asleep"),
        hangs_s=next((float(e.at_s) for e in happens if e.what == "hangs"), None),
        fails_s=next((float(e.at_s) for e in happens if e.what == "fails"), None),
        told=field(top, "told", _yes, problems) is not False,
        counted=field(top, "counted", _yes, problems) is not False,
        good=field(top, "good", lambda node: _good(node, problems), problems) or Good(),
    )


class _Event(Struct, frozen=True):
    at_s: int
    what: str
    way: str = ""
    for_s: float = 0.0
    price: int = 0


def _happens(node: Node | None, problems: Problems) -> list[_Event]:
    found: list[_Event] = []
    for each in node.items() if node else []:
        with problems.at(each):
            found.append(_event(each, problems))
    return sorted(found, key=lambda event: event.at_s)


def _event(node: Node, problems: Problems) -> _Event:
    of_way, others = ("price", "gone", "taken"), ("asleep", "hangs", "fails")
    fields = node.mapping(("at", "way", *of_way, *others), problems)
    what = [name for name in (*of_way, *others) if name in fields]
    if "at" not in fields or len(what) != 1:
        raise InvalidValue(
            f"when, and one thing that happens: at, and one of {', '.join((*of_way, *others))}"
        )
    if (what[0] in of_way) != ("way" in fields):
        raise InvalidValue(f"{what[0]} is of {'one way' if what[0] in of_way else 'no way'}")
    event = _Event(_time(fields["at"]), what[0], fields["way"].text() if "way" in fields else "")
    value = fields[what[0]]
    if what[0] == "price":
        return _Event(event.at_s, "price", event.way, price=_money(value))
    if what[0] in ("gone", "asleep"):
        for_s = inf if value.text() == "ever" else float(_time(value))
        return _Event(event.at_s, event.what, event.way, for_s)
    if not _yes(value):
        raise InvalidValue(f"{what[0]}: yes, or not at all")
    return event


def _offered(name: str, node: Node, happens: list[_Event], problems: Problems) -> Offered:
    fields = node.mapping(_WAY, problems)
    if "price" not in fields:
        raise InvalidValue("price is missing: of a machine-hour, for example price: $1.20")
    speed = field(fields, "speed", _factor, problems) or 1.0
    later = [(event.at_s, event.price) for event in happens if event.what == "price"]
    return Offered(
        name=name,
        market=(field(fields, "market", _market, problems) or "on_demand"),
        prices=((0, field(fields, "price", _money, problems) or 0), *later),
        speed=speed,
        really=field(fields, "really", _factor, problems) or speed,
        start_s=field(fields, "start", _time, problems) or 180,
        nodes=int(field(fields, "nodes", _factor, problems) or 1),
        notice_s=field(fields, "notice", _time, problems) or 120,
        kind=field(fields, "kind", Node.text, problems) or f"at-{speed:g}",
        region=field(fields, "region", Node.text, problems) or "r1",
        gb_in=field(fields, "write", _money, problems) or 0,
        gb_out=field(fields, "read", _money, problems) or 0,
        gone=tuple((e.at_s, e.at_s + e.for_s) for e in happens if e.what == "gone"),
        taken=tuple(e.at_s for e in happens if e.what == "taken"),
    )


def _good(node: Node, problems: Problems) -> Good:
    fields = node.mapping(("outcome", "cost", "hours", "legs"), problems)
    legs = field(fields, "legs", Node.number, problems)
    return Good(
        outcome=field(fields, "outcome", _outcome, problems) or "succeeded",
        cost=field(fields, "cost", _money, problems),
        hours=field(fields, "hours", Node.number, problems),
        legs=None if legs is None else int(legs),
    )


def _time(node: Node) -> int:
    return 0 if node.text() == "0" else parse_duration(node.text())


def _money(node: Node) -> int:
    return parse_money(node.text())


def _hourly(node: Node) -> int:
    return parse_money(node.text().removesuffix("/h"))


def _bytes(node: Node) -> int:
    return parse_bytes(node.text())


def _factor(node: Node) -> float:
    if not node.number() > 0:
        raise InvalidValue(f"{node.text()} is not more than nothing")
    return node.number()


def _one_of(legal: tuple[str, ...]) -> Callable[[Node], str]:
    def chosen(node: Node) -> str:
        word = node.text().replace("-", "_")
        if word not in legal:
            raise InvalidValue(f"{node.text()!r} is none of {', '.join(legal)}")
        return word

    return chosen


_market = _one_of(("spot", "on_demand"))
_outcome = _one_of(OUTCOMES)


def _yes(node: Node) -> bool:
    words = {"yes": True, "true": True, "no": False, "false": False}
    if node.text() not in words:
        raise InvalidValue(f"{node.text()!r} is neither yes nor no")
    return words[node.text()]
