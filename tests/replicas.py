"""Real replicas on this computer: llama.cpp's server with random weights, a process each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests import llama_server
from tests.eventually import eventually
from tradewind.front.routes import Backend
from tradewind.supervisor.meeting import free_port

SLOTS = 4


class Replicas:
    """`start()` gives the next one's id; `backend(id)` is what a front is told of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, tuple[subprocess.Popen[bytes], int]] = {}
        model = folder / "random-llama.gguf"
        if not model.exists():
            llama_server.write(model)

    def start(self) -> str:
        name, port = f"r{len(self._running) + 1}", free_port()
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, llama_server.__file__, str(self.folder), str(port), str(SLOTS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert process.stdout is not None
        said = process.stdout.readline()
        assert str(port).encode() in said, (self.folder / f"{name}.log").read_text()[-2000:]
        self._running[name] = process, port
        return name

    def backend(self, name: str) -> Backend:
        return Backend(name, "127.0.0.1", self._running[name][1], at_once=SLOTS)

    def signal(self, name: str, which: signal.Signals) -> None:
        os.kill(self._running[name][0].pid, which)

    def kill(self, name: str) -> None:
        """Without notice, as a host that loses its power."""
        process = self._running[name][0]
        process.kill()
        eventually(lambda: process.poll() is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process, _ in self._running.values():
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
