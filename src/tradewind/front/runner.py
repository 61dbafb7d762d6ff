"""Real HAProxy in a folder of its own: started, told of changes, looked at, stopped.

It outlives whoever started it: a controller that dies leaves the front serving, and the next one
that is given the folder adopts it. Nobody but its user can write to its socket.

    front.cfg, *.map, *.lua       what it was told; API keys are there as hashes
    admin.sock                   its runtime socket, 0600
    requests.jsonl               a line a request (`requests.read`)
    haproxy.log                  its own messages
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import resources
from pathlib import Path

from tradewind.base import clock, ownfiles, processes
from tradewind.base.errors import (
    BadFile,
    InvalidValue,
    MissingExtra,
    NoAccess,
    SourceFailed,
    TradewindError,
)
from tradewind.front import changes, config, requests, stats
from tradewind.front.routes import Backend, Front, Key, State
from tradewind.front.stats import Health

_LONGEST_SOCKET = 90  # of the 108 bytes of a Unix socket's path, HAProxy needs some for a new one's
_START_S = 60.0
_ANSWER_S = 30.0
_STEP_S = 0.02


def program() -> str:
    """Where HAProxy is. MissingExtra where it is not."""
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
    found = shutil.which("haproxy", path=path)
    if found is None:
        raise MissingExtra(
            "HAProxy is not installed, and the front of a service is HAProxy",
            hint="apt install haproxy (2.6 or later, with Lua, as in Debian 12 and Ubuntu 24.04)",
        )
    return found


class Runner:
    """One front in one folder. Not for several threads at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._config = self.folder / "front.cfg"
        self._pid_file = self.folder / "haproxy.pid"
        self._log = self.folder / "haproxy.log"
        self._socket = self.folder / "admin.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self._front: Front | None = None
        self.places = config.Places(
            socket=str(self._socket),
            hold=str(self.folder / "hold.lua"),
            order=str(self.folder / "order.lua"),
            keys=str(self.folder / "keys.map"),
            rates=str(self.folder / "rates.map"),
            spent=str(self.folder / "spent.map"),
        )
        if len(str(self._socket)) > _LONGEST_SOCKET:
            raise InvalidValue(
                f"the path of {self.folder} is too long for the socket of a front",
                hint=f"at most {_LONGEST_SOCKET - len('/admin.sock')} characters",
            )

    # ------------------------------------------------------------------ the process

    def start(self, front: Front) -> None:
        """Brings HAProxy up, or takes over the one that runs here and tells it what is new.

        New keys and rates by its socket, anything else by a reload, which loses nothing: the old
        process finishes its answers, and requests wait until their replicas have been added again.
        """
        found = program()
        before = self._config.read_text() if self._config.exists() else None
        _check_certificate(front)
        self._write(front)
        self._check(found, front)
        self._front = front
        if not self.alive():
            self._launch(found, front)
        elif before != self._config.read_text():
            self._reload()
        else:
            self._tell_maps(front)

    def alive(self) -> bool:
        """It answers at its socket."""
        if self._process is not None:
            self._process.poll()  # or it would stay a zombie
        try:
            self.command("show info")
        except SourceFailed:
            return False
        return True

    def running(self) -> bool:
        """Its process is there, though it may not answer at its socket any more."""
        return self._master() is not None

    def let_finish(self) -> None:
        """The port is free at once; the process ends with its last answer."""
        pid = self._master()
        if pid is not None:
            self._signal(pid, signal.SIGUSR1)

    def adopt(self, front: Front) -> None:
        """It runs with this configuration already."""
        self._front = front

    def stop(self, *, finish_s: float = 0.0) -> None:
        """Running answers may take that long to finish; the port is free at once."""
        pid = self._master()
        if pid is None:
            return
        if finish_s:
            self._signal(pid, signal.SIGUSR1)
            if self._wait(lambda: self._master() is None, finish_s):
                return
        self._signal(pid, signal.SIGTERM)
        if not self._wait(lambda: self._master() is None, _ANSWER_S):
            self._signal(pid, signal.SIGKILL)

    def _launch(self, found: str, front: Front) -> None:
        ownfiles.make_folder(self.folder)
        self._socket.unlink(missing_ok=True)
        with (
            ownfiles.append(self.folder / "requests.jsonl") as out,
            ownfiles.append(self._log) as errors,
        ):
            begun = errors.tell()
            self._process = subprocess.Popen(
                [found, "-W", "-db", "-f", str(self._config), "-p", str(self._pid_file)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,  # an interrupted terminal does not end the front
            )
        ownfiles.replace(self._pid_file, str(self._process.pid).encode())
        process = self._process
        self._wait(lambda: process.poll() is not None or self.alive(), _START_S)
        if process.poll() is not None or not self.alive():
            with self._log.open("rb") as log:
                log.seek(begun)
                said = log.read(1 << 16).decode(errors="replace")
            raise _trouble(said, front)

    def _reload(self) -> None:
        (before, _), master = self._worker(), self._master()
        open_ = (Health.UP, Health.DOWN)  # those that drain finish in the old process
        replicas = [each.wanted() for each in self.look().replicas if each.health in open_]
        replicas = [each for each in replicas if each.state is State.READY]
        if master is None:
            raise SourceFailed(f"HAProxy of {self.folder} is gone", hint="start it again")
        self._signal(master, signal.SIGUSR2)

        def taken_over() -> bool:
            # Until the old process has let go of the socket, either may answer: what it says, and
            # who it is, is asked in one breath, and what the wrong one was told is told again.
            with suppress(SourceFailed):
                self.apply(replicas)
            worker, there = self._worker()
            return worker not in ("", before) and {each.id for each in replicas} <= there

        if not self._wait(taken_over, _ANSWER_S):
            raise SourceFailed(
                "HAProxy did not take its new configuration, and serves with the old one",
                hint=f"{self._log} says why",
            )

    def _worker(self) -> tuple[str, set[str]]:
        """The process that answers, and its replicas that are open; empty where none does."""
        worker, there = "", set()
        with suppress(SourceFailed):
            for line in self.command(
                f"show info; show servers state {config.REPLICAS}"
            ).splitlines():
                words = line.split()
                if words[:1] == ["Pid:"]:
                    worker = words[1]
                elif words[1:2] == [config.REPLICAS] and words[6] == "0":
                    there.add(words[3])
        return worker, there

    def _master(self) -> int | None:
        """Its process id, if that is alive and is HAProxy."""
        if self._process is not None:
            return self._process.pid if self._process.poll() is None else None
        try:
            pid = int(self._pid_file.read_text().split()[0])
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except (OSError, ValueError, IndexError):
            return None
        return pid if name == "haproxy" and processes.descent(pid) else None

    @staticmethod
    def _signal(pid: int, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, which)

    @staticmethod
    def _wait(done: Callable[[], bool], within_s: float) -> bool:
        until = clock.stopwatch() + within_s
        while not done():
            if clock.stopwatch() > until:
                return False
            clock.sleep(_STEP_S)
        return True

    # ------------------------------------------------------------------ what it is told

    def apply(self, wanted: Iterable[Backend]) -> list[str]:
        """One pass towards these replicas; what was done. Nothing left to do: an empty list.

        Repeat it: a replica that is no longer wanted is removed when its last answer is over.
        """
        assert self._front is not None, "start comes first"
        wanted = list(wanted)
        done = []
        for change in changes.changes(self._front, self.look().replicas, wanted):
            # In one breath, so that one process takes all of them, also while it is reloaded.
            said = self.command("; ".join(change.commands))
            if "still has connections" in said.lower():
                continue  # idle ones are closed by and by: the next pass tries again
            _check_said(change.commands[0], said)
            done.append(change.why)
        return done

    def spend(self, key: Key) -> None:
        """The budget of this key is spent: 429 from now on, until `allow`."""
        self._spent({**self._map(self.places.spent), key.name: "spent"})

    def allow(self, key: Key) -> None:
        left = self._map(self.places.spent)
        left.pop(key.name, None)
        self._spent(left)

    def _spent(self, wanted: dict[str, str]) -> None:
        ownfiles.replace(Path(self.places.spent), config.map_text(wanted).encode())
        self._tell_map(self.places.spent, wanted)

    def _tell_maps(self, front: Front) -> None:
        if not front.keys:
            return
        self._tell_map(self.places.keys, config.keys_map(front.keys))
        self._tell_map(self.places.rates, config.rates_map(front))

    def _tell_map(self, path: str, wanted: dict[str, str]) -> None:
        there = self._map(path)
        for key in there.keys() - wanted.keys():
            self._map_command("del", path, key)
        for key, value in wanted.items():
            if key not in there:
                self._map_command("add", path, f"{key} {value}")
            elif there[key] != value:
                self._map_command("set", path, f"{key} {value}")

    def _map(self, path: str) -> dict[str, str]:
        said = self.command(f"show map {path}")
        rows = [line.split() for line in said.splitlines() if line.strip()]
        if any(len(row) != 3 for row in rows):
            raise SourceFailed(f"HAProxy has no map {path}: {said.strip()}")
        return {key: value for _, key, value in rows}

    def _map_command(self, verb: str, path: str, rest: str) -> None:
        command = f"{verb} map {path} {rest}"
        _check_said(command, self.command(command))

    def command(self, line: str) -> str:
        """One command to its runtime socket, and all it says."""
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(_ANSWER_S)
                link.connect(str(self._socket))
                link.sendall(line.encode() + b"\n")
                return b"".join(iter(lambda: link.recv(1 << 16), b"")).decode(errors="replace")
        except OSError as error:
            raise SourceFailed(
                f"HAProxy does not answer at {self._socket}: {error.strerror or error}",
                hint=f"is it running? {self._log} says more",
            ) from None

    # ------------------------------------------------------------------ what it says

    def look(self) -> stats.Seen:
        return stats.read(
            self.command("show stat"),
            self.command(f"show servers state {config.REPLICAS}"),
            self.command("show held"),
        )

    def requests(self) -> Iterator[requests.Request]:
        path = self.folder / "requests.jsonl"
        if path.exists():
            with path.open("rb") as lines:
                yield from requests.read(lines)

    # ------------------------------------------------------------------ its files

    def _write(self, front: Front) -> None:
        ours = resources.files("tradewind.front")
        for path, data in {
            self.places.hold: ours.joinpath("hold.lua").read_bytes(),
            self.places.order: ours.joinpath("order.lua").read_bytes(),
            self.places.keys: config.map_text(config.keys_map(front.keys)).encode(),
            self.places.rates: config.map_text(config.rates_map(front)).encode(),
            str(self._config): config.text(front, self.places).encode(),
        }.items():
            ownfiles.replace(Path(path), data)
        if not Path(self.places.spent).exists():
            ownfiles.replace(Path(self.places.spent), b"")

    def _check(self, found: str, front: Front) -> None:
        done = subprocess.run(
            ["haproxy", "-c", "-f", str(self._config)],
            executable=found,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise _trouble(done.stderr + done.stdout, front)


def _check_certificate(front: Front) -> None:
    if front.certificate is None:
        return
    try:
        Path(front.certificate).read_bytes()
    except OSError as error:
        raise NoAccess(
            f"the certificate {front.certificate} cannot be read: {error.strerror or error}",
            hint="a PEM file with the certificate, its chain and its private key",
        ) from None


def _check_said(command: str, said: str) -> None:
    """HAProxy says nothing, or that it was done; anything else is a refusal."""
    good = ("New server registered.", "Server deleted.", "")
    bad = [line for line in said.splitlines() if line.strip() not in good]
    if bad:
        what = command.split(" check")[0]
        raise SourceFailed(f"HAProxy refuses {what!r}: {' '.join(bad)}")


def _trouble(said: str, front: Front) -> TradewindError:
    """What HAProxy's alerts mean."""
    alerts = [line for line in said.splitlines() if "[ALERT]" in line] or said.splitlines()
    text = " ".join(" ".join(alerts).split())[:600]
    where = f"{front.address}:{front.port}"
    if "Address already in use" in text or "cannot bind" in text.lower():
        return NoAccess(
            f"the front cannot listen at {where}: "
            + ("the port is taken" if "in use" in text else text),
            hint="choose another port; `ss -ltnp` shows who has this one",
        )
    if front.certificate is not None and front.certificate in text:
        return BadFile(
            f"HAProxy cannot use the certificate {front.certificate}: {text}",
            hint="a PEM file with the certificate, its chain and its private key, in this order",
        )
    if "lua-load" in text or "'lua" in text:
        return MissingExtra(
            f"this HAProxy has no Lua, which holds requests while there is no replica: {text}",
            hint="apt install haproxy (Debian's and Ubuntu's have it)",
        )
    return SourceFailed(
        f"HAProxy did not start: {text}", hint="2.6 or later is needed: haproxy -v says which it is"
    )
