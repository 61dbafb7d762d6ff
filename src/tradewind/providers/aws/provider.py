"""Machines of EC2, for whoever owns a store.

A launch is one call of RunInstances: EC2 gives all machines of it or none, knows its token again,
and puts every tag on at once. All else (image, zone, group) is looked up before, and may be looked
up again. docs/design/011-aws.md says why each thing is as it is.

Safe from several threads and processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from tradewind.base import clock
from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.model.circle import Circle
from tradewind.model.finding import Finding
from tradewind.model.run import Listing, Machine, Request, Way
from tradewind.providers.asking import within
from tradewind.providers.aws import denied
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import (
    LAUNCH,
    OWNER,
    RUN,
    SERVICE,
    Footprint,
    setup_command,
)
from tradewind.providers.aws.limits import images, prices, zones
from tradewind.providers.aws.machines import (
    circles,
    firewall,
    groups,
    listing,
    order,
    paid,
    profile,
    proven,
    reservations,
)
from tradewind.providers.aws.machines.userdata import user_data
from tradewind.providers.aws.troubles import code_of, explained, of_code
from tradewind.providers.base import Leftover, OutcomeUnknown, Refused
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Pack


class OfLegs(Protocol):
    """What is made for a leg besides its machines: lists those of an owner, with their tags, and
    removes one, unless it is in use."""

    def owned(
        self, account: Account, region: str, owner: str
    ) -> Iterator[tuple[str, dict[str, str]]]: ...

    def remove(self, account: Account, region: str, name: str, /) -> bool: ...


_WAIT_S = 20.0
"""For what was bought to be listed."""
_PAUSE_S = 0.5
_PRICES_S = 10.0
"""For a region to tell its prices."""
_OF_LEGS: dict[str, OfLegs] = {"placement group": groups, "security group": firewall}


class AwsProvider:
    def __init__(
        self,
        account: Account,
        footprint: Footprint,
        owner: str,
        luggage: Pack,
    ) -> None:
        """`owner` is the store's URL. `luggage` puts together what machines of a request, and of
        this architecture, take along."""
        self._account, self._footprint, self._owner = account, footprint, owner
        self._luggage = luggage
        self._launched: set[str] = set()
        """Instances that this object has bought: EC2 may not list them yet."""
        self._proven: set[str] = set()
        """Regions of which what the store says is so."""
        self._paid = paid.Paid(account)
        self._ends: dict[str, int] = {}
        """When machines were first seen to have ended, where EC2 does not tell when they did."""
        self._over: dict[str, set[str]] = {}
        """By region, the launches of several machines that have all ended, as last listed."""
        self._tidied: set[str] = set()
        """Of these, the launches that have nothing left."""

    def _check(self, region: str) -> None:
        """Once for each object: what the store says of the account is so. Refused, NoAccess."""
        if region not in self._proven:
            self._check_account()
            proven.check_names(self._footprint, self._owner)
            network = self._footprint.regions[region]
            proven.check_network(self._account, region, network, self._owner)
            self._proven.add(region)

    def _check_account(self) -> None:
        proven.check_account(self._account, self._footprint, self._owner)

    def list_machines(self) -> Listing:
        self._check_account()
        regions = sorted(self._footprint.regions)
        owned = [{"Name": f"tag:{OWNER}", "Values": [self._owner]}]
        with ThreadPoolExecutor(max(1, len(regions)), thread_name_prefix="aws") as pool:
            # One that cannot be listed is raised: what is not seen there may well live.
            found = list(pool.map(lambda region: self._described(region, owned), regions))
        self._over = {
            region: _over(machines) for region, (_, machines) in zip(regions, found, strict=True)
        }
        times = [at_s for at_s, _ in found if at_s is not None]
        return Listing(
            at_s=min(times) if times else int(clock.now().timestamp()),
            machines=tuple(machine for _, machines in found for machine in machines),
        )

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        region = request.way.region
        if region not in self._footprint.regions:
            raise Refused(
                "not_found",
                f"nothing is set up in {region}",
                hint=setup_command(self._owner, region),
            )
        found = self._bought(request)
        if found:
            return found
        self._check(region)
        kind = self._kind(region, request.way.instance_type)
        undriven = "" if self._footprint.image else images.undriven(kind)
        if undriven:
            raise Refused("not_allowed", undriven, hint=images.OWN_IMAGE)
        reservation = reservations.find(self._account, request)
        image = images.image(
            self._account,
            region,
            kind.architecture,
            self._footprint.image,
            owner=self._owner,
            accelerator=kind.accelerator,
        )
        luggage = self._luggage(request, kind.architecture)
        try:
            asked = order.parameters(
                request,
                self._owner,
                self._footprint,
                kind=kind,
                image=image,
                reservation=reservation,
                user_data=user_data(told.boot(request, self._owner, after, key, "aws"), luggage),
                security_group=self._admitting(request),
            )
            if order.wants_group(request, kind, reservation):
                groups.create(self._account, request, self._owner)
            return self._buy(request, asked)
        except Refused:
            # Nothing was bought, and the next try may be another leg, elsewhere.
            if order.talks(request) and request.circle is None:
                self._remove_groups(region, {request.launch_id})
            raise

    def _admitting(self, request: Request) -> str:
        """The group of machines that talk with each other, or that are a service's; "" where there
        is nobody to talk with."""
        if request.circle is not None:
            return self.admit(request.way.region, request.circle)
        if not order.talks(request):
            return ""
        network = self._footprint.regions[request.way.region]
        return firewall.create(self._account, request, self._owner, network)

    def admit(self, region: str, circle: Circle) -> str:
        self._check(region)
        network = self._footprint.regions[region]
        return circles.create(self._account, region, circle, self._owner, network)

    def dismiss(self, name: str) -> bool:
        done = True
        for region in sorted(self._footprint.regions):
            for group, _ in circles.owned(self._account, region, self._owner, name):
                done &= circles.remove(self._account, region, group)
        return done

    def terminate(self, machine_ids: Sequence[str]) -> None:
        by_region: dict[str, set[str]] = {}
        for name in machine_ids:
            parts = listing.parted(name)
            if parts is not None and parts[0] in self._footprint.regions:
                by_region.setdefault(parts[0], set()).add(parts[1])
        for region, names in by_region.items():
            self._terminate_in(region, names)

    def _terminate_in(self, region: str, names: set[str]) -> None:
        """Only ours, whatever names we are given; and not what has ended, which EC2 forgets."""
        filters = [
            {"Name": f"tag:{OWNER}", "Values": [self._owner]},
            {"Name": "instance-id", "Values": sorted(names)},
        ]
        ec2 = self._account.client("ec2", region)
        with explained(f"looking for machines in {region}"):
            pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
            there = list(listing.instances(pages))
        ended = {each["InstanceId"] for each in there if listing.has_ended(each)}
        ours = {each["InstanceId"] for each in there} | (names & self._launched)
        going = sorted(ours - ended)
        if going:
            with explained(f"terminating machines in {region}"):
                ec2.terminate_instances(InstanceIds=going)

    def prices(self, ways: Sequence[Way]) -> dict[str, int]:
        """Of spot machines: other prices of EC2 hold for months."""
        spot: dict[str, list[Way]] = {}
        for way in ways:
            if way.market == "spot" and way.region in self._footprint.regions:
                spot.setdefault(way.region, []).append(way)
        told = within(
            _PRICES_S, {name: partial(self._asked, name, some) for name, some in spot.items()}
        )
        return {what: price for found in told.values() for what, price in found.items()}

    def _asked(self, region: str, ways: Sequence[Way]) -> dict[str, int]:
        types = {way.instance_type for way in ways}
        told = prices.newest(self._account, region, types, clock.now())
        found: dict[str, int] = {}
        for way in ways:
            price = prices.of(told, way.instance_type, self._footprint.zones(region, way.zone))
            if price is not None:
                found[way.what] = price
        return found

    # Upkeep.

    def checks(self) -> Sequence[Finding]:
        return ()  # `tradewind doctor aws` asks far more than one would want to wait for each time

    def leftovers(self) -> Sequence[Leftover]:
        """Groups of legs that have no machine any more, and of services that have none. One that
        goes on makes its group again, with its next machine."""
        there = [m for m in self.list_machines().machines if m.ended_s is None]
        living = {machine.launch_id for machine in there}
        left = [
            Leftover(
                kind="service group",
                name=f"{region}/{name}",
                words="belongs to a service that has no machine",
            )
            for region in sorted(self._footprint.regions)
            for name, tags in circles.owned(self._account, region, self._owner)
            if not any(each.run_id.startswith(f"{tags[SERVICE]}-") for each in there)
        ]
        return left + [
            Leftover(
                kind=kind,
                name=f"{region}/{name}",
                words="belongs to a leg that has ended",
                run_id=tags.get(RUN, ""),
            )
            for region in sorted(self._footprint.regions)
            for kind, made in _OF_LEGS.items()
            for name, tags in made.owned(self._account, region, self._owner)
            if tags.get(LAUNCH, "") not in living
        ]

    def remove(self, leftover: Leftover) -> bool:
        region, _, name = leftover.name.partition("/")
        if leftover.kind == "service group":
            return circles.remove(self._account, region, name)
        return _OF_LEGS[leftover.kind].remove(self._account, region, name)

    def tidy(self) -> None:
        for region, launches in self._over.items():
            left = launches - self._tidied
            if left and self._remove_groups(region, left):
                self._tidied |= left

    def _remove_groups(self, region: str, launches: set[str]) -> bool:
        """Of these launches; False: some could not be removed now, and are for the sweep."""
        done = True
        for made in _OF_LEGS.values():
            try:
                there = list(made.owned(self._account, region, self._owner))
                for name, tags in there:
                    if tags.get(LAUNCH, "") in launches:
                        done &= made.remove(self._account, region, name)
            except TradewindError:
                done = False
        return done

    # Buying.

    def _kind(self, region: str, name: str) -> zones.TypeFacts:
        found = zones.facts(self._account, region, [name]).get(name)
        if found is None:
            raise Refused("not_found", f"there is no {name} in {region}")
        return found

    def _buy(self, request: Request, asked: dict[str, Any]) -> list[Machine]:
        from botocore.exceptions import ClientError

        region = request.way.region
        doing = f"launching {request.way.words}"
        try:
            with explained(doing):
                # Sent once: the controller asks again with the same token where nobody knows.
                answer = self._account.client("ec2", region, 1).run_instances(**asked)
        except (OutcomeUnknown, Refused) as error:
            cause = error.__cause__
            if isinstance(cause, ClientError) and code_of(cause) == "IdempotentParameterMismatch":
                # Bought before, with a link of then.
                return self._await(request, of_code(doing, cause))
            young = isinstance(cause, ClientError) and code_of(cause) == "InvalidGroup.NotFound"
            if young and (order.talks(request) or request.circle is not None):
                # Made a moment ago, and not known everywhere yet.
                raise Refused("throttled", error.message) from cause
            name = self._footprint.instance_profile
            if isinstance(cause, ClientError) and profile.is_meant(cause):
                if profile.is_gone(self._account, region, name):
                    raise Refused(
                        "not_allowed",
                        f"{doing}: the machines' instance profile {name} is not there any more",
                        hint="`tradewind setup aws` makes it again; then `tradewind resume`",
                    ) from cause
                raise error
            if isinstance(error, Refused):
                raise denied.decoded(self._account, region, error) from cause
            raise
        self._launched |= {each["InstanceId"] for each in answer["Instances"]}
        return self._sorted(listing.machine(region, each, None) for each in answer["Instances"])

    def _bought(self, request: Request) -> list[Machine]:
        """By an earlier try, or another controller's."""
        filters = [
            {"Name": f"tag:{OWNER}", "Values": [self._owner]},
            {"Name": f"tag:{LAUNCH}", "Values": [request.launch_id]},
        ]
        _, found = self._described(request.way.region, filters)
        if found and len(found) < request.way.nodes:
            raise OutcomeUnknown(
                f"of {request.way.nodes} machines of {request.launch_id} EC2 lists {len(found)}"
            )
        return self._sorted(found)

    def _await(self, request: Request, trouble: TradewindError) -> list[Machine]:
        until = clock.monotonic() + _WAIT_S
        while clock.monotonic() < until:
            found = self._bought(request)
            if found:
                return found
            clock.sleep(_PAUSE_S)
        raise OutcomeUnknown(trouble.message, hint="it was bought, and is not listed yet")

    # Seeing.

    def _described(
        self, region: str, filters: list[dict[str, Any]]
    ) -> tuple[int | None, list[Machine]]:
        ec2 = self._account.client("ec2", region)
        with explained(f"listing machines in {region}"):
            pages = list(ec2.get_paginator("describe_instances").paginate(Filters=filters))
        at_s = listing.answered_s(pages[0]) if pages else None
        there = list(listing.instances(pages))
        ends = self._ended(region, there, at_s)
        machines = [listing.machine(region, each, ends.get(each["InstanceId"])) for each in there]
        told = [machine for machine in machines if machine is not None]
        now_s = int(clock.now().timestamp()) if at_s is None else at_s
        return at_s, self._paid.priced(region, there, told, now_s)

    def _ended(
        self, region: str, instances: Sequence[dict[str, Any]], at_s: int | None
    ) -> dict[str, int]:
        """When each of those that have ended did: as EC2 says, or as its spot request does, or when
        we first saw it."""
        ends: dict[str, int] = {}
        silent: dict[str, str] = {}
        for each in instances:
            if listing.has_ended(each):
                name, said = each["InstanceId"], listing.said_end_s(each)
                if said is not None:
                    ends[name] = said
                elif name in self._ends:
                    ends[name] = self._ends[name]
                else:
                    silent[name] = str(each.get("SpotInstanceRequestId") or "")
        if silent:
            told = self._spot_ends(region, [request for request in silent.values() if request])
            now_s = at_s if at_s is not None else int(clock.now().timestamp())
            for name, request in silent.items():
                ends[name] = self._ends[name] = told.get(request, now_s)
        return ends

    def _spot_ends(self, region: str, requests: Sequence[str]) -> dict[str, int]:
        if not requests:
            return {}
        filters = [{"Name": "spot-instance-request-id", "Values": sorted(requests)}]
        try:
            with explained(f"asking for spot requests in {region}"):
                answer = self._account.client("ec2", region).describe_spot_instance_requests(
                    Filters=filters
                )
        except SourceFailed:
            return {}
        return {
            each["SpotInstanceRequestId"]: int(each["Status"]["UpdateTime"].timestamp())
            for each in answer["SpotInstanceRequests"]
            if str(each.get("Status", {}).get("Code", "")).startswith("instance-terminated")
        }

    @staticmethod
    def _sorted(machines: Any) -> list[Machine]:
        found = [machine for machine in machines if machine is not None]
        return sorted(found, key=lambda machine: machine.rank)


def _over(machines: Sequence[Machine]) -> set[str]:
    """Launches of several machines, none of which is up. One that is just being made has none."""
    launches: dict[str, list[Machine]] = {}
    for machine in machines:
        launches.setdefault(machine.launch_id, []).append(machine)
    return {
        launch
        for launch, of_it in launches.items()
        if len(of_it) > 1 and all(machine.ended_s is not None for machine in of_it)
    }
