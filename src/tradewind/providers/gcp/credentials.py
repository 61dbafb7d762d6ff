"""Who we are to Google, as Google's own tools find it (application default credentials): a login of
`gcloud auth application-default login`, a service account's file, workload identity federation,
impersonation, or the machine that this runs on.

google-auth finds and renews tokens. A token goes into a header, and into no message.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC
from functools import cached_property
from typing import Any, NamedTuple

from tradewind.base.errors import MissingExtra, NoAccess
from tradewind.providers.base import Refused

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
PROJECT = ("GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "GCLOUD_PROJECT")
"""Variables that name the project, the first that is set."""
LOGIN = (
    "`gcloud auth application-default login`, or GOOGLE_APPLICATION_CREDENTIALS names a file of"
    " credentials; tradewind doctor gcp tries them"
)
PROJECT_HINT = (
    "`export GOOGLE_CLOUD_PROJECT=PROJECT`, or `gcloud config set project PROJECT`; `gcloud"
    " projects list` shows those that you can see"
)


class Found(NamedTuple):
    credentials: Any
    project: str
    """"": nothing says which."""


class Credentials(Mapping[str, str]):
    """The headers that say who asks, renewed when they are read: as rest.py wants them. Safe from
    several threads. Nobody misses credentials before something is asked."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._env = os.environ if env is None else env
        self._lock = threading.Lock()

    @cached_property
    def _found(self) -> Found:
        try:
            import google.auth
            from google.auth import exceptions
        except ImportError:
            raise MissingExtra(
                "Google Cloud cannot be asked: google-auth is not installed here",
                hint="pip install 'tradewind[gcp,cloud]'",
            ) from None
        try:
            found, project = google.auth.default(scopes=[SCOPE])
        except exceptions.GoogleAuthError as error:
            raise NoAccess(
                f"there are no credentials for Google Cloud here: {_words(error)}", hint=LOGIN
            ) from None
        named = next((self._env[name] for name in PROJECT if self._env.get(name)), project)
        return Found(found, named or "")

    @property
    def project(self) -> str:
        """The one that is meant where none is named. NoAccess: nothing says which."""
        if not self._found.project:
            raise NoAccess("nothing says which Google Cloud project is meant", hint=PROJECT_HINT)
        return self._found.project

    @property
    def email(self) -> str:
        """Of the service account that we are; "": a person, or nobody knows."""
        named = str(getattr(self._found.credentials, "service_account_email", "") or "")
        return "" if named == "default" else named

    @property
    def signer(self) -> Any:
        """A service account's own key, which signs here on this computer: it has `sign(bytes)`.
        None: there is no key, and Google must be asked for each signature."""
        if not hasattr(self._found.credentials, "with_claims"):  # of service accounts' files alone
            return None
        return getattr(self._found.credentials, "signer", None)

    def expires_s(self) -> float | None:
        """When the token ends that is held now; None: it does not say."""
        self.headers()
        ends = getattr(self._found.credentials, "expiry", None)
        return ends.replace(tzinfo=UTC).timestamp() if ends else None

    def headers(self) -> dict[str, str]:
        """With a token that is good for minutes at least."""
        found = self._found.credentials
        from google.auth import exceptions

        with self._lock:
            try:
                if not found.valid:
                    found.refresh(_transport())
                made: dict[str, str] = {}
                found.apply(made)
            except exceptions.TransportError as error:
                raise Refused(
                    "throttled",
                    f"asking Google for a token: {_words(error)}",
                    hint="check the network",
                ) from None
            except exceptions.GoogleAuthError as error:
                raise NoAccess(
                    f"Google does not accept the credentials here: {_words(error)}", hint=LOGIN
                ) from None
        return made

    def renew(self) -> None:
        """The token is not accepted any more, whatever its time says: the next is a new one."""
        with self._lock:
            self._found.credentials.token = None

    # A mapping that is copied for each request.

    def __getitem__(self, name: str) -> str:
        return self.headers()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.headers())

    def __len__(self) -> int:
        return len(self.headers())


def _transport() -> Any:
    import google.auth.transport.urllib3
    import urllib3

    made: Any = google.auth.transport.urllib3.Request
    return made(urllib3.PoolManager())


def _words(error: Exception) -> str:
    """The first argument: google-auth puts the whole answer behind it."""
    text = " ".join(str(error.args[0] if error.args else error).split())
    return text if len(text) <= 300 else text[:299] + "…"
