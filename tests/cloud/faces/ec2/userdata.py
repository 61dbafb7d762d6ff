"""What a machine of EC2 was given to run first."""

from __future__ import annotations

import base64
import gzip
from typing import Any


def user_data(told: Any) -> bytes:
    """Of moto's instance, decoded."""
    given = told.user_data
    if not given:
        return b""
    raw = base64.b64decode(str(given))
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
