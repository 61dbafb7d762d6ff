"""By what address other machines reach this one. It travels with first.py: nothing but the standard
library. Which machine it is stands in what it was told: Lambda has no metadata service that says
so."""

from __future__ import annotations

import socket
from typing import Any


def who(fetch: Any) -> dict[str, Any]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        route.connect(("192.0.2.1", 9))  # sends nothing; the system chooses its own address for it
        return {"host": route.getsockname()[0]}
