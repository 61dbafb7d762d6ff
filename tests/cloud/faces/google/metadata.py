"""The metadata server of an instance (169.254.169.254, metadata.google.internal).

Whoever does not say `Metadata-Flavor: Google` gets nothing. `?recursive=true`, `?alt=`, and
`?wait_for_change=true` with `last_etag` and `timeout_sec` are understood. Known lies: the identity
token is no token; of maintenance there is the event and nothing else; times and sizes are few.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.cloud.face import Answer, NotYet
from tests.cloud.faces.google.identity import Who
from tests.cloud.faces.google.state import State
from tests.cloud.world import Machine

_ROOT = "/computeMetadata/v1"
_HEADERS = [("Metadata-Flavor", "Google"), ("Server", "Metadata Server for VM")]


class MetadataServer:
    def __init__(self, state: State, tree: Callable[[Machine], dict[str, Any]]) -> None:
        """`tree`: what a machine may know, as it is at this moment."""
        self._state, self._tree = state, tree

    def answer(
        self, machine: Machine, method: str, target: str, headers: Mapping[str, str]
    ) -> Answer | None:
        asked = urlsplit(target)
        query = dict(parse_qsl(asked.query, keep_blank_values=True))
        if asked.path in ("", "/"):  # by which programs see where they are
            return Answer(200, _HEADERS, b"computeMetadata/\n")
        flavor = {name.lower(): value for name, value in headers.items()}.get("metadata-flavor")
        if flavor != "Google":
            words = b"Missing Metadata-Flavor:Google header."
            return Answer(403, _HEADERS, words)
        if method != "GET":
            return Answer(405, _HEADERS, b"")
        if not asked.path.startswith(_ROOT):
            return Answer(404, _HEADERS, b"")
        path = asked.path.removeprefix(_ROOT)
        if path.endswith("/token"):
            return self._token(machine, path, query)
        found, value = _at(self._tree(machine), path)
        if not found:
            return Answer(404, _HEADERS, b"Not Found")
        etag = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        if query.get("wait_for_change", "").lower() == "true":
            self._wait(asked.path, query, etag)
        body, sort = _written(value, path, query)
        return Answer(200, [*_HEADERS, ("ETag", etag), ("Content-Type", sort)], body)

    def _wait(self, path: str, query: dict[str, str], etag: str) -> None:
        now = self._state.world.now()
        last = query.get("last_etag", "")
        until = float(query.get("equipment_until") or now + float(query.get("timeout_sec") or 3600))
        if last in ("", etag) and now < until:
            query = {**query, "last_etag": last or etag, "equipment_until": str(until)}
            raise NotYet(f"{path}?{urlencode(query)}")

    def _token(self, machine: Machine, path: str, query: dict[str, str]) -> Answer | None:
        accounts = self._tree(machine)["instance"]["serviceAccounts"]
        name = path.split("/")[-2]
        if name not in accounts:
            return Answer(404, _HEADERS, b"")
        email = accounts[name]["email"]
        token = self._state.identities.token(Who(email), query.get("scopes", ""))
        told = {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}
        headers = [*_HEADERS, ("Content-Type", "application/json")]
        return Answer(200, headers, json.dumps(told).encode())


def _dashed(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


def _at(tree: Any, path: str) -> tuple[bool, Any]:
    """Names are camelCase in what is told as JSON, dashed in paths; attributes are as they are."""
    value: Any = tree
    named = False
    for part in [each for each in path.split("/") if each]:
        if isinstance(value, list):
            if not part.isdigit() or int(part) >= len(value):
                return False, None
            value = value[int(part)]
        elif isinstance(value, dict):
            names = {key if named else _dashed(key): key for key in value}
            if part not in names:
                return False, None
            value = value[names[part]]
            named = part in ("attributes", "service-accounts")
        else:
            return False, None
    return True, value


def _written(value: Any, path: str, query: Mapping[str, str]) -> tuple[bytes, str]:
    whole = query.get("recursive", "").lower() == "true"
    if query.get("alt") == "json" or (whole and query.get("alt") != "text"):
        return json.dumps(value).encode(), "application/json"
    if isinstance(value, dict):
        own = path.rstrip("/").endswith(("attributes", "service-accounts"))
        names = [
            (key if own else _dashed(key)) + ("/" if isinstance(each, dict | list) else "")
            for key, each in sorted(value.items())
        ]
        return "".join(f"{each}\n" for each in names).encode(), "application/text"
    if isinstance(value, list):
        if all(isinstance(each, str) for each in value):
            return "".join(f"{each}\n" for each in value).encode(), "application/text"
        return "".join(f"{number}/\n" for number in range(len(value))).encode(), "application/text"
    return str(value).encode(), "application/text"
