from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import json

from tradewind.model.figures import Figures, Gpu
from tradewind.telemetry import files


def write(folder: Path, told: Figures, at_s: float = 1000.0) -> None:
    path = folder / f"{told.rank}.json"
    path.write_bytes(json.encode(told))
    os.utime(path, (at_s, at_s))


def test_ranks_in_order_with_their_age(tmp_path: Path) -> None:
    for rank in (10, 2, 0):
        write(tmp_path, Figures(rank=rank, world=11, step=7, last_s=1.0, gpu=Gpu(busy=0.5)))
    found = files.read(tmp_path, 1005.0)
    assert [each.rank for each in found] == [0, 2, 10]
    assert {(each.age_s, each.last_s, each.step) for each in found} == {(5.0, 6.0, 7)}
    assert found[0].gpu == Gpu(busy=0.5)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"rank": "one"}', b"\xff\xfe", b"[]", b'{"step": 1e400}', b"{" + b" " * 9999],
)
def test_what_is_no_figures_is_not_there(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.json").write_bytes(content)
    write(tmp_path, Figures(rank=1, world=2))
    assert [each.rank for each in files.read(tmp_path, 1000.0)] == [1]


def test_no_folder_is_no_figures(tmp_path: Path) -> None:
    assert files.read(tmp_path / "none", 0.0) == ()


def test_names_that_a_newer_version_has_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "0.json").write_bytes(b'{"step": 5, "of_the_future": true}')
    assert files.read(tmp_path, 0.0)[0].step == 5


def test_ranks_of_an_earlier_larger_training_are_left_out(tmp_path: Path) -> None:
    for rank in range(4):
        write(tmp_path, Figures(rank=rank, world=4), 1000.0)
    for rank in range(2):
        write(tmp_path, Figures(rank=rank, world=2), 2000.0)
    assert [each.rank for each in files.read(tmp_path, 2001.0)] == [0, 1]


def test_only_so_many_are_read(tmp_path: Path) -> None:
    for rank in range(6):
        write(tmp_path, Figures(rank=rank, world=6))
    assert len(files.read(tmp_path, 1000.0, most=4)) == 4
