"""A command under its keeper (keeper.py), from the supervisor's side.

`wait` gives the exit code, negative for a signal. `terminate` and `kill` may be called from any
thread, at any time. Whoever drops the supervisor, be it with SIGKILL, kills the command: the pipe
to the keeper closes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tradewind.supervisor import keeper


class Command:
    def __init__(
        self,
        command: str,
        *,
        mark: str,
        folder: Path,
        env: Mapping[str, str],
        output: int,
        leftovers: str,
    ) -> None:
        """`output` is a file descriptor, open to append: what several processes write into it at
        once stays whole and in order, and nobody has to keep up with reading."""
        self._mark = mark
        self.ended = threading.Event()
        self._status, theirs = os.pipe()
        try:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", keeper.__file__,
                 mark, str(folder), str(theirs), leftovers],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(theirs,),
                start_new_session=True,
                env={**env, keeper.VARIABLE: mark, keeper.COMMAND: command},
            )  # fmt: skip
        finally:
            os.close(theirs)

    def wait(self) -> int:
        """By one thread; the others have `ended`."""
        try:
            return self._wait()
        finally:
            self.ended.set()

    def _wait(self) -> int:
        told = b""
        while piece := os.read(self._status, 64):
            told += piece
        os.close(self._status)
        self._keeper.wait()
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        if not told.endswith(b"\n"):  # the keeper was killed, and the job must not go on without
            keeper.end_all(self._mark)
            return -9
        return int(told)

    def terminate(self) -> None:
        self._tell(b"T")

    def kill(self) -> None:
        self._tell(b"K")

    def _tell(self, order: bytes) -> None:
        assert self._keeper.stdin is not None
        with suppress(OSError, ValueError):  # it has ended
            os.write(self._keeper.stdin.fileno(), order)
