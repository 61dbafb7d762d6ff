"""Links with a V4 signature (GOOG4-RSA-SHA256): what was signed, made anew from the request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import quote

from tests.store.gcs.gate import Asked
from tests.store.gcs.objects import Refused

Verify = Callable[[str, bytes, bytes], bool]
"""A service account's email, what was signed, the signature."""
_NEEDED = ("algorithm", "credential", "date", "expires", "signedheaders", "signature")


def is_signed(query: Mapping[str, str]) -> bool:
    return any(name.lower() == "x-goog-signature" for name in query)


def signer(asked: Asked, verify: Verify, now: float) -> str:
    """Who has signed it, where that is right and still holds."""
    told = {name.lower().removeprefix("x-goog-"): value for name, value in asked.query.items()}
    if any(each not in told for each in _NEEDED):
        raise _bad("AuthenticationRequired", 400, "A parameter of the signature is missing.")
    if told["algorithm"] != "GOOG4-RSA-SHA256":
        raise _bad("InvalidArgument", 400, "The algorithm is not supported.")
    email, _, scope = told["credential"].partition("/")
    try:
        begun = datetime.strptime(told["date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        lasts_s, signature = int(told["expires"]), bytes.fromhex(told["signature"])
    except ValueError:
        raise _bad(
            "InvalidArgument", 400, "A parameter of the signature is no such thing."
        ) from None
    if not 0 < lasts_s <= 604_800:
        raise _bad("InvalidArgument", 400, "X-Goog-Expires must be at most 604800 seconds.")
    if now > begun + lasts_s:
        raise _bad("ExpiredToken", 400, "The provided token has expired.")
    if begun > now + 900:
        raise _bad("AccessDenied", 403, "The request is not valid yet.")
    text = _text(asked, told, scope)
    if not verify(email, text, signature):
        words = "Access denied. The signature does not match what we have calculated."
        raise _bad("SignatureDoesNotMatch", 403, words)
    return email


def _text(asked: Asked, told: Mapping[str, str], scope: str) -> bytes:
    query = "&".join(
        f"{quote(name, safe='~')}={quote(value, safe='~')}"
        for name, value in sorted(asked.query.items())
        if name.lower() != "x-goog-signature"
    )
    names = told["signedheaders"].split(";")
    headers = "".join(f"{each}:{' '.join(asked.headers.get(each, '').split())}\n" for each in names)
    content = asked.headers.get("x-goog-content-sha256", "UNSIGNED-PAYLOAD")
    parts = [asked.method, asked.path, query, headers, told["signedheaders"], content]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return "\n".join(["GOOG4-RSA-SHA256", told["date"], scope, digest]).encode()


def _bad(code: str, status: int, words: str) -> Refused:
    return Refused(status, code, words)
