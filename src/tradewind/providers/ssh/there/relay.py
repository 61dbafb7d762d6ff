"""Sockets on a host that lead to a store on the user's own computer: the SSH server makes one for
each connection that asks for it, in <owner>/relay/. This keeps the connection, and removes the
socket when it ends, however it ends: then nobody answers there any more.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path

from tradewind.providers.ssh.there import folder as folders

FOLDER = "relay"


def made(owned: Path) -> Path:
    place = owned / FOLDER
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


def is_there(owned: Path, name: str) -> bool:
    """Whether the server has made it. Those that nobody listens at any more are removed."""
    own = owned / FOLDER / folders.check(name)
    for each in made(owned).iterdir():
        if each != own and not _answers(each):
            with contextlib.suppress(OSError):
                each.unlink()
    return own.is_socket()


def hold(owned: Path, name: str) -> None:
    """Until the connection ends."""
    try:
        while sys.stdin.buffer.read(1 << 10):
            pass
    finally:
        with contextlib.suppress(OSError):
            (owned / FOLDER / folders.check(name)).unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asks:
        asks.settimeout(1.0)
        try:
            asks.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # it may be only slow
    return True
