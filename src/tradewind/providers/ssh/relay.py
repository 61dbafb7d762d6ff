"""Connections by which hosts reach a store on this computer: nothing but SSH is needed for it.

Each is one ssh that has the host's server make a socket there, which leads to one of ours
(store/relay.py). At its other end a program waits for the connection to end, and removes the socket
then: also when this process is killed, since that closes what it reads from. So a host has its way
to the store for as long as some controller looks after the run, and not a moment longer.
"""

from __future__ import annotations

import atexit
import subprocess
import tempfile
import threading
from contextlib import suppress
from typing import IO

from msgspec import json

from tradewind import store as stores
from tradewind.base import clock
from tradewind.base.errors import InvalidValue, MissingExtra, NoAccess, SourceFailed
from tradewind.model.run import Request
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh import program, troubles
from tradewind.providers.ssh.client import Client
from tradewind.providers.ssh.there.main import ANSWER
from tradewind.providers.ssh.there.relay import FOLDER
from tradewind.store.relay import Relay
from tradewind.store.relayed import Ticket

TICKET = "relay.json"
_TIMEOUT_S = 60.0
_MOST_PATH = 107
_NAME_BYTES = 4


class Tunnel:
    """One connection. Raises NoAccess, Unreachable or SourceFailed where it cannot be."""

    def __init__(self, client: Client, leads_to: str) -> None:
        self._name = clock.secret(_NAME_BYTES).hex()
        path = check_path(client, self._name)
        options = ["-T", "-o", "ControlMaster=no", "-R", f"{path}:{leads_to}"]
        command = [
            *clients.ssh(client.host.target, *options),
            program.command(client.host.python_at),
        ]
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- as long as we are
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said
            )
        except FileNotFoundError:
            raise MissingExtra(
                "ssh is not installed here", hint="install OpenSSH's client (openssh-client)"
            ) from None
        try:
            self._wait_for_it(client)
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            self._process.wait(timeout=5)  # the program there ends, and with it ssh
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()

    def _wait_for_it(self, client: Client) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        watchdog = threading.Timer(_TIMEOUT_S, self._process.kill)
        watchdog.start()
        try:
            with suppress(BrokenPipeError):
                stdin.write(client.question("relay", socket=self._name))
                stdin.flush()
            told = next((each for each in stdout if each.startswith(ANSWER.encode())), b"")
        finally:
            watchdog.cancel()
        doing = f"connecting the store to host {client.name}"
        if not told:
            self._process.wait()
            self._said.seek(0)
            said = self._said.read().decode("utf-8", "replace")
            if self._process.returncode == 255:
                raise troubles.error(client.name, client.host.target, said, doing)
            raise SourceFailed(f"{doing}: {said.strip() or 'it said nothing'}")
        answer = json.decode(told.removeprefix(ANSWER.encode()))
        if "error" in answer:
            raise SourceFailed(f"{doing}: {answer['error']}")
        if not answer["there"]:
            raise NoAccess(
                f"{doing}: its SSH server makes no socket for us",
                hint="AllowStreamLocalForwarding yes (the default) in its sshd_config, or a store"
                " that hosts reach otherwise: a shared folder, or a bucket",
            )


class Tunnels:
    """Of one store, to the hosts that need one. Nothing is begun before one is wanted."""

    def __init__(self, store_url: str) -> None:
        self._store_url = store_url
        self._lock = threading.Lock()
        self._relay: Relay | None = None
        self._open: dict[str, Tunnel] = {}
        self._opening: dict[str, threading.Lock] = {}

    def open(self, client: Client) -> None:
        """Unless there is one."""
        with self._lock:
            opening = self._opening.setdefault(client.name, threading.Lock())
        with opening:
            known = self._open.get(client.name)
            if known is not None and known.is_open:
                return
            self._closed(client.name)
            leads_to = str(self._made().socket())
            try:
                made = Tunnel(client, leads_to)
            except NoAccess:
                client.ask("make", f"making a folder on host {client.name}")  # it may be missing
                made = Tunnel(client, leads_to)
            with self._lock:
                self._open[client.name] = made

    def keep(self, names: set[str]) -> None:
        """Closes all others."""
        with self._lock:
            others = set(self._open) - names
        for name in others:
            self._closed(name)

    def ticket(self, client: Client, request: Request) -> str:
        """What a machine is given to ask with."""
        token = self._made().token(request.run_id, request.launch_id)
        ticket = Ticket(
            sockets=client.at(FOLDER),
            run_id=request.run_id,
            launch_id=request.launch_id,
            token=token,
        )
        return json.encode(ticket).decode()

    def tell(self, key: str, text: str) -> None:
        """Into the store, unless something is there."""
        self._made().store.create(key, text.encode())

    def close(self) -> None:
        self.keep(set())
        with self._lock:
            relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()

    def _closed(self, name: str) -> None:
        with self._lock:
            known = self._open.pop(name, None)
        if known is not None:
            known.close()

    def _made(self) -> Relay:
        with self._lock:
            if self._relay is None:
                self._relay = Relay(stores.open(self._store_url))
                atexit.register(self.close)
            return self._relay


def tried(client: Client, store_url: str) -> None:
    """Raises what keeps this host from reaching the store so."""
    tunnels = Tunnels(store_url)
    try:
        tunnels.open(client)
    finally:
        tunnels.close()


def check_path(client: Client, name: str = "0" * 2 * _NAME_BYTES) -> str:
    """Where a socket lies there."""
    path = client.at(FOLDER, name)
    if len(path.encode()) > _MOST_PATH:
        raise InvalidValue(
            f"the home folder on {client.host.target} has too long a name for a socket: {path}",
            hint="a store that hosts reach otherwise: a shared folder, or a bucket",
        )
    return path
