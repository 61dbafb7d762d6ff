"""Which pod this is, by the variables that its Job has given it. It travels with first.py: nothing
but the standard library."""

from __future__ import annotations

import os
from typing import Any


def who(fetch: Any) -> dict[str, Any]:
    rank = int(os.environ["JOB_COMPLETION_INDEX"])
    return {
        "machine_id": f"{os.environ['TRADEWIND_MACHINE_STEM']}-{rank}",
        "rank": rank,
        "host": os.environ["TRADEWIND_HOST"],
    }
