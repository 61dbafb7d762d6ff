"""Trainings of several lives: started, killed, asked to end, and compared."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.eventually import eventually

ROOT = Path(__file__).parents[2]


class Nursery:
    """See nursery.py."""

    def __init__(self, *modules: str) -> None:
        self.modules = modules or ("tests.torch.train", "tests.torch.spread")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torch.nursery", *self.modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            text=True,
        )
        self._living: set[int] = set()

    def ask(self, **words: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        answer = int(self._process.stdout.readline())
        self._living ^= {words.get("wait", answer)}
        return answer

    def close(self) -> None:
        for pid in self._living:
            os.killpg(pid, signal.SIGKILL)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


class Life:
    """One start of a training, of one or more ranks."""

    def __init__(
        self,
        nursery: Nursery,
        folder: Path,
        number: int,
        options: tuple[str, ...],
        world: int,
        env: Mapping[str, str],
        module: str | None = None,
    ) -> None:
        self._nursery, self.folder = nursery, folder
        self.logs = [folder / f"{number}-{rank}.log" for rank in range(world)]
        port = _free_port()
        self.pids = [
            nursery.ask(
                log=str(self.logs[rank]),
                folder=str(folder),
                module=module or nursery.modules[0],
                arguments=[str(folder), *options],
                env={
                    "OMP_NUM_THREADS": "1",
                    **env,
                    "RANK": str(rank),
                    "LOCAL_RANK": str(rank),
                    "WORLD_SIZE": str(world),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port),
                },
            )
            for rank in range(world)
        ]

    def log(self, rank: int = 0) -> str:
        return self.logs[rank].read_text() if self.logs[rank].exists() else ""

    def step(self) -> int:
        return max(map(int, re.findall(r"^step (\d+)$", self.log(), re.M)), default=0)

    def begun(self) -> int:
        """The step that it went on from."""
        found = re.search(r"resuming from step (\d+)", self.log())
        return int(found[1]) if found else 0

    def at(self, step: int) -> Life:
        """Once it has made that step."""
        eventually(lambda: self.step() >= step or not self._alive())
        assert self.step() >= step, self.log()
        return self

    def _alive(self) -> bool:
        stat = Path(f"/proc/{self.pids[0]}/stat")
        return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"

    def children(self) -> list[str]:
        """Of rank 0: its loaders' workers."""
        found = Path(f"/proc/{self.pids[0]}/task").glob("*/children")
        return [pid for each in found for pid in each.read_text().split()]

    def saved(self) -> list[int]:
        """Steps whose checkpoints are complete."""
        found = self.folder.glob("checkpoints/checkpoints/*/*.json")
        return sorted(int(path.stem) for path in found)

    def has_saved(self, step: int) -> Life:
        eventually(lambda: any(each >= step for each in self.saved()) or not self._alive())
        assert any(each >= step for each in self.saved()), self.log()
        return self

    def kill(self) -> None:
        """All of it, loader workers too, at once."""
        for pid in self.pids:
            os.killpg(pid, signal.SIGKILL)
        for pid in self.pids:
            self._nursery.ask(wait=pid)

    def kill_after_exit(self, rank: int) -> None:
        """When that one has ended by itself: the others wait for it in vain."""
        assert self._nursery.ask(wait=self.pids[rank]) != 0
        for other, pid in enumerate(self.pids):
            if other != rank:
                os.killpg(pid, signal.SIGKILL)
                self._nursery.ask(wait=pid)

    def codes(self) -> list[int]:
        """How the ranks ended, once they have."""
        return [self._nursery.ask(wait=pid) for pid in self.pids]

    def done(self) -> Life:
        codes = self.codes()
        assert codes == [0] * len(codes), "\n".join(map(self.log, range(len(codes))))
        return self


class Training:
    """What is trained in one folder, life after life."""

    def __init__(self, nursery: Nursery, folder: Path, module: str | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._nursery, self.folder, self._module = nursery, folder, module
        self.lives: list[Life] = []

    def start(self, *options: str, world: int = 1, env: Mapping[str, str] | None = None) -> Life:
        more = (options, world, env or {}, self._module)
        life = Life(self._nursery, self.folder, len(self.lives), *more)
        self.lives.append(life)
        return life

    def weights(self) -> dict[str, Any]:
        import torch

        loaded: dict[str, Any] = torch.load(self.folder / "weights.pt", weights_only=True)
        return loaded

    def seen(self) -> Counter[tuple[int, int]]:
        """How often each sample of each epoch was trained with, in what became of it: steps after
        the checkpoint that the next life went on from do not count."""
        counted = Counter[tuple[int, int]]()
        ends = [life.begun() for life in self.lives[1:]] + [1 << 60]
        for life, end in zip(self.lives, ends, strict=True):
            for rank, pid in enumerate(life.pids):
                for line in (self.folder / "seen" / f"{rank}-{pid}").read_text().splitlines():
                    step, epoch, samples = line.split(" ", 2)
                    if int(step) <= end:
                        counted.update((int(epoch), index) for index in json.loads(samples))
        return counted


def differ(one: Training, other: Training) -> list[str]:
    """The names of weights that are not the same to the bit."""
    import torch

    first, second = one.weights(), other.weights()
    assert first.keys() == second.keys()
    assert len(first) > 5
    return [name for name, tensor in first.items() if not torch.equal(tensor, second[name])]


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port
