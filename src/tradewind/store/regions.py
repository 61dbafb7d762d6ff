"""In which region a bucket is. `AWS_REGION` says where the user's machines are; the bucket may be
elsewhere, and S3 then sends away whoever signs for the wrong region.

Nothing is asked before that happens. S3 then tells anybody, without credentials, by a header of its
answer; it is remembered in this process and in `$TRADEWIND_HOME/regions.json`, so that the next
command goes to the right one at once. What is remembered is a hint: if it is wrong, S3 says so
again.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import ParamSpec, TypeVar

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.base.ownfiles import home, replace

_HEADER = "x-amz-bucket-region"
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d{1,2}")
"""It becomes part of a host's name."""
_WAIT_S = 10.0
_SIGNS = (
    "redirect without LOCATION",
    "PermanentRedirect",
    "IllegalLocationConstraintException",
    "is wrong; expecting '",  # AuthorizationHeaderMalformed
)

P = ParamSpec("P")
T = TypeVar("T")
_remembered: dict[str, str] = {}
_lock = threading.Lock()


class Moved(TradewindError):
    """Nothing was done: the bucket is in another region, where the store's handles lead now."""


def followed(method: Callable[P, T]) -> Callable[P, T]:
    """Of a store: once more, if the bucket turned out to be elsewhere."""

    @wraps(method)
    def again(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except Moved:
            return method(*args, **kwargs)

    return again


def is_elsewhere(error: Exception) -> bool:
    return any(sign in str(error) for sign in _SIGNS)


def may_be_elsewhere(error: Exception) -> bool:
    """Regions opened since 2019 say 400, and an answer to HEAD has no words besides its number."""
    return is_elsewhere(error) or "status code: 400" in str(error)


def known(endpoint: str, bucket: str, env: Mapping[str, str]) -> str | None:
    """What S3 said the last time, if it ever had to."""
    place = f"{endpoint}/{bucket}"
    with _lock:
        if place in _remembered:
            return _remembered[place]
    region = _written(env).get(place)
    return region if isinstance(region, str) and _REGION.fullmatch(region) else None


def remember(endpoint: str, bucket: str, region: str, env: Mapping[str, str]) -> None:
    place = f"{endpoint}/{bucket}"
    with _lock:
        _remembered[place] = region
    with suppress(NoAccess):  # then it is asked for again
        told = {**_written(env), place: region}
        replace(home(env) / "regions.json", (json.dumps(told, indent=1) + "\n").encode())


def ask(endpoint: str, bucket: str, region: str) -> str | None:
    """As S3 tells whoever asks: at `endpoint`, or at AWS's own in `region` if that is empty."""
    addresses = [f"{endpoint or f'https://s3.{region}.amazonaws.com'}/{bucket}"]
    if not endpoint:
        addresses.append(f"https://s3.amazonaws.com/{bucket}")
    found = (_header(address) for address in addresses)
    return next((each for each in found if each), None)


def _header(address: str) -> str | None:
    import urllib.error
    import urllib.request

    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
            region = answer.headers.get(_HEADER)
    except urllib.error.HTTPError as error:  # 403 and 301 tell it as well
        region = error.headers.get(_HEADER)
    except (OSError, ValueError):
        return None
    return region if region and _REGION.fullmatch(region) else None


def _written(env: Mapping[str, str]) -> dict[str, object]:
    try:
        told = json.loads((home(env) / "regions.json").read_bytes())
    except (OSError, ValueError, NoAccess):
        return {}
    return told if isinstance(told, dict) else {}
