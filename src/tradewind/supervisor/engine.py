"""A replica's engine: `python -m tradewind.supervisor.engine`, the job of a replica's machine.

It starts the engine's command (any, with a port and a health check), waits until its health check
passes, warms it up, and from then on writes what the engine says of itself into a file that the
supervisor reports. When it is asked to save (a notice, or an order), it says that it drains: the
front sends nothing new, and when the engine has answered what it had, or the time is up, both end.

The engine has a session of its own: the signal that asks us to end is not for it.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import json

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import NoAccess
from tradewind.base.ownfiles import replace
from tradewind.model.service import EngineSpec
from tradewind.model.serving import Serving
from tradewind.supervisor import enginefigures
from tradewind.supervisor.enginefigures import EngineFigures
from tradewind.supervisor.meeting import free_port

VARIABLE = "TRADEWIND_ENGINE"
"""An EngineSpec, as JSON."""
TELLS = "TRADEWIND_SERVING"
COMMAND = "exec python -P -m tradewind.supervisor.engine"
"""`python` is the one that has Tradewind (supervisor/variables.py)."""
_LOOK_S = 0.25
_FIGURES_S = 2.0
_GOOD_S = 30.0
"""An engine that was ready for so long has got further: a later failure begins a new count."""
_QUIET_S = 2.0
"""After the last answer, for one that the front has just sent."""
_MARGIN, _MOST_MARGIN_S = 0.2, 5.0
"""Of the time that it is given, for ending the engine."""
_KILL_S = 10.0
_PROBE_S = 5.0
HOST = "TRADEWIND_HOST"
"""Where others reach this machine, and so where its engine has to listen: on this computer that is
loopback."""


class Engine:
    def __init__(self, spec: EngineSpec, env: dict[str, str]) -> None:
        self.spec, self._env = spec, env
        self.port = spec.port or free_port()
        self.host = env.get(HOST) or "127.0.0.1"
        self._tells = Path(env[TELLS])
        self._progress = env.get("TRADEWIND_PROGRESS", "")
        self._save = Path(env["TRADEWIND_SAVE"])
        self._asked = False
        self._serving = Serving(port=self.port)
        self._begun = clock.stopwatch()
        self._process: subprocess.Popen[bytes] | None = None
        self._said = ""

    def ask(self, *_: object) -> None:
        """From a signal handler."""
        self._asked = True

    def run(self) -> int:
        command = str(self.spec.job.get("engine") or "")
        self._tell(state="starting")
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}" if _is_simple(command) else command],
            env={**self._env, "PORT": str(self.port), "HOST": self.host},
            start_new_session=True,
        )
        try:
            return self._come_up() or self._serve()
        finally:
            self._end()

    def _come_up(self) -> int:
        while not self._asked:
            code = self._ended()
            if code is not None:
                return code
            if self._is_healthy():
                self._tell(state="warming", answered_s=self._up_s())
                return self._warm_up()
            if self._up_s() >= self.spec.up_within_s:
                _say(
                    f"the health check GET {self.spec.health} at port {self.port} did not pass"
                    f" within {self.spec.up_within_s} s; its last answer: {self._said}"
                    f"{self._elsewhere()}"
                )
                return 1
            clock.sleep(_LOOK_S)
        return 0

    def _elsewhere(self) -> str:
        """An engine on loopback is up, and nobody reaches it."""
        if self.host.startswith("127."):
            return ""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), _PROBE_S):
            return f". It listens at 127.0.0.1 only: make it listen at $HOST, here {self.host}"
        return ""

    def _warm_up(self) -> int:
        begun = clock.stopwatch()
        if self.spec.warm_up:
            try:
                status, said = self._request(
                    "POST", self.spec.warm_path, self.spec.warm_up, self.spec.up_within_s
                )
            except (OSError, http.client.HTTPException) as error:
                _say(f"warming up failed: {error}")
                return 1
            if status != http.HTTPStatus.OK:
                _say(f"warming up was answered with {status}: {said[:500]}")
                return 1
        self._tell(state="ready", warm_s=clock.stopwatch() - begun)
        return 0

    def _serve(self) -> int:
        ready, good, looked = clock.stopwatch(), False, 0.0
        while not self._asked:
            code = self._ended()
            if code is not None:
                return code
            now = clock.stopwatch()
            if now - looked >= _FIGURES_S:
                looked = now
                self._figures("ready")
            if not good and now - ready >= _GOOD_S:
                good = True
                self._get_further()
            clock.sleep(_LOOK_S)
        return self._drain()

    def _drain(self) -> int:
        within_s = self.within_s()
        begun = clock.stopwatch()
        quiet_since: float | None = None
        while clock.stopwatch() - begun < within_s and self._ended() is None:
            figures = self._figures("draining")
            now = clock.stopwatch()
            if figures.running or figures.waiting or figures.running is None:
                quiet_since = None  # an engine that does not tell has all of the time
            elif quiet_since is None:
                quiet_since = now
            elif now - quiet_since >= _QUIET_S:
                break
            clock.sleep(_LOOK_S)
        return 0

    def within_s(self) -> float:
        """For answers that are under way."""
        most_s = float(self.spec.drain_s)
        with suppress(OSError, TypeError, KeyError, *UNREADABLE):
            within_s = float(json.decode(self._save.read_bytes())["within_s"])
            return min(within_s - min(within_s * _MARGIN, _MOST_MARGIN_S), most_s)
        return most_s

    def _figures(self, state: str) -> EngineFigures:
        figures = EngineFigures()
        with suppress(OSError, http.client.HTTPException):
            status, text = self._request("GET", self.spec.metrics, "", _PROBE_S)
            if status == http.HTTPStatus.OK:
                figures = enginefigures.read(text)
        self._tell(
            state=state,
            running=figures.running,
            waiting=figures.waiting,
            cache=figures.cache,
            tokens_in=figures.tokens_in or self._serving.tokens_in,
            tokens_out=figures.tokens_out or self._serving.tokens_out,
        )
        return figures

    def _is_healthy(self) -> bool:
        try:
            status, text = self._request("GET", self.spec.health, "", _PROBE_S)
        except (OSError, http.client.HTTPException) as error:
            self._said = f"none ({error})"
            return False
        self._said = f"{status} {' '.join(text.split())[:200]}"
        return status == http.HTTPStatus.OK

    def _request(self, method: str, path: str, body: str, within_s: float) -> tuple[int, str]:
        link = http.client.HTTPConnection(self.host, self.port, timeout=within_s)
        try:
            headers = {"Content-Type": "application/json"} if body else {}
            link.request(method, path, body or None, headers)
            answer = link.getresponse()
            return answer.status, answer.read(1 << 20).decode(errors="replace")
        finally:
            link.close()

    def _ended(self) -> int | None:
        """Its exit code, never 0: an engine that has ended does not serve."""
        assert self._process is not None
        code = self._process.poll()
        if code is None:
            return None
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        _say(f"the engine ended by itself, {how}, after {self._up_s():.1f} s")
        return 128 - code if code < 0 else code or 1

    def _end(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        for which in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, which)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_KILL_S)
                return

    def _up_s(self) -> float:
        return clock.stopwatch() - self._begun

    def _tell(self, **changes: Any) -> None:
        from msgspec.structs import replace as replaced

        self._serving = replaced(self._serving, up_s=self._up_s(), **changes)
        with suppress(NoAccess):  # a full disk: told again in a moment
            replace(self._tells, json.encode(self._serving))

    def _get_further(self) -> None:
        """So that failures from now on are new ones. By the wall clock, which another engine after
        this one is later by."""
        if self._progress:
            saved = int(clock.now().timestamp())
            with suppress(NoAccess):
                replace(Path(self._progress), json.encode({"step": saved, "saved": saved}))


def _is_simple(command: str) -> bool:
    """One command and nothing for a shell to do after it: then no shell stands between us."""
    return (
        bool(command) and not set(command) & set("\n;&|(){}<>`") and "=" not in command.split()[0]
    )


def _say(words: str) -> None:
    print(f"tradewind: {words}", flush=True)  # noqa: T201 -- into the log of the replica


def main() -> int:
    env = dict(os.environ)
    try:
        spec = json.decode(env[VARIABLE].encode(), type=EngineSpec)
    except UNREADABLE as error:
        _say(f"what the service says of its engine cannot be read: {error}")
        return 2
    engine = Engine(spec, env)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, engine.ask)
    return engine.run()


if __name__ == "__main__":
    sys.exit(main())
