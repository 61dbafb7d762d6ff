"""Setup: looks at what is there of what a store needs, and makes the rest as it was shown.

Looking changes nothing, making may be cut off anywhere, and both may be done again and again: what
was made is found by its name and its mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from msgspec import Struct, structs

from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.model import buckets
from tradewind.providers.changes import Prepared
from tradewind.providers.gcp import proven
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.footprint import Footprint, bucket_of, is_home, name
from tradewind.providers.gcp.operations import last
from tradewind.providers.gcp.setup import accounts, bucket, fast, network, roles, services, things
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.things import Things


class Wish(Struct, frozen=True, kw_only=True):
    store_url: str
    regions: tuple[str, ...] = ()
    project: str = ""
    private: bool = False
    iap: bool = False
    gpudirect: str = ""
    """As fast.asked() reads it."""
    image: str = ""
    bucket_region: str = ""
    """Of a bucket that is another cloud's."""


def wish_of(store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Wish:
    given = {name: value for name, value in settings.items() if value}
    fast.asked(given.get("gpudirect", ""))  # raises
    return Wish(store_url=store_url, regions=tuple(regions), **given)


class Seen(Struct, kw_only=True):
    """What the first look has found."""

    project: services.Project
    bucket: Any
    """As Cloud Storage tells it; None: there is none, or it is another cloud's."""

    @property
    def region(self) -> str:
        return bucket.region_of(self.bucket)


def first(google: Google, wish: Wish) -> tuple[Calls, Seen]:
    """The project, and the bucket: raises where either is somebody else's."""
    project = things.checked_project(wish.project or google.credentials.project)
    google.credentials.headers()  # a login that has expired would look like a missing project
    calls = Calls(google, project)
    wanted = (*things.SERVICES, *(("iap.googleapis.com",) if wish.iap else ()))
    found = services.project(calls, wanted)
    calls.off = services.short_names(found.off)
    services.check_billing(calls)
    calls.off.discard("storage")  # buckets answer all the same
    if not is_home(wish.store_url):
        return calls, Seen(project=found, bucket=None)
    return calls, Seen(
        project=found, bucket=bucket.found(calls, bucket_of(wish.store_url)[0], found.number)
    )


def prepared(calls: Calls, wish: Wish, seen: Seen, known: Footprint | None) -> Prepared[Footprint]:
    """`known` is what was written down before: its regions stay, and so does what it says of
    images, unless the wish says otherwise."""
    check_project(calls, wish.store_url, known)
    regions = chosen(wish, seen.region, known)
    home = seen.region or regions[0]
    zones: dict[str, tuple[str, ...]] = {}

    def look_at_regions() -> None:
        zones.update(zones_of(calls, regions))
        check_image(calls, image)

    image = wish.image or (known.image if known else "")
    proven.check_image(image, calls.project)
    if "compute" not in calls.off:
        look_at_regions()
    called, marked = name(wish.store_url), f"Machines of {wish.store_url}"
    told = network.ours(calls, called, marked)
    there = network.subnets(calls, told) if told else {}
    wanted = things.described(
        wish.store_url,
        calls.project,
        home,
        _all(regions, [region for region, each in there if each == called]),
        iap=wish.iap,
        ranges={place: each["ipCidrRange"] for place, each in there.items()},
        wanted=fast.there(called, told) | fast_wanted(calls, wish, regions),
    )
    lines = [services.look(calls, seen.project, look_at_regions)]
    if wanted.bucket is not None:
        lines.append(bucket.look(calls, wanted.bucket, seen.bucket, seen.project.number))
    lines.append(accounts.look_at_account(calls, wanted.account))
    lines += [accounts.look_at_role(calls, role) for role in wanted.roles]
    lines += accounts.look_at_grants(calls, wanted)
    for each in wanted.networks:
        lines += network.look(calls, each, told.get(each.name), there)
    return Prepared(
        lines,
        calls.project,
        lambda: structs.replace(
            _record(wanted, regions, zones),
            **_elsewhere(wish, known),
            image=image,
            public=_public(wish, known),
            fast_subnets=fast.record(wanted.fast, regions),
        ),
    )


def _record(
    wanted: Things, regions: Sequence[str], zones: Mapping[str, tuple[str, ...]]
) -> Footprint:
    return Footprint(
        project=wanted.project,
        bucket=wanted.bucket.name if wanted.bucket else "",
        bucket_location=wanted.bucket.location if wanted.bucket else "",
        service_account=wanted.account.email,
        network=wanted.network.name,
        subnets={
            each.region: each.name for each in wanted.network.subnets if each.region in regions
        },
        zones={region: zones[region] for region in sorted(regions)},
        role=roles.base(wanted.store_url),
    )


def _elsewhere(wish: Wish, known: Footprint | None) -> dict[str, str]:
    """Of a bucket that is another cloud's, as the record has it."""
    if is_home(wish.store_url):
        return {}
    before = known.bucket_location if known else ""
    return {
        "bucket_provider": buckets.home(wish.store_url) or "",
        "bucket_location": wish.bucket_region or before,
    }


def _all(regions: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """Machines of a region that is no longer asked for may still be up: its range stays in."""
    return tuple(dict.fromkeys([*regions, *sorted(there)]))


def fast_wanted(calls: Calls, wish: Wish, regions: Sequence[str]) -> fast.Wanted:
    """What is asked for now. Which zones have RoCE networks, only Google knows."""
    asked = fast.asked(wish.gpudirect)
    if not asked.rdma:
        return fast.Wanted(cards=asked.cards)
    fast.checked_zones(asked.zones, regions)
    if "compute" in calls.off:
        raise InvalidValue(
            "which zones have RDMA is told by the Compute Engine API, which is off",
            hint="leave out --gpudirect now, and run setup again with it",
        )
    having = fast.zones_with(network.profiles(calls))
    lacking = [zone for zone in asked.zones if zone not in having]
    found = asked.zones or [zone for zone in having if fast.region_of(zone) in regions]
    if lacking or not found:
        where = ", ".join(lacking or regions)
        raise NotFound(
            f"Google Cloud has no network profile for RDMA in {where}",
            hint=f"these zones have one: {', '.join(sorted(having)) or 'none'}",
        )
    return fast.Wanted(zones=tuple(sorted(found)))


def _public(wish: Wish, known: Footprint | None) -> bool:
    return not wish.private and (known.public if known else True)


def check_project(calls: Calls, store_url: str, known: Footprint | None) -> None:
    if known is not None and known.project != calls.project:
        raise NoAccess(
            f"{store_url} is set up in project {known.project}, and this is {calls.project}",
            hint=f"`export GOOGLE_CLOUD_PROJECT={known.project}`; one store has one project",
        )


def chosen(wish: Wish, bucket_region: str, known: Footprint | None) -> tuple[str, ...]:
    """Those that were set up before stay. The first is where a bucket would be made."""
    before = tuple(known.subnets) if known else ()
    asked = wish.regions or before or ((bucket_region,) if bucket_region else ())
    if not asked:
        raise InvalidValue("no region is named", hint="--region us-central1, for example")
    regions = things.checked_regions([*asked, *before])
    if bucket_region and bucket_region not in regions:
        raise InvalidValue(
            f"the bucket {bucket_of(wish.store_url)[0]} is in {bucket_region}, and machines would"
            f" only be in {', '.join(regions)}: all that they read and save would cross regions,"
            " and is charged for",
            hint=f"add --region {bucket_region}, or choose a bucket in {regions[0]}",
        )
    return regions


def zones_of(calls: Calls, regions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Of each region; raises where there is none such."""
    path = f"/projects/{calls.project}/regions"
    listed = calls.items("compute", path, "compute.regions.list")
    there = {
        each["name"]: tuple(sorted(map(last, each.get("zones") or ())))
        for each in listed
        if each.get("status", "UP") == "UP"
    }
    for region in regions:
        if region not in there:
            close = get_close_matches(region, there, n=1)
            raise NotFound(
                f"Google Cloud has no region {region!r}",
                hint=f"did you mean {close[0]}?" if close else "`gcloud compute regions list`",
                choices=close,
            )
    return {region: there[region] for region in regions}


def check_image(calls: Calls, image: str) -> None:
    if not image:
        return
    permission = "compute.images.getFromFamily" if "/family/" in image else "compute.images.get"
    if calls.get("compute", f"/{image}", permission) is None:
        raise NotFound(
            f"there is no image {image}, or it is not shared with this project",
            hint="`gcloud compute images list --show-deprecated` shows what there is",
        )
