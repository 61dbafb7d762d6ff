"""The whole chain with real processes: commands as a user types them, the controller that they
start, machines of this computer, their supervisors, jobs, a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.eventually import eventually
from tradewind import store as stores
from tradewind.journal import runs_store
from tradewind.lifecycle.state import RunState
from tradewind.store.base import Store

ROOT = Path(__file__).parents[2]
FAST = Path(__file__).parent / "fast"
_MORTAL = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


class Chain:
    """`mortal`: the commands, and all that comes of them, must obey the modes of files, also where
    root runs the tests. `speed`: how fast minutes pass; see fast/sitecustomize.py."""

    def __init__(
        self,
        folder: Path,
        *,
        store: str | None = None,
        env: Mapping[str, str] | None = None,
        speed: float = 1.0,
        mortal: bool = False,
        home: Path | None = None,
    ) -> None:
        self.folder = folder
        self._before = _MORTAL if mortal and os.geteuid() == 0 else []
        self.home = home or folder / "home"
        self.store_url = store or str(folder / "store")
        paths = [str(ROOT / "src"), str(ROOT)]
        self.env = {name: value for name, value in os.environ.items() if name != "TRADEWIND_NOW"}
        self.env |= {
            "TRADEWIND_HOME": str(self.home),
            "TRADEWIND_STORE": self.store_url,
            "PYTHONPATH": os.pathsep.join([str(FAST), *paths] if speed > 1 else paths),
            "TRADEWIND_TEST_SPEED": str(speed),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(env or {}),
        }

    # -- commands ----------------------------------------------------------------------------------

    def popen(self, *arguments: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._before, sys.executable, "-m", "tradewind", *arguments], env=self.env, **more
        )

    def raw(self, *arguments: str, code: int | None = 0, within_s: float = 120) -> bytes:
        """What it prints on standard output."""
        process = self.popen(
            *arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            out, err = process.communicate(timeout=within_s)
        finally:
            process.kill()
        assert b"Traceback" not in err, err.decode()
        assert b"bug in Tradewind" not in out + err, err.decode()
        assert code is None or process.returncode == code, (process.returncode, out[-2000:], err)
        return out if code == 0 else out + err

    def cli(self, *arguments: str, code: int | None = 0, within_s: float = 120) -> str:
        return self.raw(*arguments, code=code, within_s=within_s).decode("utf-8", "replace")

    def job(self, command: str, *, name: str = "job", more: str = "", **files: str) -> Path:
        """A folder with a workload and these files (`a__py` is a.py); gives the workload."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        for each, text in files.items():
            (place / each.replace("__", ".")).write_text(text)
        work = place / "work.yaml"
        work.write_text(
            f"name: {name}\nwork: {{hours: 1, on: 1xA100-80GB}}\n"
            f"run:\n  command: {json.dumps(command)}\n{more}"
        )
        return work

    def detach(self, work: Path, *options: str) -> str:
        told = self.cli("run", str(work), "--local", "--yes", "--detach", "--json", *options)
        run: str = json.loads(told)["run"]
        return run

    # -- what has come of it -----------------------------------------------------------------------

    @property
    def store(self) -> Store:
        return stores.open(self.store_url, env=self.env)

    def state(self, run: str) -> RunState:
        return runs_store.load(self.store, run).state

    def ids(self) -> list[str]:
        return runs_store.run_ids(self.store)

    def log(self, run: str) -> bytes:
        return self.raw("logs", run)

    def says(self, run: str, words: bytes, *, within_s: float = 60) -> None:
        from tradewind.supervisor.logs import read_logs

        def there() -> bool:
            legs = self.state(run).requests
            return any(words in read_logs(self.store, run, leg, 0) for leg in legs)

        eventually(there, within_s=within_s)

    def supervisor(self) -> int:
        """The pid of one, once there is one."""

        def look() -> int:
            for pid in self.pids():
                try:
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"tradewind.supervisor" in words:
                    return pid
            return 0

        return eventually(look)

    def over(self, run: str, *, within_s: float = 90) -> RunState:
        eventually(lambda: self.state(run).phase == "closed", within_s=within_s)
        return self.state(run)

    def machines(self) -> Path:
        return self.home.resolve() / "local" / "machines"

    def pids(self, more: str = "") -> list[int]:
        """What runs of the machines and the controllers, found in another way than the product's:
        by the home in their environment, or by `more` in their command lines. Zombies, which have
        neither, do not run."""
        mark = f"TRADEWIND_HOME={self.home}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                environ = (path / "environ").read_bytes().split(b"\0")
                words = (path / "cmdline").read_bytes()
            except OSError:
                continue
            if mark in environ or (more and more.encode() in words):
                found.append(int(path.name))
        return found

    def quiet(self, more: str = "") -> None:
        """Nothing is left running, and no file is left half written."""
        eventually(lambda: not self.pids(more), within_s=60)
        self.clean()

    def clean(self) -> None:
        for top in (self.home, Path(self.store_url)):
            if top.is_dir():
                odd = [str(path) for path in top.rglob("*") if _half(path)]
                assert not odd, odd

    def end(self) -> None:
        """After a test, whatever came of it."""
        from tradewind.providers.local.provider import LocalProvider

        provider = LocalProvider(self.home, "memory://")
        for _ in range(2):
            provider.terminate([m.machine_id for m in provider.list_machines().machines])
        for pid in self.pids():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue


def _half(path: Path) -> bool:
    return path.is_file() and (path.name.endswith(".new") or path.parent.name == ".tradewind-new")
