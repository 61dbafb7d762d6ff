from __future__ import annotations

import os
from pathlib import Path

import pytest

from tradewind import ownfiles
from tradewind.errors import NoAccess


def test_what_killed_writers_left_is_swept(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    dead, living, young, other = (
        tmp_path / name
        for name in (
            ".memory.json.4194305.new",  # more than any pid
            f".memory.json.{os.getppid()}.new",
            ".memory.json.4194306.new",
            ".another.json.4194305.new",
        )
    )
    for each in (dead, living, young, other):
        each.touch()
        if each is not young:
            os.utime(each, (1.0, 1.0))
    ownfiles.replace(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert [each.exists() for each in (dead, living, young, other)] == [False, True, True, True]


def test_what_cannot_be_written_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NoAccess, match="cannot be written"):
        ownfiles.replace(tmp_path / "file" / "below", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
