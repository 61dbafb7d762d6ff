"""A script run for some steps: once as it is, once killed, asked to end, and resumed each time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import InvalidValue
from tradewind.torch.sessions.due import PATIENCE
from tradewind.torch.sessions.notice import EXIT_CODE
from tradewind.torch.sessions.trial import VARIABLE, WAITS, Plan, Row

LEAST = 4
"""Steps, without which nothing can be tried."""
ENOUGH = 2 * PATIENCE + 12
"""Steps in which a save is made, however long it waits for gradients."""
_WARNING = re.compile(r"^tradewind\.torch:(?: rank \d+:)? warning: (.*)$", re.M)
_OURS = re.escape(InvalidValue.__module__)
_REFUSED = re.compile(rf"^{_OURS}\.\w+: (.*?)(?=^\S|\Z)", re.M | re.S)


class Life(Struct):
    """One start of the script."""

    name: str
    code: int
    said: str
    rows: list[Row]

    @property
    def steps(self) -> int:
        return max((row.step for row in self.rows), default=0)

    @property
    def warnings(self) -> list[str]:
        return _WARNING.findall(self.said)

    @property
    def refused(self) -> str:
        """What the session would not do, in its words."""
        found = _REFUSED.search(self.said)
        return found[1].strip() if found else ""

    @property
    def waited_for(self) -> str:
        """A gradient that its save has waited for; "" for none."""
        found = re.search(rf"{re.escape(WAITS)}(.*)", self.said)
        return found[1] if found else ""

    def last(self) -> str:
        """The last line that it said."""
        return next((each for each in reversed(self.said.splitlines()) if each.strip()), "nothing")


class Start(Protocol):
    """Runs the script with these variables besides, to its end."""

    def __call__(self, env: Mapping[str, str], log: Path) -> int: ...


def by_python(script: Path, arguments: list[str], ranks: int, timeout_s: float) -> Start:
    """As `python script …` would, or torchrun for several ranks."""
    command = [sys.executable]
    if ranks > 1:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]

    def start(env: Mapping[str, str], log: Path) -> int:
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [*command, str(script), *arguments],
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **env},
                start_new_session=True,  # so that all it has started can be ended
            )
            try:
                return process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise InvalidValue(
                    f"the script has not made its steps in {timeout_s:.0f} seconds",
                    hint="try fewer (--steps), or give it longer (--timeout)",
                ) from None
            finally:
                _end(process)

    return start


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def whole(
    start: Start, folder: Path, steps: int, name: str = "whole", *, say: Callable[[str], None]
) -> Life:
    say(f"runs {steps} steps without interruption")
    return _live(start, folder / name, name, Plan("", "", steps))


def broken(start: Start, folder: Path, steps: int, *, say: Callable[[str], None]) -> list[Life]:
    """Saved at a third, killed a little later, resumed; asked to end after that, resumed."""
    save = max(1, steps // 3)
    kill = max(1, steps // 6)
    notice = min(save + kill + 1 + steps // 6, steps - 1)
    later = "a step" if kill == 1 else f"{kill} steps"
    say(f"runs them again: saves from step {save} on, is killed {later} later")
    lives = [_live(start, folder / "broken", "killed", Plan("", "", steps, save=save, kill=kill))]
    if lives[0].code == 0 or lives[0].refused:
        return lives
    say(f"resumes; is asked to end after step {notice}")
    lives.append(_live(start, folder / "broken", "asked", Plan("", "", steps, notice=notice)))
    if lives[1].code in (EXIT_CODE, 1) and not lives[1].refused:
        say("resumes")
        lives.append(_live(start, folder / "broken", "resumed", Plan("", "", steps)))
    return lives


def _live(start: Start, folder: Path, name: str, plan: Plan) -> Life:
    folder.mkdir(parents=True, exist_ok=True)
    rows, log = folder / f"{name}.jsonl", folder / f"{name}.log"
    plan.folder, plan.rows = str(folder / "checkpoints"), str(rows)
    file = folder / f"{name}.plan"
    file.write_bytes(json.encode(plan))
    code = start({VARIABLE: str(file)}, log)
    said = log.read_text(errors="replace") if log.exists() else ""
    return Life(name, code, said, _read(rows))


def _read(path: Path) -> list[Row]:
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found.append(json.decode(line, type=Row))
        except UNREADABLE:  # half a line of a process that was killed
            continue
    return found
