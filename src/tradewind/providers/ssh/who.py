"""By what address other hosts reach this one: setup has found it. It travels with first.py: nothing
but the standard library."""

from __future__ import annotations

import os
from typing import Any


def who(fetch: Any) -> dict[str, Any]:
    return {"host": os.environ["TRADEWIND_HOST"]}
