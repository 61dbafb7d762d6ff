"""What listens on one address, reachable on another: for servers that know only loopback."""

from __future__ import annotations

import contextlib
import socket
import threading

Address = tuple[str, int]


def forward(listen: Address, to: Address) -> None:
    """Until the process ends."""
    door = socket.create_server(listen)
    threading.Thread(target=_accept, args=(door, to), daemon=True).start()


def _accept(door: socket.socket, to: Address) -> None:
    while True:
        near, _ = door.accept()
        try:
            far = socket.create_connection(to)
        except OSError:
            near.close()
            continue
        for pair in ((near, far), (far, near)):
            threading.Thread(target=_copy, args=pair, daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 18):
            target.sendall(data)
    for each, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            each.shutdown(how)
