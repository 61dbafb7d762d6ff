"""A server whose every answer is larger than any memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.store.door import Door, serving

SAID = 1 << 42
ENOUGH = 512
"""MiB that a reader who takes everything has got when the server gives up on it."""
_BLOCK = b"x" * (1 << 20)


class Endless(Door):
    sent = 0
    """MiB of all answers."""
    gone: threading.Event
    """Set once a reader has hung up."""

    def _stream(self) -> None:
        self.send_response_only(200)
        self.send_header("Content-Length", str(SAID))
        self.send_header("ETag", '"one"')
        self.send_header("Last-Modified", "Mon, 16 Nov 2026 12:00:00 GMT")
        self.end_headers()
        self.close_connection = True
        try:
            while type(self).sent < ENOUGH:
                self.wfile.write(_BLOCK)
                type(self).sent += 1
        except OSError:
            self.gone.set()

    do_GET = _stream  # noqa: N815


@contextmanager
def endless() -> Iterator[tuple[str, type[Endless]]]:
    """Its address, and what it has seen."""
    door = type("Fresh", (Endless,), {"sent": 0, "gone": threading.Event()})
    with serving(door) as port:
        yield f"http://127.0.0.1:{port}", door
