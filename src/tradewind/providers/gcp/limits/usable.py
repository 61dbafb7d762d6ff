"""Of the ways in which a run could be done, those that this project can really take.

A launch that must fail is not attempted: the way is left out, with the reason and what to do about
it. What cannot be learned is held against nothing: such a way stays, with a warning. Prices are the
catalog's: Google changes them once a day at most, spot ones among them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.run import Way
from tradewind.providers.base import Refused
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.facts import TPU
from tradewind.providers.gcp.footprint import Footprint, setup_command
from tradewind.providers.gcp.limits import images, quotas
from tradewind.providers.gcp.limits.looking import Sight, kind_of, look
from tradewind.providers.gcp.limits.zones import Offered
from tradewind.providers.gcp.machines.order import MARKETS, fast_subnets
from tradewind.providers.gcp.machines.types import MRDMA, Kind, kind
from tradewind.providers.gcp.tpu import kinds
from tradewind.providers.gcp.tpu import order as slices
from tradewind.providers.usable import Reason, Usable

_PATIENCE_S = 45.0


def usable(
    google: Google,
    footprint: Footprint,
    ways: Sequence[Way],
    *,
    store_url: str = "",
    patience_s: float = _PATIENCE_S,
) -> Usable:
    """`store_url`: for the commands in hints."""
    judge = _Judge(footprint, store_url)
    reasons: dict[int, Reason] = {}
    for place, way in enumerate(ways):
        if way.provider == "gcp" and (reason := judge.barred(way)):
            reasons[place] = reason
    ours = [way for place, way in enumerate(ways) if way.provider == "gcp" and place not in reasons]
    sight = look(google, footprint.project, ours, footprint.zones, patience_s) if ours else Sight()
    for place, way in enumerate(ways):
        if way.provider == "gcp" and place not in reasons:
            found = (
                judge.closed(way, sight) or judge.unfit(way, sight) or judge.over_quota(way, sight)
            )
            if found:
                reasons[place] = found
    left = [way for place, way in enumerate(ways) if place not in reasons]
    slow = [words for way in left if way.provider == "gcp" and (words := judge.slow(way))]
    return Usable(
        ways=tuple(left),
        rejected=tuple(reason for _, reason in sorted(reasons.items(), key=lambda it: it[0])),
        # What is not known of a project in which nothing can be rented is not missed.
        warnings=tuple(dict.fromkeys([*(() if sight.closed else sight.warnings), *slow])),
    )


class _Judge:
    def __init__(self, footprint: Footprint, store_url: str) -> None:
        self._footprint, self._store_url = footprint, store_url

    def barred(self, way: Way) -> Reason | None:
        """Without a look at the project."""
        if way.region not in self._footprint.subnets:
            adds = setup_command(self._store_url, way.region)
            return _because(way, "no_setup", f"nothing is set up in {way.region}", adds)
        if way.zone and way.zone not in self._footprint.zones.get(way.region, ()):
            again = f"{setup_command(self._store_url, way.region)} looks for new zones"
            return _because(way, "zone_off", f"there is no zone {way.zone} in {way.region}", again)
        tpu = way.instance_type.startswith(TPU)
        if way.market not in (slices.MARKETS if tpu else MARKETS):
            return _because(way, "no_spot", f"{way.instance_type} has no market {way.market}")
        try:
            (kinds.kind if tpu else kind)(way.instance_type)
        except Refused as error:
            return _because(way, "not_offered", error.message, error.hint or "")
        return None

    def closed(self, way: Way, sight: Sight) -> Reason | None:
        """The project, as it is now."""
        tpu = way.instance_type.startswith(TPU)
        trouble = sight.closed or (sight.closed_tpu if tpu else None)
        if trouble is None:
            return None
        return _because(way, "closed", trouble.message, trouble.hint or "")

    def unfit(self, way: Way, sight: Sight) -> Reason | None:
        """The zone, or the type in it."""
        if way.zone and sight.zones is not None and not sight.zones.get(way.zone, False):
            return _because(way, "zone_off", f"{way.zone} is down, or gone")
        if way.instance_type.startswith(TPU):
            return self._slice(way, sight)
        found = kind_of(way)
        assert found is not None  # barred() has seen to it
        selling = _selling(found, sight)
        here = set(self._footprint.zones.get(way.region, ()))
        if selling is not None:
            name, region = way.instance_type, way.region
            if not selling & here:
                return _because(way, "not_offered", f"no zone of {region} offers {name}")
            if way.zone and way.zone not in selling:
                others = f"{', '.join(sorted(selling & here))} does"
                return _because(way, "not_offered", f"{way.zone} does not offer {name}", others)
        undriven = images.undriven(found, _offered(way, found, sight), self._footprint.image)
        if undriven:
            return _because(way, "no_driver", undriven, images.OWN_IMAGE)
        return None

    def _slice(self, way: Way, sight: Sight) -> Reason | None:
        zones = [way.zone] if way.zone else list(self._footprint.zones.get(way.region, ()))
        slices = sight.slices or {}
        told = [slices[zone] for zone in zones if zone in slices]
        if len(told) < len(zones) or any(way.instance_type in each for each in told):
            return None  # where some zone has not told, it may be that one
        if way.zone:
            words = f"{way.zone} does not offer {way.instance_type}"
        else:
            words = f"no zone of {way.region} offers {way.instance_type}"
        return _because(way, "not_offered", words)

    def slow(self, way: Way) -> str:
        """That its machines would talk over one card, where they have many; "": they do not."""
        found = kind_of(way)
        if way.nodes == 1 or found is None or not found.gpudirect:
            return ""
        if fast_subnets(way, self._footprint, found):
            return ""
        name, region = way.instance_type, way.region
        if found.fast_type == MRDMA and not way.zone:
            return (
                f"{name} without a zone: machines talk over one card, since networks for RDMA are a"
                " zone's"
            )
        command = f"{setup_command(self._store_url, region)} --gpudirect {found.gpudirect}"
        return (
            f"{name} in {way.zone or region}: machines talk over one card, since no networks for"
            f" GPUDirect are set up: {command} makes them"
        )

    def over_quota(self, way: Way, sight: Sight) -> Reason | None:
        found = kind_of(way)
        if found is None or sight.quotas is None:
            return None
        offered = _offered(way, found, sight)
        gpu = found.accelerator or (offered.gpu if offered else "")
        gpus = found.count or (offered.gpus if offered else 0)
        counted = quotas.governing(
            sight.quotas,
            way.region,
            way.market,
            family=found.machine_type.partition("-")[0],
            gpu=gpu,
            gpus=gpus,
            cpus=offered.cpus if offered else 0,
            public=self._footprint.public,
        )
        if sight.families is not None and way.market == "on_demand":
            own = sight.families.quota(way.region, gpu)
            counted += [(own, gpus)] if own else []
        for quota, each in counted:
            needed = each * way.nodes
            if needed <= quota.free:
                continue
            lacking = quota.limit < needed
            in_use = f", of which {quota.used} are in use" if quota.used else ""
            return _because(
                way,
                "quota" if lacking else "in_use",
                f"{way.words} needs {needed} of the quota {quota.words}, which is"
                f" {quota.limit}{in_use}",
                quotas.raising(self._footprint.project, quota, needed + quota.used),
            )
        return None


def _because(way: Way, kind: str, words: str, hint: str = "") -> Reason:
    return Reason(way=way, kind=kind, words=words, hint=hint)


def _selling(found: Kind, sight: Sight) -> set[str] | None:
    """The zones that offer a machine and what is attached to it; None: not known."""
    if sight.offering is None or found.machine_type not in sight.offering:
        return None
    selling = set(sight.offering[found.machine_type])
    if found.accelerator:
        if sight.accelerators is None or found.accelerator not in sight.accelerators:
            return None
        selling &= sight.accelerators[found.accelerator]
    return selling


def _offered(way: Way, found: Kind, sight: Sight) -> Offered | None:
    zones = (sight.offering or {}).get(found.machine_type) or {}
    if way.zone:
        return zones.get(way.zone)
    here = [zone for zone in sorted(zones) if zone.startswith(f"{way.region}-")]
    return zones[here[0]] if here else None
