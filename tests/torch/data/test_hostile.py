"""Files that somebody else made: whatever is in them, they are read in bounded time and memory, and
what cannot be read is a BadFile."""

from __future__ import annotations

import io
import json
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tradewind.torch as tw
from tradewind.base.errors import BadFile
from tradewind.torch.data import npyfiles, shardindex, tars, tokenfiles

PATH = Path("hostile.tar")


class Counted(bytes):
    """Bytes of which so many may be taken out: a reader that loops is found out, and one that
    copies what is left again and again."""

    left: list[int]

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.left[0] -= 1 + (len(found) if isinstance(found, bytes) else 0)
        assert self.left[0] >= 0, "it reads many times as many bytes as there are"
        return counted(found, self.left) if isinstance(found, bytes) else found


def counted(data: bytes, left: list[int] | None = None) -> Counted:
    made = Counted(data)
    made.left = [4096 + 8 * len(data)] if left is None else left
    return made


def read(data: bytes) -> list[tuple[str, tars.Fields]] | None:
    """None: it was refused."""
    try:
        found = list(tars._samples(counted(data), PATH))
    except BadFile:
        return None
    for _, fields in found:
        assert all(0 <= start <= stop <= len(data) for start, stop in fields.values())
    return found


def head(name: bytes = b"a.txt", size: bytes = b"00000000003\0", kind: bytes = b"0") -> bytes:
    made = bytearray(512)
    made[: len(name)] = name
    made[124 : 124 + len(size)] = size
    made[156:157] = kind
    made[257:265] = b"ustar\x0000"
    return bytes(made)


def body(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


END = bytes(1024)
WHOLE = head() + body(b"abc") + END


def pax(records: bytes) -> bytes:
    return head(b"x", b"%011o\0" % len(records), b"x") + body(records) + WHOLE


def test_what_is_right_is_read() -> None:
    assert read(WHOLE) == [("a", {"txt": (512, 515)})]
    assert read(pax(b"14 path=b.txt\n")) == [("b", {"txt": (1536, 1539)})]
    assert read(pax(b"10 size=3\n")) == [("a", {"txt": (1536, 1539)})]


DAMAGED = {
    "negative": head(size=b"-0000001000\0") + WHOLE,
    "signed": head(size=b"+0000001\0") + WHOLE,
    "underscore": head(size=b"1_0\0") + WHOLE,
    "hexadecimal": head(size=b"0x10\0") + WHOLE,
    "negative binary": head(size=b"\xff" * 12) + WHOLE,
    "huge binary": head(size=b"\x80" + b"\xff" * 11) + WHOLE,
    "too large": head(size=b"77777777777\0") + WHOLE,
    "name too large": head(size=b"00000010000\0", kind=b"L") + WHOLE,
    "record of 0": pax(b"0 path=b\n"),
    "record negative": pax(b"-9 path=b\n"),
    "record of too many digits": pax(b"00000000000000000000000000009 path=b\n"),
    "record of 1": pax(b"1 \n"),
    "record too long": pax(b"999999 path=b\n"),
    "record without a number": pax(b"nothing"),
    "record of nothing": pax(b" "),
    "size no number": pax(b"10 size=-\n"),
    "size negative": pax(b"13 size=-512\n"),
    "size a float": pax(b"12 size=1e9\n"),
    "size of 20 digits": pax(b"30 size=99999999999999999999\n"),
    "no end": WHOLE[:-1024],
    "cut off": WHOLE[:700],
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_sizes_that_cannot_be_are_damage(data: bytes) -> None:
    assert read(data) is None


def test_a_name_as_long_as_a_film_is_damage() -> None:
    assert read(head(b"n", b"%011o\0" % (2 << 20), b"L") + body(b"n" * (2 << 20)) + WHOLE) is None


def test_a_head_of_very_many_records_takes_no_square_of_time() -> None:
    assert read(pax(b"4 =\n" * (1 << 15))) is not None


@given(st.data())
@settings(max_examples=300)
def test_tars_with_bytes_changed_are_read_or_refused(data: st.DataObject) -> None:
    out = io.BytesIO()
    form = data.draw(st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name in data.draw(st.lists(st.text(min_size=1, max_size=150), max_size=4)):
            info = tarfile.TarInfo(f"{name}.txt")
            info.size = data.draw(st.integers(0, 600))
            tar.addfile(info, io.BytesIO(bytes(info.size)))
    made = bytearray(out.getvalue()[: data.draw(st.integers(0, len(out.getvalue())))])
    odd = st.sampled_from(b"0179 -+=_\0\n\x80\xffLxg")
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(0, max(0, len(made) - 1)), odd), max_size=8)
    ):
        if made:
            made[at] = byte
    read(bytes(made))


