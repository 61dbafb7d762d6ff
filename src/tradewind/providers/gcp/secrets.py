"""Secrets of jobs that Google's Secret Manager keeps.

`gcp-secretmanager:NAME` is one of the project's, its latest version; a whole name
(projects/PROJECT/secrets/NAME/versions/VERSION) names any. On a rented machine its service account
asks, by the metadata server, with nothing of Google's installed; on the user's own computer whoever
google-auth finds there.
"""

from __future__ import annotations

import os
import re
import urllib.request
from base64 import b64decode
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError

from msgspec import Struct, json

from tradewind.base import endpoints
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import InvalidValue, NotFound, SourceFailed
from tradewind.model.secrets import Reference
from tradewind.providers.gcp.metadata import Service

_URL = "https://secretmanager.googleapis.com/"
_OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
_TIMEOUT_S = 10.0
_MOST_BYTES = 1 << 20
"""A secret has 64 KB at most."""


class _Payload(Struct):
    data: str = ""


class _Version(Struct):
    payload: _Payload


def value(reference: Reference, *, rented: bool) -> str:
    """`rented`: on one of its machines, by that machine's service account; else by whoever uses
    this computer."""
    name = _whole(reference.name, rented=rented)
    answer = _ask(name, _headers(rented=rented), rented=rented)
    try:
        data = b64decode(json.decode(answer, type=_Version).payload.data, validate=True)
    except (ValueError, *UNREADABLE):
        raise SourceFailed("the answer was cut short, or is not Google's") from None
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        raise InvalidValue("it is binary", hint="store it as text") from None
    return _part(whole, reference.key) if reference.key else whole


def _part(whole: str, key: str) -> str:
    try:
        table = json.decode(whole, type=dict[str, Any])
    except UNREADABLE:
        raise InvalidValue("it is not a JSON object, so there is no key in it") from None
    found = table.get(key)
    if not isinstance(found, str):
        raise NotFound(f"it has no text under the key {key}")
    return found


def _whole(name: str, *, rented: bool) -> str:
    if not name.startswith("projects/"):
        name = f"projects/{_project(rented=rented)}/secrets/{name}"
    return name if "/versions/" in name else f"{name}/versions/latest"


def _project(*, rented: bool) -> str:
    if not rented:
        from tradewind.providers.gcp.credentials import Credentials

        return Credentials().project
    try:
        return Service().get("project/project-id").strip()
    except (OSError, HTTPException) as error:
        raise SourceFailed(f"the metadata server did not say the project: {error}") from None


def _headers(*, rented: bool) -> dict[str, str]:
    if rented:
        return {"authorization": f"Bearer {Service().token()}"}
    from tradewind.providers.gcp.credentials import Credentials

    return Credentials().headers()


def _ask(name: str, headers: dict[str, str], *, rented: bool) -> bytes:
    base = os.environ.get(_OVERRIDE) or _URL
    endpoints.check(base, os.environ)
    address = f"{base.rstrip('/')}/v1/{name}:access"
    try:
        asked = urllib.request.Request(address, headers=headers)
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as answer:
            found: bytes = answer.read(_MOST_BYTES)
    except HTTPError as error:
        with error:
            body = error.read(_MOST_BYTES)
        if error.code == 404:
            raise NotFound(f"there is no {name}") from None
        if error.code in (401, 403):
            who = "the machines' service account" if rented else "these credentials"
            said = re.search(rb'"message":\s*"([^"]*)"', body)
            why = said[1].decode(errors="replace") if said else f"HTTP {error.code}"
            raise InvalidValue(
                f"{who} may not read it: {why}",
                hint="docs/gcp.md#secrets says which names machines may read",
            ) from None
        raise SourceFailed(f"Secret Manager answered {error.code}") from None
    except (OSError, HTTPException) as error:
        raise SourceFailed(f"Secret Manager did not answer: {error}") from None
    return found
