"""Draws the rooms of the house and which looks into which: docs/pictures/house.svg.

    python tools/draw_house.py

What is drawn is what the code imports, in functions too; a test draws it again and compares. All
arrows point down. One is left out where another way leads there already, and those into `model` and
the base, on which all rooms stand, are two slabs. Green rooms are pure as a whole: they read no
clock and touch no file (tests/test_import_directions.py).
"""

from __future__ import annotations

import ast
import functools
import html
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tradewind"
PICTURE = ROOT / "docs" / "pictures" / "house.svg"
sys.path.insert(0, str(ROOT))
from tests.test_import_directions import BASE, PURE  # noqa: E402

WORDS = {
    "api": "runs, for Python and commands",
    "batch": "outputs of items, exactly once",
    "bench": "the measured claims",
    "catalog": "what can be bought",
    "cli": "parses and renders",
    "demo": "the first three minutes",
    "controller": "moves runs forward",
    "measure": "a server under load",
    "export": "plans as files",
    "front": "HAProxy before replicas",
    "economics": "own, commit, place",
    "services": "of a service: fold, decide",
    "estimate": "does it fit, how fast is it",
    "journal": "commits, runs of a store",
    "ledger": "money, from journals",
    "pictures": "prices, plans, drawn",
    "planning": "price, rank, explain",
    "policy": "which market and zone next",
    "providers": "who rents machines out",
    "report": "a run in figures",
    "lifecycle": "of a run: fold, decide",
    "sim": "all that can go wrong",
    "spot": "measured cases, foresight",
    "store": "folder, S3, GCS, Azure",
    "supervisor": "our process on a machine",
    "telemetry": "what holds it up",
    "torch": "what scripts import",
    "upkeep": "doctor, sweep",
    "web": "pages to send on",
    "workload": "what must be done",
}
WIDE, TALL, APART, FLOOR = 114, 60, 9, 104
MARGIN = 24
PURE_FILL, IO_FILL, SLAB_FILL = "#dcefdc", "#fbe8cf", "#e6e6ee"


@functools.cache
def imports() -> dict[str, set[str]]:
    """room → the rooms above `model` that it looks into."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room not in {"__init__", "__main__", "model", *BASE}:
            found.setdefault(room, set()).update(_of(path))
    return {room: {o for o in others if o in found and o != room} for room, others in found.items()}


def _of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("tradewind."))


def needed(rooms: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without what another way leads to already."""

    @functools.cache
    def below(room: str) -> frozenset[str]:
        return frozenset().union(*({other} | below(other) for other in rooms[room]))

    return {
        room: {o for o in others if not any(o in below(p) for p in others)}
        for room, others in rooms.items()
    }


@dataclass
class Place:
    """A room on its floor, or (without a name) a gap that an arrow passes through."""

    room: str
    floor: int
    above: list[Place] = field(default_factory=list)
    below: list[Place] = field(default_factory=list)
    x: float = 0.0

    @property
    def width(self) -> int:
        return WIDE if self.room else 5


def floors(links: dict[str, set[str]]) -> list[list[Place]]:
    """Each room just below the lowest that looks into it; long arrows cut at every floor."""

    @functools.cache
    def depth(room: str) -> int:
        return 1 + max((depth(r) for r, others in links.items() if room in others), default=-1)

    top = max(map(depth, links))
    rooms = {room: Place(room, top - depth(room)) for room in sorted(links)}
    built: list[list[Place]] = [[] for _ in range(top + 1)]
    for place in rooms.values():
        built[place.floor].append(place)
    for room, others in sorted(links.items()):
        for other in sorted(others):
            upper, lower = rooms[room], rooms[other]
            for floor in range(upper.floor - 1, lower.floor, -1):
                gap = Place("", floor)
                built[floor].append(gap)
                upper.below.append(gap)
                gap.above.append(upper)
                upper = gap
            upper.below.append(lower)
            lower.above.append(upper)
    return built


def _mean(places: list[Place], instead: float) -> float:
    return sum(p.x for p in places) / len(places) if places else instead


def _pack(floor: list[Place], wide: float) -> None:
    """As near to where they want to be as the room beside them allows, all within the house."""
    left = MARGIN
    for place in floor:
        place.x = max(place.x, left + place.width / 2)
        left = place.x + place.width / 2 + APART
    right = wide - MARGIN
    for place in reversed(floor):
        place.x = min(place.x, right - place.width / 2)
        right = place.x - place.width / 2 - APART


