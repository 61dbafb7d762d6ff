"""Requests to one cluster's API server: plain JSON, decoded into what is asked for and no more, so
that ten thousand pods are listed in seconds.

Questions are asked again where no answer comes; what changes something is sent once, and where no
answer came nobody knows whether it was done (OutcomeUnknown). What was turned away was not done:
429 is asked again a little later, and 401 once, with the kubeconfig read anew, since somebody may
have logged in meanwhile. Errors are sorted by troubles.py.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

import urllib3
from msgspec import Struct, json
from urllib3.util import Timeout

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE, learn
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.base.http import discard, read, reason
from tradewind.base.version import __version__
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.kubernetes import troubles
from tradewind.providers.kubernetes.login import Login, shown
from tradewind.providers.kubernetes.troubles import Expired
from tradewind.providers.rest import unanswered

T = TypeVar("T")

JSON = "application/json"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
"""Rows as kubectl prints them: a node in a hundred bytes instead of ten thousand. Servers that do
not know it answer with the objects."""
PAGE = 500
"""Objects of one page of a listing, as kubectl has it."""
LARGEST = 64 * 1024 * 1024
_TRIES = 3
_LISTINGS = 3
"""So often a listing is begun again whose pages the server has forgotten."""
_CONNECT_S, _READ_S = 10.0, 60.0
_LONGEST_PAUSE_S = 30.0


class _Continued(Struct, frozen=True, rename={"continue_": "continue"}):
    continue_: str | None = None


class _List(Struct, Generic[T]):
    items: list[T] | None = None
    metadata: _Continued = _Continued()


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    data: bytes


class Client:
    """Safe from several threads."""

    def __init__(self, context: str, *, server: str = "", pause_s: float = 1.0) -> None:
        """`server`: where the context led when it was set up; "": wherever it leads. Nothing is
        asked of the cluster yet."""
        self.context = context
        self._login = Login(context)
        self._expected, self._pause_s = server.rstrip("/"), pause_s
        self._told: tuple[float, float] | None = None
        self._lock = threading.Lock()
        self._check_server()

    @property
    def server(self) -> str:
        return self._login.server

    @property
    def shown(self) -> str:
        return shown(self.context)

    def at_s(self) -> int:
        """The API server's clock, by its last answer; this computer's before there was one."""
        if self._told is None:
            return int(clock.now().timestamp())
        told_s, then = self._told
        return int(told_s + clock.monotonic() - then)

    def get(
        self,
        path: str,
        kind: type[T],
        doing: str,
        query: Mapping[str, str] | None = None,
        accept: str = JSON,
    ) -> T:
        """Asked again where no answer comes."""
        for left in reversed(range(_TRIES)):
            try:
                data = self._ask("GET", path, None, doing, query, {"accept": accept})
                return _decoded(data, kind, doing)
            except OutcomeUnknown:
                if not left:
                    raise
                clock.sleep(self._pause_s)
        raise AssertionError("unreachable")

    def find(self, path: str, kind: type[T], doing: str) -> T | None:
        """None: there is no such object, or its kind is not installed."""
        try:
            return self.get(path, kind, doing)
        except troubles.Missing:
            return None

    def all(
        self,
        path: str,
        kind: type[T],
        doing: str,
        *,
        labels: str = "",
        fields: str = "",
        page: int = PAGE,
    ) -> list[T]:
        """All of them, as they were at one moment: pages are of one state of the cluster, and where
        the server has forgotten that state, it is begun anew."""
        asked = {"limit": str(page)}
        if labels:
            asked["labelSelector"] = labels
        if fields:
            asked["fieldSelector"] = fields
        for left in reversed(range(_LISTINGS)):
            try:
                return self._listed(path, kind, doing, asked)
            except Expired:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _listed(self, path: str, kind: type[T], doing: str, asked: Mapping[str, str]) -> list[T]:
        found: list[T] = []
        seen: set[str] = set()
        query = dict(asked)
        while True:
            got = self.get(path, _List[kind], doing, query)  # type: ignore[valid-type]
            found += got.items or ()
            token = got.metadata.continue_
            if not token:
                return found
            if token in seen:  # it would go round for ever, and what is missing is not known
                raise OutcomeUnknown(f"{doing}: the same page came twice")
            seen.add(token)
            query = {**asked, "continue": token}

    def send(
        self,
        method: str,
        path: str,
        body: Any,
        kind: type[T],
        doing: str,
        *,
        query: Mapping[str, str] | None = None,
    ) -> T:
        """Once. A patch is a merge patch. Raises troubles.Exists, Conflict or Missing where the
        object is there, has changed, or is not there."""
        headers = {"accept": JSON}
        data = None if body is None else json.encode(body)
        if data is not None:
            headers["content-type"] = MERGE if method == "PATCH" else JSON
        return _decoded(self._ask(method, path, data, doing, query, headers), kind, doing)

    def create(self, path: str, body: Any, kind: type[T], doing: str, *, dry: bool = False) -> T:
        """Fields that the server does not know are refused, not dropped."""
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry else {})
        return self.send("POST", path, body, kind, doing, query=query)

    def patch(self, path: str, body: Any, kind: type[T], doing: str) -> T:
        return self.send("PATCH", path, body, kind, doing, query={"fieldValidation": "Strict"})

    def delete(
        self, path: str, doing: str, *, grace_s: int | None = None, uid: str = "", version: str = ""
    ) -> bool:
        """What belongs to it goes with it. False: it was not there, or is another by now (`uid`) or
        has changed (`version`)."""
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        named = {"uid": uid, "resourceVersion": version}
        if preconditions := {name: value for name, value in named.items() if value}:
            body["preconditions"] = preconditions
        try:
            self.send("DELETE", path, body, Any, doing)
        except (troubles.Missing, troubles.Conflict):
            return False
        return True

    # One request.

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        doing: str,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> bytes:
        whole = f"{path}?{urlencode(query)}" if query else path
        again = True
        for left in reversed(range(_TRIES)):
            login = self._login
            answer = self._answered(login, method, whole, body, doing, headers)
            if 200 <= answer.status < 300:
                return answer.data
            if answer.status == 401 and again:
                again = False
                self._log_in_again(login)
                continue
            if answer.status != 429 or not left:
                raise troubles.error(f"{self.shown}: {doing}", answer.status, answer.data)
            clock.sleep(self._patience(answer.headers))
        raise AssertionError("unreachable")

    def _patience(self, headers: Mapping[str, str]) -> float:
        said = headers.get("retry-after", "")
        return min(float(said) if said.isdecimal() else self._pause_s, _LONGEST_PAUSE_S)

    def _log_in_again(self, refused: Login) -> None:
        with self._lock:
            if self._login is refused:
                self._login = Login(self.context)
        self._check_server()

    def _check_server(self) -> None:
        if self._expected and self._login.server != self._expected:
            raise NoAccess(
                f"{self.shown} leads to {self._login.server}, and was set up as {self._expected}",
                hint="name the context that leads there, or run `tradewind setup kubernetes` again",
            )

    def _answered(
        self,
        login: Login,
        method: str,
        path: str,
        body: bytes | None,
        doing: str,
        headers: Mapping[str, str],
    ) -> _Answer:
        told = f"{self.shown}: {doing}"
        sent = {"user-agent": f"tradewind/{__version__}", **headers, **login.headers()}
        try:
            response = login.pool.request(
                method,
                login.server + path,
                headers=sent,
                body=body,
                preload_content=False,
                retries=False,
                redirect=False,
                timeout=Timeout(connect=_CONNECT_S, read=_READ_S),
            )
        except urllib3.exceptions.SSLError as error:
            raise NoAccess(f"{told}: {reason(error)}", hint=_CERTIFICATE) from None
        except urllib3.exceptions.HTTPError as error:
            raise _unreached(told, login.server, error) from None
        except (ValueError, UnicodeError):
            raise NoAccess(f"{told}: the request cannot be sent as it is") from None
        try:
            self._hear(response.headers.get("date", ""))
            data = read(response, LARGEST + 1)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            discard(response)
            words = f"{told}: the answer broke off: {reason(error)}"
            raise OutcomeUnknown(words, hint=troubles.UNKNOWN) from None
        if len(data) > LARGEST:
            raise OutcomeUnknown(f"{told}: the answer is larger than {LARGEST >> 20} MiB")
        return _Answer(response.status, response.headers, data)

    def _hear(self, date: str) -> None:
        with suppress(ValueError):
            self._told = (parsedate_to_datetime(date).timestamp(), clock.monotonic())


_CERTIFICATE = (
    "the kubeconfig's certificate-authority does not match the server, or a certificate has expired"
)


def _unreached(told: str, server: str, error: urllib3.exceptions.HTTPError) -> TradewindError:
    found = unanswered(told, error)
    found.hint = f"is {server} reachable from here (VPN, proxy)? {found.hint or ''}".strip()
    return found


def _decoded(data: bytes, kind: type[T], doing: str) -> T:
    try:
        return learn(kind).decode(data or b"null")
    except UNREADABLE as error:
        words = f"{doing}: the answer cannot be understood: {error}"
        raise OutcomeUnknown(words, hint=troubles.UNKNOWN) from None


def selector(labels: Mapping[str, str], *others: str) -> str:
    """As the API wants a label selector."""
    return ",".join([*(f"{name}={value}" for name, value in labels.items()), *others])


def paths(namespace: str) -> Mapping[str, str]:
    """Where the objects of a leg lie, by kind."""
    core, batch = f"/api/v1/namespaces/{namespace}", f"/apis/batch/v1/namespaces/{namespace}"
    return {
        "jobs": f"{batch}/jobs",
        "pods": f"{core}/pods",
        "secrets": f"{core}/secrets",
        "services": f"{core}/services",
        "jobsets": f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets",
        "podgroups": f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups",
    }
