"""A question to a host, and its answer: one connection by the user's own OpenSSH, with their
configuration, keys, agent, jump hosts and known hosts. Nobody is asked for a password, and no host
key is taken that the user does not know.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tradewind.base.errors import MissingExtra, NoAccess, SourceFailed, TradewindError
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.ssh import names, program, troubles
from tradewind.providers.ssh.footprint import Footprint, Host
from tradewind.providers.ssh.there.main import ANSWER

OPTIONS = (
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=10",
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
)
"""All but the first are only so that an answer, or its lack, comes in time."""
_TIMEOUT_S = 120.0
_AT_ONCE = 32
_SSH_PORT = 22
T = TypeVar("T")
Answer = dict[str, Any]


def ssh(target: str, *options: str) -> list[str]:
    """The command, but for what is run there."""
    named = [part for each in OPTIONS for part in ("-o", each)]
    return ["ssh", *options, *named, *names.arguments(target)]


class Client:
    """One host, for one owner."""

    def __init__(self, name: str, host: Host, owner: str, folder: str = "") -> None:
        self.name, self.host = name, host
        self._owner, self._folder = owner, folder

    def ask(self, do: str, doing: str, *, payload: bytes = b"", **more: Any) -> Answer:
        """`payload`: what is sent behind the question. Raises NoAccess or Unreachable where nothing
        was done, OutcomeUnknown where nobody knows, and SourceFailed where the host itself could
        not."""
        question = self.question(do, **more, **({"payload": len(payload)} if payload else {}))
        command = [*ssh(self.host.target, "-T"), program.command(self.host.python_at)]
        try:
            done = subprocess.run(
                command,
                input=question + payload,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except FileNotFoundError:
            raise MissingExtra(
                "ssh is not installed here", hint="install OpenSSH's client (openssh-client)"
            ) from None
        except subprocess.TimeoutExpired:
            raise OutcomeUnknown(
                f"{doing}: host {self.name} has not answered in {_TIMEOUT_S:.0f} s"
            ) from None
        return self._answer(done, doing)

    def question(self, do: str, **more: Any) -> bytes:
        """As it goes over the connection."""
        return program.told({"do": do, "owner": self._owner, "folder": self._folder, **more})

    def at(self, *parts: str) -> str:
        """A path there, below the folder of this owner."""
        return "/".join((self.host.root, self._owner, *parts))

    def _answer(self, done: subprocess.CompletedProcess[bytes], doing: str) -> Answer:
        out, said = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
        lines = [line for line in out.splitlines() if line.startswith(ANSWER)]
        if not lines:
            if done.returncode == 255:
                raise troubles.error(self.name, self.host.target, said, doing)
            if program.NO_PYTHON in out.splitlines():
                raise NoAccess(
                    f"{doing}: host {self.name} has no Python 3.11 or newer",
                    hint="install one there, or --python FOLDER says where it is",
                )
            last = (said or out).strip().splitlines()[-1:] or ["it said nothing"]
            raise OutcomeUnknown(f"{doing}: host {self.name} ended with {last[0]}")
        answer: Answer = json.loads(lines[-1].removeprefix(ANSWER))
        if "error" in answer:
            raise SourceFailed(
                f"{doing}: host {self.name}: {answer['error']}",
                hint="tradewind doctor ssh looks at the hosts",
            )
        return answer


def clients(footprint: Footprint, owner: str) -> dict[str, Client]:
    return {
        name: Client(name, host, owner, footprint.folder) for name, host in footprint.hosts.items()
    }


def each(
    several: Mapping[str, Client], ask: Callable[[Client], T]
) -> dict[str, T | TradewindError]:
    """All of them at once, by name: an answer, or why there is none."""

    def one(client: Client) -> T | TradewindError:
        try:
            return ask(client)
        except TradewindError as error:
            return error

    if not several:
        return {}
    with ThreadPoolExecutor(min(_AT_ONCE, len(several))) as pool:
        return dict(zip(several, pool.map(one, several.values()), strict=True))


def ports(target: str) -> list[int]:
    """At which a host's SSH server may be: as this computer's configuration has it, and the usual
    one, which is what the others see where a gateway leads from one to the other."""
    try:
        command = ["ssh", "-G", *names.arguments(target)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return [_SSH_PORT]
    lines = [line.split() for line in told.stdout.splitlines()]
    found = [int(line[1]) for line in lines if line[:1] == ["port"] and line[1].isdecimal()]
    return list(dict.fromkeys([*found, _SSH_PORT]))
