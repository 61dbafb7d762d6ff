"""Where Cloud Storage is, and who we are there, as google-auth finds it out. Obstore knows logins
where gcloud keeps them, keys of service accounts, and the metadata server, with nothing installed;
not workload identity federation, not impersonation, and no other folder of gcloud's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from tradewind.base import clock, endpoints
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import MissingExtra, NoAccess

EMULATOR, GOOGLE = "STORAGE_EMULATOR_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"
ENDPOINTS = (EMULATOR, GOOGLE)
"""Variables that lead elsewhere. An emulator is told nothing of who we are; the second, gcloud's
own, is another way to Google (Private Service Connect)."""
_JSON_API, _JSON_ALONE = "/storage/v1", "www.googleapis.com"
"""What gcloud is told ends in the first. The host speaks nothing else: stores need the XML API."""
LONGEST_S = 3600
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_OBSTORE = ("service_account", "authorized_user")
"""Types of credentials that obstore reads."""
_LOGIN = "application_default_credentials.json"
_SPARE_S = 60


class _File(Struct):
    type: str = ""


def endpoint(env: Mapping[str, str]) -> str:
    """Where the variables lead; "": to Cloud Storage's own address."""
    if emulator := env.get(EMULATOR):
        return emulator if "://" in emulator else f"http://{emulator}"
    named = env.get(GOOGLE, "").rstrip("/").removesuffix(_JSON_API)
    return "" if endpoints.host_of(named) == _JSON_ALONE else named


def provider(env: Mapping[str, str]) -> Callable[[], dict[str, Any]] | None:
    """What obstore asks for tokens; None: it finds out by itself who we are."""
    named, folder = env.get("GOOGLE_APPLICATION_CREDENTIALS"), env.get("CLOUDSDK_CONFIG")
    path = Path(named) if named else Path(folder or Path.home() / ".config/gcloud") / _LOGIN
    try:
        kind = json.decode(path.read_bytes(), type=_File).type
    except (OSError, *UNREADABLE):
        return None  # there is none; or obstore says what is wrong with it
    if kind in _OBSTORE and (named or not folder):
        return None
    return _told


def _told() -> dict[str, Any]:
    found, left_s = token()
    return {"token": found, "expires_at": clock.now() + timedelta(seconds=left_s - _SPARE_S)}


def token() -> tuple[str, int]:
    """A new one, for Cloud Storage, and for how many seconds it lasts."""
    try:
        import google.auth
        import google.auth.exceptions
        import google.auth.transport.urllib3
        import urllib3
    except ImportError:
        raise MissingExtra(
            "who you are at Google is found out by google-auth, which is not installed here",
            hint="pip install 'tradewind[gcp,cloud]'",
        ) from None
    try:
        found: Any = google.auth.default(scopes=[_SCOPE])[0]
        transport: Any = google.auth.transport.urllib3.Request
        found.refresh(transport(urllib3.PoolManager()))
    except google.auth.exceptions.GoogleAuthError as error:
        raise NoAccess(
            f"Google does not accept the credentials here: {error}",
            hint="`gcloud auth application-default login`, or GOOGLE_APPLICATION_CREDENTIALS",
        ) from None
    ends_s = found.expiry.replace(tzinfo=clock.now().tzinfo).timestamp() if found.expiry else 0.0
    left_s = int(ends_s - clock.now().timestamp()) if ends_s else LONGEST_S
    return str(found.token), max(left_s, 0)
