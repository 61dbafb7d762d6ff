"""Calls of setup and teardown: each says what it was for, waits where Google needs a moment, and
names the permission where one is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from tradewind.base import clock
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.operations import Operation, finished
from tradewind.providers.gcp.troubles import AlreadyThere

_PAUSES_S = (0.5, 1, 2, 3, 5, 8, 10)
"""What was just made is not yet known everywhere, for seconds: IAM above all."""
_SERVICE_S = 300.0
"""An API that is being enabled takes a minute or two."""


class Calls:
    """Of one project. What is asked of an API that is `off` is answered as not there: nobody can
    look, and what is made twice is told as there."""

    def __init__(
        self,
        google: Google,
        project: str,
        sleep: Callable[[float], None] = clock.sleep,
    ) -> None:
        self.google, self.project, self._sleep = google, project, sleep
        self.off: set[str] = set()

    def get(
        self, service: str, path: str, permission: str, query: Mapping[str, str] | None = None
    ) -> Any:
        """None: it is not there."""
        if service in self.off:
            return None
        with _named(permission, self.project):
            try:
                return self.google.rest(service).get(path, Any, self._doing(permission), query)
            except Refused as error:
                if error.kind != "not_found":
                    raise
        return None

    def items(
        self,
        service: str,
        path: str,
        permission: str,
        query: Mapping[str, str] | None = None,
        key: str = "items",
    ) -> list[Any]:
        """All of a listing's."""
        if service in self.off:
            return []
        with _named(permission, self.project):
            pages = self.google.rest(service).pages(
                path,
                dict[str, Any],
                self._doing(permission),
                lambda page: page.get("nextPageToken"),
                "pageToken",
                query or {},
            )
            return [each for page in pages for each in page.get(key, ())]

    def aggregated(
        self, path: str, permission: str, key: str, query: Mapping[str, str]
    ) -> list[Any]:
        """Of Compute Engine, in all places."""
        if "compute" in self.off:
            return []
        found: list[Any] = []
        with _named(permission, self.project):
            pages = self.google.rest("compute").pages(
                path,
                dict[str, Any],
                self._doing(permission),
                lambda page: page.get("nextPageToken"),
                "pageToken",
                query,
            )
            for page in pages:
                for scope in (page.get("items") or {}).values():
                    found += scope.get(key) or ()
        return found

    def pause(self, tries: int) -> None:
        self._sleep(_PAUSES_S[min(tries, len(_PAUSES_S)) - 1])

    def send(
        self,
        service: str,
        method: str,
        path: str,
        permission: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        again: Callable[[TradewindError], bool] = lambda error: False,
    ) -> Any:
        """None where it is there already, or gone already. What `again` says passes by itself."""
        asked = f"{path}?{urlencode(query)}" if query else path
        with _named(permission, self.project):
            for pause_s in (*_PAUSES_S, None):
                try:
                    rest = self.google.rest(service)
                    return rest.send(method, asked, body, Any, self._doing(permission))
                except AlreadyThere:
                    return None
                except (Refused, OutcomeUnknown) as error:
                    gone = method == "DELETE" and getattr(error, "kind", "") == "not_found"
                    if gone:
                        return None
                    if not again(error) or pause_s is None:
                        raise
                self._sleep(pause_s)
        return None

    def compute(
        self, method: str, path: str, permission: str, body: Any = None, **more: Any
    ) -> None:
        """A change of Compute Engine's, until it is done; once more where something was used or
        made a moment ago."""
        whole = f"/projects/{self.project}/{path}"

        def early(error: TradewindError) -> bool:
            return isinstance(error, Refused) and error.kind == "throttled"

        for pause_s in (*_PAUSES_S, None):
            told = self.send("compute", method, whole, permission, body, again=early, **more)
            if told is None:
                return
            try:
                self._finished(told, permission)
                return
            except AlreadyThere:
                return
            except Refused as error:
                if error.kind == "not_found" and method == "DELETE":
                    return
                if error.kind != "throttled" or pause_s is None:
                    raise
            self._sleep(pause_s)

    def _finished(self, told: Any, permission: str) -> None:
        from msgspec import convert

        doing, rest = self._doing(permission), self.google.rest("compute")

        def ask(operation: Operation) -> Operation:
            path = f"/projects/{self.project}/{operation.place}/operations/{operation.name}"
            return rest.get(path, Operation, doing)

        finished(convert(told, type=Operation), ask, doing)

    def long_running(self, service: str, told: Any, permission: str) -> Any:
        """What other APIs accept and do later."""
        until = clock.monotonic() + _SERVICE_S
        pauses = iter(_PAUSES_S)
        pause_s = 0.5
        while not told.get("done"):
            if clock.monotonic() >= until:
                raise OutcomeUnknown(
                    f"{self._doing(permission)}: not done after {_SERVICE_S:.0f} s",
                    hint="run it again; what was made so far is found",
                )
            pause_s = next(pauses, pause_s)
            self._sleep(pause_s)
            told = self.get(service, f"/v1/{told['name']}", permission) or told
        error = told.get("error")
        if error:
            raise Refused(
                "not_allowed",
                f"{self._doing(permission)}: {error.get('message', error.get('code'))}",
                hint="console.cloud.google.com/billing/linkedaccount links a billing account, where"
                " that is what is missing",
            )
        return told

    def _doing(self, permission: str) -> str:
        return f"{permission} in {self.project}"


@contextmanager
def _named(permission: str, project: str) -> Iterator[None]:
    """Elsewhere the advice would be to run setup."""
    try:
        yield
    except Refused as error:
        if error.kind == "not_allowed" and "permission" in error.message.lower():
            raise NoAccess(
                f"these credentials may not {permission} in {project}:"
                f" {error.message.partition(': ')[2][:200]}",
                hint="use credentials that may set up a project, or give someone who has them what"
                " --print terraform or --print gcloud prints; all that is needed is printed by"
                " --print setup-role",
            ) from error
        if error.hint and "setup gcp" in error.hint and "--print" not in error.hint:
            error.hint = "run it again; what was made so far is found"
        raise
