"""Token files of every kind, whole and damaged."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import tradewind.torch as tw
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.torch.feeds.samples import is_plain


def test_what_is_written_is_read(tmp_path: Path) -> None:
    documents = [range(5), [], np.arange(5, 9, dtype=np.int64), [60_000]]
    assert tw.write_tokens(tmp_path / "a.npy", documents, vocab=65_536, end=7) == 13
    whole = np.load(tmp_path / "a.npy")
    assert whole.dtype == np.uint16
    assert whole.tolist() == [0, 1, 2, 3, 4, 7, 5, 6, 7, 8, 7, 60_000, 7]
    found = tw.tokens(tmp_path / "a.npy", length=4)
    assert len(found) == 3
    assert [found[n][0].tolist() for n in range(3)] == [
        [0, 1, 2, 3], [4, 7, 5, 6], [7, 8, 7, 60_000]
    ]  # fmt: skip
    assert found[-1][1].tolist() == [8, 7, 60_000, 7]
    assert found[0][0].dtype.is_signed
    with pytest.raises(IndexError):
        found[3]
    assert pickle.loads(pickle.dumps(found))[1][0].tolist() == [4, 7, 5, 6]  # noqa: S301
    assert is_plain(found)
    assert found.token_count == 13


def test_large_vocabularies_and_bare_numbers(tmp_path: Path) -> None:
    tw.write_tokens(tmp_path / "b.bin", [[70_000, 1, 2]], vocab=70_001)
    assert tw.tokens(tmp_path / "b.bin", 2, dtype="uint32")[0][0].tolist() == [70_000, 1]
    # As llm.c's tools write it: a head of 256 numbers.
    head = np.zeros(256, "<i4")
    head[:3] = 20240520, 1, 5
    (tmp_path / "c.bin").write_bytes(head.tobytes() + np.arange(5, dtype="<u2").tobytes())
    assert tw.tokens(tmp_path / "c.bin", 4)[0][1].tolist() == [1, 2, 3, 4]


def test_several_files_do_not_run_into_each_other(tmp_path: Path) -> None:
    for number, size in enumerate([9, 3, 8]):
        tw.write_tokens(tmp_path / f"{number}.npy", [[number] * size], vocab=10)
    for where in (tmp_path, f"{tmp_path}/*.npy", f"{tmp_path}/{{0..2}}.npy", tmp_path.as_uri()):
        found = tw.tokens(where, length=4)
        assert [found[n][0].tolist() for n in range(len(found))] == [[0] * 4, [0] * 4, [2] * 4]
    assert len(tw.tokens([tmp_path / "0.npy", tmp_path / "2.npy"], 4)) == 3


def test_words_for_what_is_wrong(tmp_path: Path) -> None:
    written = tmp_path / "a.npy"
    tw.write_tokens(written, [range(100)], vocab=100)
    whole = written.read_bytes()
    (tmp_path / "torn.npy").write_bytes(whole[:-3])
    with pytest.raises(BadFile, match="should have 328 bytes and has 325"):
        tw.tokens(tmp_path / "torn.npy")
    (tmp_path / "odd.bin").write_bytes(b"123")
    with pytest.raises(BadFile, match="no whole number of uint16"):
        tw.tokens(tmp_path / "odd.bin")
    np.save(tmp_path / "float.npy", np.zeros((3, 2)))
    with pytest.raises(BadFile, match=re.escape("float64 of shape (3, 2)")):
        tw.tokens(tmp_path / "float.npy")
    (tmp_path / "text.npy").write_text("hello")
    with pytest.raises(BadFile, match="not a NumPy file"):
        tw.tokens(tmp_path / "text.npy")
    with pytest.raises(InvalidValue, match="no window of 1024 tokens"):
        tw.tokens(written)
    with pytest.raises(InvalidValue, match="cannot have 0 tokens"):
        tw.tokens(written, 0)
    with pytest.raises(InvalidValue, match="cannot be 'int8'"):
        tw.tokens(written, dtype="int8")
    with pytest.raises(NotFound, match=r"there is no .*nothing"):
        tw.tokens(tmp_path / "nothing-*.npy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match=r"no \.bin or \.npy"):
        tw.tokens(tmp_path / "empty")
    with pytest.raises(InvalidValue, match="document 1 has the token 100, and vocab is 100"):
        tw.write_tokens(written, [[1], [100]], vocab=100)
    with pytest.raises(InvalidValue, match="not a row of tokens"):
        tw.write_tokens(written, ["text"], vocab=100)
    with pytest.raises(InvalidValue, match="neither"):
        tw.write_tokens(tmp_path / "x.txt", [], vocab=100)
    assert written.read_bytes() == whole
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".new")]
