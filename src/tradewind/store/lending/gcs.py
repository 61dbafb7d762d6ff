"""Passes to Cloud Storage: our own access token, exchanged for one with a credential access
boundary, which is good for the folders of one run and for nothing else.

It ends when the token that it was made from does, after an hour at most: unattended runs of a day
are not possible with it. The bucket needs uniform bucket-level access. Overwriting an object needs
the right to delete it there, so a machine with a pass can delete whatever it may write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib import error as urlerror
from urllib import request as urlrequest
from urllib.parse import urlencode

from tradewind.base import endpoints
from tradewind.base.errors import NoAccess, SourceFailed
from tradewind.model.places import WRITTEN_BY_MACHINES
from tradewind.store import googlekeys
from tradewind.store.lending.base import Pass

EXCHANGE = "https://sts.googleapis.com/v1/token"
LONGEST_S = googlekeys.LONGEST_S
_WAIT_S = 30.0
_OAUTH = "urn:ietf:params:oauth"

Source = Callable[[], tuple[str, int]]
"""An access token of ours, and for how many seconds it lasts."""


class GcsLender:
    longest_s = LONGEST_S

    def __init__(
        self,
        store_url: str,
        env: Mapping[str, str],
        *,
        source: Source | None = None,
        exchange: str = "",
    ) -> None:
        self._url, self._env = store_url.rstrip("/"), env
        self._source = source or googlekeys.token
        self._exchange = exchange or _exchange_of(env)

    @property
    def environment(self) -> dict[str, str]:
        return {name: self._env[name] for name in googlekeys.ENDPOINTS if self._env.get(name)}

    def lend(self, run_id: str, for_s: int) -> Pass:
        token, left_s = self._source()
        given = self._exchanged(token, boundary(self._url, run_id))
        try:
            lent = str(given["access_token"])
            left_s = min(left_s, int(given.get("expires_in", left_s)))
        except (KeyError, TypeError, ValueError):
            raise SourceFailed("Google has answered with no token") from None
        return Pass(store_url=self._url, run_id=run_id, for_s=left_s, credentials={"token": lent})

    def _exchanged(self, token: str, options: dict[str, Any]) -> Any:
        form = {
            "grant_type": f"{_OAUTH}:grant-type:token-exchange",
            "subject_token_type": f"{_OAUTH}:token-type:access_token",
            "requested_token_type": f"{_OAUTH}:token-type:access_token",
            "subject_token": token,
            "options": json.dumps(options),
        }
        asked = urlrequest.Request(self._exchange, data=urlencode(form).encode(), method="POST")
        try:
            with urlrequest.urlopen(asked, timeout=_WAIT_S) as answer:
                return json.loads(answer.read(1 << 20))
        except urlerror.HTTPError as error:
            said = _said(error)
            if error.code in (400, 401, 403):
                raise NoAccess(
                    f"Google has lent no pass to {self._url}: {said}",
                    hint="`gcloud auth application-default login` renews credentials; the bucket"
                    " needs uniform bucket-level access",
                ) from None
            raise SourceFailed(f"Google has lent no pass: {error.code}") from None
        except (OSError, ValueError) as error:
            raise SourceFailed(
                f"Google has lent no pass: {error}", hint="try again later"
            ) from None


def _exchange_of(env: Mapping[str, str]) -> str:
    """Google's, or where its own tools are led instead."""
    named = env.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_STS", "").rstrip("/")
    if not named:
        return EXCHANGE
    endpoints.check(named, env)
    return f"{named}/v1/token"


def boundary(store_url: str, run_id: str) -> dict[str, Any]:
    bucket, _, prefix = store_url.removeprefix("gs://").partition("/")
    prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
    run, own = f"{prefix}runs/{run_id}/", f"{prefix}passes/{run_id}/"
    # Of an object that is not there Google says so (404) only to those who may list: then there is
    # no prefix, and the default counts. Of the bucket alone, else every object could be read.
    prefix_of = f"api.getAttribute('storage.googleapis.com/objectListPrefix', '{run}')"
    listed = f"(resource.name == 'projects/_/buckets/{bucket}' && {prefix_of}.startsWith('{run}'))"
    reads = [*(_named(bucket, folder) for folder in (run, own)), listed]
    writes = [_named(bucket, f"{run}{folder}/") for folder in WRITTEN_BY_MACHINES]
    rules = [
        _rule(bucket, "roles/storage.objectViewer", reads),
        _rule(bucket, "roles/storage.objectUser", writes),
    ]
    return {"accessBoundary": {"accessBoundaryRules": rules}}


def _named(bucket: str, folder: str) -> str:
    return f"resource.name.startsWith('projects/_/buckets/{bucket}/objects/{folder}')"


def _rule(bucket: str, role: str, where: list[str]) -> dict[str, Any]:
    return {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "availablePermissions": [f"inRole:{role}"],
        "availabilityCondition": {"expression": " || ".join(where)},
    }


def _said(error: urlerror.HTTPError) -> str:
    try:
        with error:
            told = json.loads(error.read(1 << 16))
        return str(told.get("error_description") or told.get("error") or error.code)
    except (OSError, ValueError, AttributeError):
        return str(error.code)
