"""How long the command line takes to start, against bare Python in the same run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tradewind import catalog
from tradewind.base import clock
from tradewind.base.errors import NotFound, TradewindError
from tradewind.catalog import files

HELP_LIMIT = 10.0
OFFERS_LIMIT = 25.0


@dataclass(frozen=True, slots=True)
class Startup:
    """Medians of whole processes, in seconds; ratios are to `python -c pass`."""

    python_s: float
    help_s: float
    offers_s: float
    peers_s: dict[str, float]
    repeats: int

    @property
    def help_ratio(self) -> float:
        return self.help_s / self.python_s

    @property
    def offers_ratio(self) -> float:
        return self.offers_s / self.python_s


def measure(
    repeats: int,
    peers: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Startup:
    """Runs all in turn, so that a busy machine slows them alike. `peers` are others' commands."""
    script = Path(sys.executable).parent / "tradewind"
    ours = [str(script)] if script.exists() else [sys.executable, "-P", "-m", "tradewind"]
    commands = {
        "python": [sys.executable, "-P", "-c", "pass"],
        "help": [*ours, "--help"],
        "offers": [*ours, "offers"],
        **{peer: shlex.split(peer) for peer in peers},
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as empty:
        # On the day the catalog was made: years later all would be stale, and nothing printed.
        made = catalog.load(files.PACKAGED, account=False).facts.made_at.isoformat()
        env = surroundings(empty, made)
        for done in range(repeats + 1):
            progress(done, repeats + 1)
            for name, command in commands.items():
                taken[name].append(once(command, env))
    # The first of each fills the disk cache and the byte code.
    middle = {name: median(times[1:]) for name, times in taken.items()}
    others = {peer: middle[peer] for peer in peers}
    return Startup(middle["python"], middle["help"], middle["offers"], others, repeats)


def surroundings(folder: str, now: str) -> dict[str, str]:
    """Where commands run: no account, that moment, and byte code kept as an installation has it,
    but in the folder."""
    env = os.environ | {
        "TRADEWIND_HOME": folder,
        "TRADEWIND_NOW": now,
        "PYTHONPYCACHEPREFIX": str(Path(folder) / "byte-code"),
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


def once(command: Sequence[str], env: dict[str, str]) -> float:
    start = clock.stopwatch()
    try:
        done = subprocess.run(command, env=env, capture_output=True, check=False)
    except OSError as error:
        raise NotFound(f"{command[0]} cannot be run: {error.strerror}") from None
    taken = clock.stopwatch() - start
    if done.returncode:
        raise TradewindError(
            f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.decode()[-200:]}"
        )
    return taken
