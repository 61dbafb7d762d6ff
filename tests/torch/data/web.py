"""What a good web server answers for a file, and how it may go wrong."""

from __future__ import annotations

import hashlib
import random
import re
import threading
from typing import Any

from tests.local_http import Reply, Request


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class File:
    """Knows ranges. `troubles` are given out one a request: a status, "cut" (hangs up half-way),
    or a number of seconds to wait first."""

    def __init__(self, data: bytes, *troubles: Any, ranges: bool = True, tag: str = '"1"') -> None:
        self.data, self.troubles, self.ranges, self.tag = data, list(troubles), ranges, tag
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        asked = request.headers.get("range", "")
        with self._lock:
            self.asked.append(asked)
            trouble = self.troubles.pop(0) if self.troubles else None
        if isinstance(trouble, int) and trouble >= 400:
            return Reply(status=trouble)
        headers = {"etag": self.tag} if self.tag else {}
        body, status = self.data, 200
        same = request.headers.get("if-range", self.tag) == self.tag
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", asked) if self.ranges and same else None
        if span:
            start, stop = int(span[1]), min(int(span[2]) + 1, len(self.data))
            if start >= len(self.data):
                return Reply(status=416, headers={"content-range": f"bytes */{len(self.data)}"})
            body, status = self.data[start:stop], 206
            headers["content-range"] = f"bytes {start}-{stop - 1}/{len(self.data)}"
        cut = len(body) // 2 if trouble == "cut" else None
        delay_s = trouble if isinstance(trouble, float) else 0.0
        return Reply(body, status, headers, cut=cut, delay_s=delay_s)
