"""Whether machines of Google Cloud could be rented from here now: who we are, the clock, billing
and APIs, and then permissions, network, image and quotas. Nothing is bought or changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tradewind.base import clock
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers.base import Refused
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.checks import permissions, places, quotas
from tradewind.providers.gcp.checks.findings import found, todo
from tradewind.providers.gcp.footprint import ANY, Footprint, setup_command
from tradewind.providers.gcp.setup import services
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.services import Project
from tradewind.providers.gcp.setup.things import SERVICES

FAR_S = 60.0
"""Google refuses what is signed by a clock that is five minutes wrong, and says that the login is
not valid."""
_NEEDED = ("compute", "iam", "storage")
"""Without which nothing runs; the others are for some runs only."""


def checks(
    google: Google,
    footprint: Footprint | None,
    *,
    known: bool = True,
    store_url: str = "",
    now_s: Callable[[], float] = clock.epoch,
) -> Iterator[Finding]:
    """`footprint`: what setup has left in the store; None: nothing, or it is not `known`."""
    try:
        name = footprint.project if footprint else google.credentials.project
        google.credentials.headers()
    except TradewindError as error:
        yield found(
            BROKEN,
            "the project or the login is unknown",
            why=error.message,
            todo=error.hint or "",
        )
        return
    calls = Calls(google, name)
    try:
        project = services.project(calls, SERVICES)
    except TradewindError as error:
        refused = isinstance(error, NoAccess | Refused)
        yield found(
            BROKEN if refused else WARNING,
            f"the project {name} could not be looked at",
            why=error.message,
            todo=todo(error, "run it again; `gcloud projects describe` tries the same"),
        )
        yield from _clock(google, now_s)
        return
    calls.off = services.short_names(project.off)
    who = f", as {google.credentials.email}" if google.credentials.email else ""
    yield found(OK, f"project {name}{who}", measured={"project": name, "number": project.number})
    yield from _clock(google, now_s)
    yield from _billing(calls)
    yield from _apis(project, store_url)
    if footprint is None:
        if known:
            yield _without_setup(store_url)
        if "compute" not in calls.off:
            yield from _guarded("quotas", lambda: quotas.checks(google, name, ()))
        return
    parts: dict[str, Callable[[], Iterator[Finding]]] = {
        "permissions": lambda: permissions.checks(calls, footprint, store_url),
        "what machines may": lambda: permissions.machine_checks(calls, footprint, store_url),
    }
    if "compute" not in calls.off:
        parts |= {
            "the network": lambda: places.network_checks(calls, footprint, store_url),
            "images": lambda: places.image_checks(google, footprint),
            "quotas": lambda: quotas.checks(google, name, tuple(footprint.subnets)),
            "quotas of newer GPUs": lambda: quotas.family_checks(
                google, name, tuple(footprint.subnets)
            ),
        }
    if "tpu" not in calls.off:
        zones = [zone for some in footprint.zones.values() for zone in some]
        parts["TPU quotas"] = lambda: quotas.tpu_checks(calls, zones)
    for words, check in parts.items():
        yield from _guarded(words, check)


def _guarded(words: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What breaks one is what it has found: the others go on."""
    try:
        yield from check()
    except TradewindError as error:
        denied = isinstance(error, NoAccess) or getattr(error, "kind", "") == "not_allowed"
        again = "allow it: tradewind setup gcp --print role" if denied else "run it again"
        what = f"{words} could not be looked at"
        yield found(WARNING, what, why=error.message, todo=todo(error, again))


def _clock(google: Google, now_s: Callable[[], float]) -> Iterator[Finding]:
    """By the date that an answer carries, whether it was a good one or not."""
    skew_s = now_s() - google.rest("serviceusage").at_s()
    if abs(skew_s) > FAR_S:
        yield found(
            BROKEN,
            f"this computer's clock is {abs(skew_s):,.0f} s {'ahead' if skew_s > 0 else 'behind'}",
            why="Google refuses logins that are signed at the wrong time",
            todo="set it: `timedatectl set-ntp true`",
            measured={"skew_s": round(skew_s, 1)},
        )
    else:
        words = "this computer's clock agrees with Google's"
        yield found(OK, words, measured={"skew_s": round(skew_s, 1)})


def _billing(calls: Calls) -> Iterator[Finding]:
    try:
        services.check_billing(calls)
    except TradewindError as error:
        yield found(
            BROKEN,
            error.message,
            why="Google refuses whatever costs money",
            todo=error.hint or "",
        )


def _apis(project: Project, store_url: str) -> Iterator[Finding]:
    if not project.off:
        yield found(OK, "the APIs that are needed are enabled")
        return
    names = sorted(services.short_names(project.off))
    needed = [name for name in names if name in _NEEDED]
    commands = f"gcloud services enable {' '.join(project.off)} --project {project.id}"
    yield found(
        BROKEN if needed else WARNING,
        f"APIs are not enabled: {', '.join(names)}",
        why="no machine can be rented" if needed else "what needs them is refused",
        todo=f"{setup_command(store_url)}, or {commands}",
        measured={"off": list(project.off)},
    )


def _without_setup(store_url: str) -> Finding:
    return found(
        WARNING,
        "nothing is set up for this store",
        why="without network and service account no machine is launched",
        todo=setup_command(store_url, ANY),
    )
