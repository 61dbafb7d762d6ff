"""Which rank of a leg this is, by the variables that Slurm sets for each task. It travels with
first.py: nothing but the standard library."""

from __future__ import annotations

import os
import socket
from typing import Any


def address() -> str:
    """By which the other nodes reach this one: as its name in Slurm, or the computer's own, is
    looked up; else where the system would send from."""
    for name in (os.environ.get("SLURMD_NODENAME", ""), socket.gethostname()):
        try:
            found = socket.getaddrinfo(name, None, socket.AF_INET) if name else []
        except OSError:
            continue
        for each in found:
            if not str(each[4][0]).startswith("127."):
                return str(each[4][0])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            route.connect(("192.0.2.1", 9))  # sends nothing
            return str(route.getsockname()[0])
    except OSError:
        return socket.gethostname()


def who(fetch: Any) -> dict[str, Any]:
    rank = int(os.environ["SLURM_PROCID"])
    return {
        "machine_id": f"{os.environ['TRADEWIND_MACHINE_STEM']}-{rank}",
        "rank": rank,
        "host": address(),
    }
