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

from tradewind.pictures import comparison, front, matrix, regions, timeline
from tradewind.pictures.chart import Chart, Provenance, Table
from tradewind.pictures.comparison import ComparedType
from tradewind.pictures.drawing import ENDINGS, draw

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
