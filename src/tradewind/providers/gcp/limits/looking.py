"""One look at a project for many ways: all questions at once, each in a thread of its own.

What fails, or takes too long, is unknown: nothing is held against what it would have told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue, NotFound, TradewindError
from tradewind.model.run import Way
from tradewind.providers.asking import within
from tradewind.providers.base import Refused
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.facts import TPU
from tradewind.providers.gcp.limits import families, quotas, zones
from tradewind.providers.gcp.limits.families import Families
from tradewind.providers.gcp.limits.quotas import Quotas
from tradewind.providers.gcp.limits.zones import Offered
from tradewind.providers.gcp.machines.types import Kind, kind
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.services import check_billing
from tradewind.providers.gcp.troubles import is_off

PROJECTS = (
    "`gcloud projects list` shows those that you can see; a project that was shut down can be"
    " restored for a month: `gcloud projects undelete`"
)


class Sight(Struct, kw_only=True):
    """What was learned; None: nothing."""

    zones: dict[str, bool] | None = None
    offering: dict[str, dict[str, Offered]] | None = None
    accelerators: dict[str, frozenset[str]] | None = None
    quotas: Quotas | None = None
    slices: dict[str, frozenset[str]] | None = None
    families: Families | None = None
    billing: None = None
    """Nothing is told of it but that there is none (`closed`)."""
    closed: TradewindError | None = None
    """Why nothing at all can be rented in the project."""
    closed_tpu: TradewindError | None = None
    """Why no TPU can."""
    warnings: list[str] = []


def look(
    google: Google,
    project: str,
    ways: Sequence[Way],
    places: Mapping[str, Sequence[str]],
    patience_s: float,
) -> Sight:
    """`places`: the zones of each region in which machines may be."""
    kinds = [known for way in ways if (known := kind_of(way))]
    types = sorted({each.machine_type for each in kinds})
    gpus = sorted({each.accelerator for each in kinds if each.accelerator})
    tpus = [way for way in ways if way.instance_type.startswith(TPU)]
    where = sorted({z for way in tpus for z in ([way.zone] if way.zone else places[way.region])})
    asked: dict[str, tuple[str, Callable[[], Any]]] = {
        "zones": ("zones", lambda: zones.zones(google, project)),
        "quotas": ("quotas", lambda: quotas.quotas(google, project)),
        "offering": ("machine types", lambda: zones.offering(google, project, types)),
        "accelerators": ("accelerators", lambda: zones.accelerators(google, project, gpus)),
        "slices": ("TPUs", lambda: zones.slices(google, project, where)),
        "billing": ("billing", lambda: check_billing(Calls(google, project))),
    }
    if any(each.startswith(families.TYPES) for each in types):
        asked["families"] = (
            "quotas of H100 and newer",
            lambda: families.families(google, project),
        )
    troubles: dict[str, TradewindError] = {}

    def told(name: str, ask: Callable[[], Any]) -> Callable[[], Any]:
        def do() -> Any:
            try:
                return ask()
            except TradewindError as error:
                troubles[name] = error
                raise

        return do

    found = within(patience_s, {name: told(name, ask) for name, (_, ask) in asked.items()})
    sight = Sight(**found)
    sight.closed, sight.closed_tpu = _closed(project, troubles), _off(project, troubles, "slices")
    for name, (words, _) in asked.items():
        if name not in found:
            trouble = troubles.get(name)
            why = trouble.message if trouble else f"no answer within {patience_s:g} s"
            sight.warnings.append(f"{project}: {words} are not known: {why}")
    return sight


def _closed(project: str, troubles: Mapping[str, TradewindError]) -> TradewindError | None:
    """No billing account, no API, no project."""
    billing, told = troubles.get("billing"), troubles.get("zones")
    if isinstance(billing, InvalidValue):
        return billing
    if isinstance(told, Refused) and told.kind == "not_found":
        return NotFound(f"there is no project {project}", hint=PROJECTS)
    return _off(project, troubles, "zones")


def _off(project: str, troubles: Mapping[str, TradewindError], name: str) -> TradewindError | None:
    told = troubles.get(name)
    if told is None or not is_off(told):
        return None
    service = {"zones": "compute", "slices": "tpu"}[name]
    return InvalidValue(
        f"the API {service}.googleapis.com is off in {project}",
        hint=f"`gcloud services enable {service}.googleapis.com --project {project}`",
    )


def kind_of(way: Way) -> Kind | None:
    """None: it is no type of Compute Engine's that we know."""
    if way.instance_type.startswith(TPU):
        return None
    try:
        return kind(way.instance_type)
    except Refused:
        return None
