"""The server of these tests says nothing of clients that hung up."""

from __future__ import annotations

import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from tests.local_http import QuietServer


class _Waits(BaseHTTPRequestHandler):
    """Reads until the client is gone."""

    seen: threading.Event

    def handle(self) -> None:
        try:
            super().handle()
        finally:
            self.seen.set()


def test_a_client_that_resets_its_connection_leaves_no_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    _Waits.seen = threading.Event()
    server = QuietServer(("127.0.0.1", 0), _Waits)
    server.daemon_threads = False  # closing the server waits for them
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        # closed with SO_LINGER of zero: a reset, as of a client that throws away half an answer
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert _Waits.seen.wait(30)
    server.shutdown()
    server.server_close()
    assert "Traceback" not in capfd.readouterr().err


def test_an_error_of_the_server_itself_is_still_said(capfd: pytest.CaptureFixture[str]) -> None:
    server = QuietServer(("127.0.0.1", 0), _Waits)
    try:
        raise ValueError("a mistake in a test's own answer")
    except ValueError:
        server.handle_error(None, ("127.0.0.1", 1))
    server.server_close()
    assert "a mistake in a test's own answer" in capfd.readouterr().err
