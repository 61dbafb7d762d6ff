"""A request by plain urllib, as a test of a table sends it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tests.cloud.control import Control
from tests.cloud.faces.rest.face import KEY


def ask(
    cloud: Control, method: str, path: str, body: Any = None, auth: str = f"Bearer {KEY}"
) -> tuple[int, Any]:
    """Status and JSON."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": auth, "Content-Type": "application/json"}
    request = urllib.request.Request(cloud.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
