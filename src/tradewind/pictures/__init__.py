"""Pictures of the catalog: who sells what for how much, where, and what the years have brought.

from tradewind import catalog, pictures

prices = catalog.load()
chart = pictures.matrix.data(prices.offers(market="on_demand"), prices.accelerators)
pictures.draw([chart], Path("prices.html"), title="GPU prices", note="Tradewind, 15 Nov 2026")

Each chart is made in two steps. A module's `data` turns a selection into a small frozen value that
holds exactly what will be seen; the value then paints itself. The file's ending chooses the form:
`.png` and `.svg` show the charts below one another, `.html` is one page that needs no network and
has the numbers of each chart in a table. The same charts give the same bytes. `front.draw` draws a
plan's time against money.

Drawing needs matplotlib (`pip install 'tradewind[plot]'`); importing this package does not.

InvalidValue    the ending is none of the three, or there is too much to draw in one chart
NotFound        nothing to draw
NoAccess        the file cannot be written; an old one is left as it was
MissingExtra    matplotlib is not installed
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tradewind.errors import InvalidValue, NoAccess, NotFound
from tradewind.pictures import comparison, front, matrix, regions, timeline
from tradewind.pictures.chart import Chart, Provenance, Table
from tradewind.pictures.comparison import ComparedType

__all__ = [
    "ENDINGS",
    "Chart",
    "ComparedType",
    "Provenance",
    "Table",
    "comparison",
    "draw",
    "front",
    "matrix",
    "regions",
    "timeline",
]

ENDINGS = (".png", ".svg", ".html")


def draw(charts: Sequence[Chart], path: Path, *, title: str, note: str) -> None:
    """Writes `charts` to `path`. `note` says where the facts are from and of when."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidValue(
            f"a picture cannot be written to {str(path)!r}: "
            + (f"{ending} is not known" if ending else "the name has no ending"),
            hint=f"let the name end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}",
        )
    if not path.parent.is_dir():
        raise NoAccess(f"{path.parent} is not a folder", hint="make it first")
    if not charts:
        raise NotFound("there is no chart to draw", hint="ask for at least one")

    from tradewind.catalog import files
    from tradewind.pictures import canvas, page

    if ending == ".html":
        data = page.render(charts, title=title, note=note)
    else:
        data = canvas.render(charts, title=title, note=note, form=ending[1:])
    files.replace(path, data)
