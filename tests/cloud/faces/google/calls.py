"""One request to one of Google's APIs, as far as it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.cloud.face import Call
from tests.cloud.faces.google.discovery import Method
from tests.cloud.faces.google.identity import Who


@dataclass
class GoogleCall(Call):
    method: Method | None = None
    params: dict[str, str] = field(default_factory=dict)
    """Of the path and of the query."""
    query: dict[str, str] = field(default_factory=dict)
    json: Any = None
    who: Who = field(default_factory=lambda: Who(""))
    project: str = ""
    """Its id."""
    passed: bool = False
    """Who asks may, and it can be read."""
    until: float | None = None
    """How long it may wait for its answer."""
