"""A door before a real S3 server that fails a share of all requests: half of those before they are
carried out, half after."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.store.door import Answer, Door, serving


@contextmanager
def flaky(port: int, share: float, seed: int = 0) -> Iterator[int]:
    """The port of the door; `port` is that of the server, on 127.0.0.1."""
    chosen, lock = random.Random(seed), threading.Lock()

    class Flaky(Door):
        inner = port

        def answer(self, body: bytes) -> Answer:
            with lock:
                bad, before = chosen.random() < share, chosen.random() < 0.5
            if bad and before:
                return 503, [], b""
            answer = self.passed(body)
            return (500, [], b"") if bad else answer

    with serving(Flaky) as found:
        yield found