@given(st.binary(max_size=40))
@example(b"0 ")
def test_pax_heads_of_anything_are_read_or_refused(records: bytes) -> None:
    read(pax(records))


# -- indexes ---------------------------------------------------------------------------------------


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda some: (
            st.lists(some, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["format", "shards", "shardlist", "url", "nsamples", "name", "samples"]
                ),
                some,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_indexes_of_anything_are_read_or_refused(said: Any) -> None:
    with suppress(BadFile):
        found = shardindex.decode(json.dumps(said).encode(), "index.json")
        assert all(each.samples >= 0 and "/" not in each.name for each in found)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"format":1,"shards":[{"name":"\xff","samples":1}]}',
        b"[" * 100_000,
        b'{"format":1,"shards":[{"name":"a.tar","samples":-1}]}',
        b'{"format":1,"shards":[{"name":"..","samples":1}]}',
        b'{"format":1,"shards":[{"name":"a/b.tar","samples":1}]}',
        b'{"format":1,"shards":[{"name":"a.tar","samples":1e300}]}',
        b'{"format":1,"shards":[{"name":"a.tar","samples":99999999999999999}]}',
        b'{"shardlist":[{"url":"a.tar","nsamples":"many"}]}',
        b'{"shardlist":[{"url":"a.tar","nsamples":-5}]}',
        b'{"shardlist":[{"url":3,"nsamples":5}]}',
        b'{"shardlist":7}',
        b'{"shardlist":"abc"}',
    ],
)
def test_indexes_that_cannot_be_are_refused(data: bytes) -> None:
    with pytest.raises(BadFile, match=r"^index\.json "):
        shardindex.decode(data, "index.json")


# -- arrays and tokens -----------------------------------------------------------------------------


def npy(said: str, numbers: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said.encode() + numbers


HOSTILE_HEADS = [
    "{'descr': '<u8', 'fortran_order': False, 'shape': (1000000000000,), }\n",
    "{'descr': '<u2', 'fortran_order': False, 'shape': (-1,), }\n",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n",
    "{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775808, 3), }\n",
    "{'descr': " + "[" * 300 + "]" * 300 + ", 'fortran_order': False, 'shape': (1,), }\n",
    "(" * 9000,
    "__import__('os').mkdir('ran')",
    "",
]


@pytest.mark.parametrize("said", HOSTILE_HEADS, ids=lambda said: said[:40])
def test_arrays_that_lie_are_refused_before_they_are_held(said: str, tmp_path: Path) -> None:
    data = npy(said, b"\0" * 16)
    with pytest.raises(ValueError, match=r".*"):
        npyfiles.array(data)
    path = tmp_path / "tokens.npy"
    path.write_bytes(data)
    with pytest.raises(BadFile, match=r"tokens\.npy"):
        tokenfiles.opened(path, None)


def test_an_array_is_read_as_it_was_written() -> None:
    out = io.BytesIO()
    np.save(out, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert npyfiles.array(out.getvalue()).tolist() == [[0, 1, 2], [3, 4, 5]]


@given(st.binary(max_size=200))
def test_arrays_of_anything_are_read_or_refused(data: bytes) -> None:
    for each in (data, b"\x93NUMPY\x01\x00" + data):
        with suppress(ValueError):
            assert npyfiles.array(each).nbytes <= len(each)


def test_a_sample_that_cannot_be_decoded_names_its_file(tmp_path: Path) -> None:
    tars.write(tmp_path / "0.tar", [("a", {"npy": npy(HOSTILE_HEADS[0])})])
    tw.index_shards(tmp_path)
    with pytest.raises(BadFile, match=r"a\.npy in .*0\.tar cannot be read: 8,000,000,000,000 by"):
        tw.shards(tmp_path)[0]
