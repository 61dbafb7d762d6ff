from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.terminals import obeyed
from tradewind.base.plaintext import Colours, escaped, one_line, visible

_BITS = "\x1b []31;mKh\x9b\x07\r\na�é日\u202e"
_WHOLE = ("\x1b[31m", "\x1b[0K", "\x1b]0;t\x07", "\x1b[1", "\x1bP", "\x1b\\", "\x1b[?25h")
PARTS = st.sampled_from([*_BITS, *_WHOLE])
TEXT = st.lists(PARTS | st.characters(), max_size=30).map("".join)


@given(TEXT)
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    assert visible(text).isascii() or visible(text).encode("utf-8")
    assert obeyed(visible(text).encode()) == []
    assert "\x1b" not in visible(text)
    assert "\r" not in visible(text)
    assert len(visible(text)) == len(text)
    assert "\n" not in one_line(text)
    assert "\t" not in one_line(text)
    assert visible(visible(text)) == visible(text)


@given(TEXT)
def test_json_says_the_same(text: str) -> None:
    written = escaped(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(written) == {text: text}
    assert obeyed(written.encode()) == []


@given(TEXT, st.lists(st.integers(0, 120), max_size=8))
def test_colours_come_through_however_the_output_is_cut(text: str, cuts: list[int]) -> None:
    data = text.encode("utf-8", "surrogatepass")
    whole = Colours()
    expected = whole.feed(data) + whole.end()
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    pieces, start = Colours(), 0
    got = ""
    for end in ends:
        got += pieces.feed(data[start:end])
        start = end
    assert got + pieces.end() == expected
    assert obeyed(expected.encode()) == []


def test_what_a_job_may_do() -> None:
    def passed(data: bytes) -> str:
        colours = Colours()
        return colours.feed(data) + colours.end()

    assert (
        passed(b"\x1b[1;31mred\x1b[m\t 50%\r100%\n") == "\x1b[1;31mred\x1b[m\t 50%\r100%\n\x1b[0m"
    )
    assert passed(b"a\x1b[2K\x1b[1Ab\x1b[?25lc") == "abc"
    assert passed(b"\x1b]52;c;eA==\x07") == "�]52;c;eA==�"
    assert passed("\x9b2J\u202e".encode() + b"\xff") == "�2J��"
    assert passed(b"ends in the middle \x1b[3") == "ends in the middle �[3"
    assert passed(b"no colours") == "no colours"
