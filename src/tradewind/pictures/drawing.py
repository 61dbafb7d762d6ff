"""Charts into a file, in the form that its ending says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.pictures.chart import Chart

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
