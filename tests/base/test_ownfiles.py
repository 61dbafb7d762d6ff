"""Files that are replaced whole, whoever is killed while at it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.eventually import eventually
from tradewind.base import ownfiles
from tradewind.base.errors import NoAccess

STUCK = """
import os, sys, time
from pathlib import Path
from tradewind.base import ownfiles
os.fsync = lambda handle: time.sleep(600)
ownfiles.replace(Path(sys.argv[1]), b"never finished")
"""


def test_what_a_killed_writer_left_is_swept_and_a_living_ones_is_not(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    writer = subprocess.Popen([sys.executable, "-c", STUCK, str(path)])
    try:
        eventually(lambda: any(each.stat().st_size for each in tmp_path.iterdir()))
        (beside,) = tmp_path.iterdir()
        ownfiles.replace(path, b"old")
        assert set(tmp_path.iterdir()) == {path, beside}
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    assert beside.exists()
    ownfiles.replace(tmp_path / "other", b"")
    assert beside.exists(), "it is for those who write the same file"
    ownfiles.replace(path, b"new")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["memory.json", "other"]
    assert path.read_bytes() == b"new"


def test_many_threads_replace_one_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    wanted = [bytes([number]) * 10_000 for number in range(8)]
    threads = [threading.Thread(target=ownfiles.replace, args=(path, data)) for data in wanted]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert path.read_bytes() in wanted
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NoAccess, match="cannot be written"):
        ownfiles.replace(tmp_path / "file" / "below", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
