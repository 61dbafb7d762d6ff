"""The APIs of a project: which are on, and the project's number, which they tell besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue, NoAccess, TradewindError
from tradewind.providers.base import Refused
from tradewind.providers.changes import Line
from tradewind.providers.gcp.setup.calls import Calls


class Project(Struct, frozen=True, kw_only=True):
    id: str
    number: str
    off: tuple[str, ...]
    """APIs that are asked for and not enabled."""


def project(calls: Calls, services: Sequence[str]) -> Project:
    """Raises where there is no such project, or none that we may look at: Google says the same of
    both."""
    parent = f"/v1/projects/{calls.project}"
    names = [f"names={parent.removeprefix('/v1/')}/services/{each}" for each in services]
    path = f"{parent}/services:batchGet?{'&'.join(names)}"
    try:
        told = calls.get("serviceusage", path, "serviceusage.services.get")
    except (NoAccess, Refused) as error:
        raise _unseen(calls.project, error) from None
    if told is None:
        raise _unseen(calls.project, None)
    found = told.get("services") or []
    on = {_short(each["name"]) for each in found if each.get("state") == "ENABLED"}
    number = next((str(each["name"]).split("/")[1] for each in found), "")
    return Project(
        id=calls.project,
        number=number if number.isdecimal() else "",
        off=tuple(each for each in services if each not in on),
    )


def _unseen(project: str, error: TradewindError | None) -> NoAccess:
    words = f": {error.message}" if error else ""
    off = error is not None and ("SERVICE_DISABLED" in words or "has not been used" in words)
    if off:
        return NoAccess(
            f"the project {project} has the Service Usage API switched off{words}",
            hint=f"`gcloud services enable serviceusage.googleapis.com --project {project}`",
        )
    return NoAccess(
        f"there is no project {project}, or these credentials may not look at it{words}",
        hint="`gcloud projects list` shows those that you can see; --project chooses one",
    )


def check_billing(calls: Calls) -> None:
    """Without a billing account neither an API is enabled nor a machine bought. Where nobody can
    look, enabling will tell."""
    try:
        told = calls.get(
            "cloudbilling",
            f"/v1/projects/{calls.project}/billingInfo",
            "resourcemanager.projects.get",
        )
    except TradewindError:
        return
    if told is not None and not told.get("billingEnabled"):
        raise InvalidValue(
            f"the project {calls.project} has no billing account: nothing can be rented in it",
            hint="`gcloud billing projects link"
            f" {calls.project} --billing-account=ACCOUNT`, or"
            f" https://console.cloud.google.com/billing/linkedaccount?project={calls.project}",
        )


def look(calls: Calls, found: Project, then: Callable[[], None]) -> Line:
    """`then`: what is looked at once they are on, and could not be before."""
    line = Line("APIs", calls.project, "", not found.off)
    if found.off:
        words = ", ".join(_plain(each) for each in found.off)
        line.add(f"enable {words}", lambda: _enable(calls, found.off, then))
    return line


def _enable(calls: Calls, services: Sequence[str], then: Callable[[], None]) -> None:
    path = f"/v1/projects/{calls.project}/services:batchEnable"
    permission = "serviceusage.services.enable"
    asked = {"serviceIds": list(services)}
    told: Any = calls.send("serviceusage", "POST", path, permission, asked)
    calls.long_running("serviceusage", told or {"done": True}, "serviceusage.operations.get")
    calls.off.clear()
    then()


def short_names(services: Sequence[str]) -> set[str]:
    """As api.SERVICES has them."""
    return {_plain(each) for each in services}


def _plain(service: str) -> str:
    return service.removesuffix(".googleapis.com")


def _short(name: str) -> str:
    return str(name).rpartition("/")[2]
