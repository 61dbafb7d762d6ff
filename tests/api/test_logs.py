"""A job's output, cut into lines as it comes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.lifecycle.builders import running
from tradewind.api.logs import LONGEST, Line, Reader
from tradewind.lifecycle.state import RunState
from tradewind.model import places
from tradewind.sim.faults import RUN
from tradewind.store.memory import MemoryStore

GOES_ON = running()


def read(pieces: list[bytes], *, at_once: bool = False) -> list[Line]:
    store, offset = MemoryStore(), 0
    reader = Reader(store, RUN, leg=None, rank=0)
    found: list[Line] = []
    for piece in pieces:
        store.create(places.log_piece(RUN, 1, 0, offset), piece)
        offset += len(piece)
        if not at_once:
            found += reader.lines(GOES_ON)
    return found + list(reader.lines(GOES_ON, last=True))


@given(st.lists(st.binary(min_size=1, max_size=20).map(lambda b: b.replace(b"x", b"\n"))))
def test_however_it_is_cut_the_lines_are_the_same(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()
    found = read(pieces)
    assert [line.text for line in found] == [text.decode("utf-8", "replace") for text in expected]
    assert found == read(pieces, at_once=True)
    for line, text in zip(found, expected, strict=True):
        assert whole[line.offset : line.offset + len(text)] == text
        assert not line.cut


def test_a_line_of_any_length_comes_in_pieces() -> None:
    long = b"a" * (2 * LONGEST + 5)
    found = read([long[:LONGEST], long[LONGEST:-5], long[-5:] + b"\nend\n"])
    assert [(line.offset, line.cut) for line in found] == [
        (0, True),
        (LONGEST, True),
        (2 * LONGEST, False),
        (2 * LONGEST + 6, False),
    ]
    assert "".join(line.text for line in found[:3]) == long.decode()


def test_what_has_no_end_is_told_when_none_will_come() -> None:
    store = MemoryStore()
    store.create(places.log_piece(RUN, 1, 0, 0), b"half")
    reader = Reader(store, RUN, leg=None, rank=0)
    assert list(reader.lines(GOES_ON)) == []
    store.create(places.log_piece(RUN, 1, 0, 4), b" a line")
    closed: RunState = GOES_ON.copy()
    closed.phase, closed.leg = "closed", None
    assert [line.text for line in reader.lines(closed)] == ["half a line"]
    assert list(reader.lines(closed)) == []
