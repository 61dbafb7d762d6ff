from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.servers import S3Server, make_bucket
from tests.system.chain import Chain

_ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


class SmallDisk:
    """A disk of its own, which can be filled to its last byte and is kept so until it is freed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._freed = threading.Event()
        self._thread: threading.Thread | None = None

    def fill(self) -> None:
        full = threading.Event()
        self._freed = threading.Event()

        def work() -> None:
            with (self.path / "filler").open("ab", buffering=0) as stream:
                while not self._freed.is_set():
                    try:
                        stream.write(b"x" * 4096)
                    except OSError:
                        full.set()
                        time.sleep(0.005)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()
        assert full.wait(60)

    def free(self) -> None:
        self._freed.set()
        if self._thread is not None:
            self._thread.join()
        (self.path / "filler").unlink(missing_ok=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Before `chain` in a test's arguments, so that it outlives the chain."""
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size=24m,uid={os.geteuid()}", "tmpfs", str(path)]
    subprocess.run([*_ROOT, *mount], check=True)
    disk = SmallDisk(path)
    yield disk
    disk.free()
    subprocess.run([*_ROOT, "umount", "--lazy", str(path)], check=True)


@pytest.fixture
def s3_server(tmp_path: Path) -> Iterator[S3Server]:
    place = tmp_path / "s3"
    place.mkdir()
    server = S3Server(place)
    server.start()
    make_bucket(server.env)
    yield server
    server.stop()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Callable[..., Chain]]:
    made: list[Chain] = []

    def make(**more: Any) -> Chain:
        made.append(Chain(tmp_path, **more))
        return made[-1]

    yield make
    for each in made:
        each.end()
