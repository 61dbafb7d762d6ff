"""The picture of the house is of this house."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from itertools import pairwise

from tests.docs.blocks import ROOT
from tests.test_import_directions import BASE, MAY

sys.path.insert(0, str(ROOT / "tools"))
import draw_house  # type: ignore[import-not-found]


def test_it_is_drawn_from_the_code_as_it_is() -> None:
    assert draw_house.PICTURE.read_text() == draw_house.picture(), "run tools/draw_house.py"


def test_every_room_is_in_it_and_every_arrow_is_allowed() -> None:
    rooms = set(MAY) - BASE - {"__init__", "__main__", "model"}
    imports = draw_house.imports()
    assert set(imports) == rooms == set(draw_house.WORDS)
    for room, others in imports.items():
        assert others <= MAY[room]
    shown = {text.text for text in ET.parse(draw_house.PICTURE).iter() if text.tag.endswith("text")}
    assert rooms | {"model", "base"} <= shown


def test_no_two_rooms_overlap() -> None:
    for floor in _floors():
        for left, right in pairwise(floor):
            assert left.x + left.width / 2 <= right.x - right.width / 2


def _floors() -> list[list[draw_house.Place]]:
    built: list[list[draw_house.Place]] = draw_house.floors(draw_house.needed(draw_house.imports()))
    draw_house.arrange(built)
    return built