def arrange(built: list[list[Place]]) -> float:
    """Floors in an order with few crossings: each room near those it is joined to."""
    wide = max(sum(p.width + APART for p in floor) for floor in built) + 2 * MARGIN
    for floor in built:
        for number, place in enumerate(floor):
            place.x = wide * (number + 0.5) / len(floor)
    for sweep in range(40):
        downwards = sweep % 2 == 0
        for floor in reversed(built) if downwards else built:
            for place in floor:
                joined = place.above if downwards else place.below
                place.x = 0.8 * _mean(joined, place.x) + 0.2 * place.x
            floor.sort(key=lambda p: (p.x, p.room))
            _pack(floor, wide)
    for floor in built:
        for place in floor:
            place.x = _mean([*place.above, *place.below], place.x)
        floor.sort(key=lambda p: p.x)
        _pack(floor, wide)
    return wide


def _text(x: float, y: float, words: str, style: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{html.escape(words)}</text>'


def _halves(words: str) -> list[str]:
    """In two lines of about the same length, where one would be too long."""
    if len(words) <= 15:
        return [words]
    cuts = [at for at, letter in enumerate(words) if letter == " "]
    cut = min(cuts, key=lambda at: abs(2 * at - len(words)))
    return [words[:cut], words[cut + 1 :]]


def _box(place: Place, y: float) -> Iterator[str]:
    fill = PURE_FILL if place.room in PURE else IO_FILL
    yield (
        f'<rect x="{place.x - WIDE / 2:.0f}" y="{y:.0f}" width="{WIDE}" height="{TALL}" rx="7" '
        f'fill="{fill}" stroke="#555"/>'
    )
    assert place.room in WORDS, f"{place.room} is a new room: say in WORDS what it is"
    yield _text(place.x, y + 18, place.room, 'class="name"')
    for number, line in enumerate(_halves(WORDS[place.room])):
        yield _text(place.x, y + 36 + 15 * number, line, 'class="words"')


def _arrow(upper: Place, lower: Place, y: float) -> str:
    """From the floor of a room, or on through a gap, to the ceiling of one below."""
    start, end = y + TALL, y + FLOOR
    head = ' marker-end="url(#head)"' if lower.room else ""
    end = end - 2 if lower.room else end
    middle = (start + end) / 2
    a, b = f"{upper.x:.0f}", f"{lower.x:.0f}"
    path = f"M{a} {start:.0f}C{a} {middle:.0f} {b} {middle:.0f} {b} {end:.0f}"
    if not lower.room:
        path += f"V{end + TALL:.0f}"
    return f'<path d="{path}"{head}/>'


def _slab(y: float, wide: float, name: str, words: str, fill: str) -> Iterator[str]:
    yield (
        f'<rect x="{MARGIN}" y="{y:.0f}" width="{wide - 2 * MARGIN:.0f}" height="46" rx="7" '
        f'fill="{fill}" stroke="#555"/>'
    )
    yield _text(wide / 2, y + 19, name, 'class="name"')
    yield _text(wide / 2, y + 36, words, 'class="words"')


STYLE = """<style>
text{font-family:"DejaVu Sans","Liberation Sans",Arial,sans-serif;text-anchor:middle;fill:#222}
.name{font-size:15px;font-weight:bold}.words{font-size:12.5px}
path{fill:none;stroke:#7a7a8c;stroke-width:1.4}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#7a7a8c;stroke:none"/></marker></defs>"""


def _legend(x: float, y: float) -> Iterator[str]:
    for number, (fill, words) in enumerate(
        ((PURE_FILL, "pure: values in, values out"), (IO_FILL, "reads or writes, in part at least"))
    ):
        at = y + 24 * number
        yield (
            f'<rect x="{x:.0f}" y="{at:.0f}" width="26" height="16" rx="4" '
            f'fill="{fill}" stroke="#555"/>'
        )
        yield _text(x + 34, at + 13, words, 'class="words" style="text-anchor:start"')
    yield _text(x, y + 61, "An arrow: imports.", 'class="words" style="text-anchor:start"')


def picture() -> str:
    built = floors(needed(imports()))
    wide = arrange(built)
    tall = MARGIN + FLOOR * len(built) + 2 * 58 + MARGIN - 12
    top = len(built) - 1
    arrows, boxes = [], []
    for level, floor in enumerate(built):
        y = MARGIN + FLOOR * (top - level)
        for place in floor:
            arrows += [_arrow(place, lower, y) for lower in place.below]
            boxes += _box(place, y) if place.room else []
    ground = MARGIN + FLOOR * len(built)
    boxes += _slab(ground, wide, "model", "frozen values that all packages pass around", PURE_FILL)
    boxes += _slab(ground + 58, wide, "base", "errors, units, clock, own files, text", SLAB_FILL)
    boxes += _legend(MARGIN, MARGIN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {tall:.0f}" '
        f'width="{wide:.0f}" height="{tall:.0f}" role="img">\n'
        "<title>The rooms of the house, and which looks into which</title>"
    )
    ground_colour = f'<rect width="{wide:.0f}" height="{tall:.0f}" rx="10" fill="#fff"/>'
    return "\n".join([head, STYLE, ground_colour, *arrows, *boxes, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(picture())
