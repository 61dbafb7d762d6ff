"""Instances of Compute Engine: made one by one or many at once, listed, deleted.

An insert is accepted, and the operation tells later whether there was room; meanwhile the instance
is PROVISIONING. Each has a body once it runs, which runs its startup script. A deleted one is in no
list any more; the operations that ended it are: `delete`, `compute.instances.preempted`,
`compute.instances.deferredDelete` (its time was over), `compute.instances.guestTerminate` (it shut
itself down, and stays TERMINATED, unless its time is over later).

Known lies: STAGING is passed over; nothing can be started again, suspended or changed but labels;
a preemption's operation lasts from the notice to the end; a machine costs until the
operation that ends it is done, its shutdown with it; a request that comes again with the same
requestId and another body is refused by 400; insert of a flex-start machine that waits is an
operation that runs until it has one. Disks are billed from the insert to the delete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.cloud.faces.google import disks, fabric, listing, orders, places
from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.identity import Who
from tests.cloud.faces.google.orders import Order
from tests.cloud.faces.google.problems import Problem, exists, unknown
from tests.cloud.faces.google.shelves import Shelves
from tests.cloud.faces.google.state import LINK, Operation, State, stamp
from tests.cloud.world import Machine, Thing

_STATES = {
    "pending": "PROVISIONING",
    "running": "RUNNING",
    "stopping": "STOPPING",
    "stopped": "TERMINATED",
    "ending": "STOPPING",
}
_WAIT_S = 0.2
_ENDED_BY = {
    "spot": "compute.instances.preempted",
    "inside": "compute.instances.guestTerminate",
    "limit": "compute.instances.deferredDelete",
}


@dataclass
class Instance:
    name: str
    project: str
    zone: str
    id: str
    order: Order
    made: float
    machine: Machine | None = None
    """None while it waits, or where there is no room for it."""
    waits: bool = False
    ending: list[Operation] = field(default_factory=list)
    """Operations that are done when it is gone."""
    operation: Operation | None = None
    disks: list[str] = field(default_factory=list)
    gone: bool = False
    billed_until: float | None = None
    """When the operation that ended it was done."""

    @property
    def path(self) -> str:
        return f"projects/{self.project}/zones/{self.zone}/instances/{self.name}"


class Instances:
    def __init__(self, state: State, shelves: Shelves) -> None:
        self._state, self._world, self._shelves = state, state.world, shelves
        self.all: list[Instance] = []
        self._requests: dict[tuple[str, str, str], tuple[Any, dict[str, Any]]] = {}

    def does(self) -> dict[str, Callable[[GoogleCall], Any]]:
        return {
            "compute.instances.insert": self.insert,
            "compute.instances.bulkInsert": self.bulk,
            "compute.regionInstances.bulkInsert": self.bulk,
            "compute.instances.list": self.list_,
            "compute.instances.aggregatedList": self.aggregated,
            "compute.instances.get": lambda call: self.told(self._named(call)),
            "compute.instances.delete": self.delete,
            "compute.instances.setLabels": self.set_labels,
            "compute.instances.getSerialPortOutput": self.console,
        }

    # -- finding -----------------------------------------------------------------------------------

    def at(self, project: str, zone: str, name: str) -> Instance | None:
        for each in reversed(self.all):
            there = (each.project, each.zone) == (project, zone)
            if there and not each.gone and name in (each.name, each.id):
                return each
        return None

    def of(self, machine: Machine) -> Instance | None:
        return machine.record if isinstance(machine.record, Instance) else None

    def _named(self, call: GoogleCall) -> Instance:
        self.zone(call.params["zone"])
        found = self.at(call.project, call.params["zone"], call.params["instance"])
        if found is None:
            path = f"projects/{call.project}/zones/{call.params['zone']}/instances/"
            raise unknown(path + call.params["instance"])
        return found

    def zone(self, zone: str) -> str:
        if not places.is_zone(zone):
            raise Problem(400, f"Invalid value for field 'zone': '{zone}'. Unknown zone.")
        return zone

    def _listed(self, project: str) -> list[Instance]:
        now, lag_s = self._world.now(), self._state.dials.lag_s
        return [
            each
            for each in self.all
            if each.project == project and not each.gone and each.made + lag_s <= now
        ]

    # -- making ------------------------------------------------------------------------------------

    def once(self, call: GoogleCall, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """By the request's id."""
        request = call.params.get("requestId", "")
        if not request:
            return act()
        if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", request):
            raise Problem(400, f"Invalid value for field 'requestId': '{request}'. Must be a UUID.")
        key = call.project, call.action, request
        if key in self._requests:
            before, told = self._requests[key]
            if before != call.json:
                raise Problem(400, "Invalid value for field 'requestId': it was used differently.")
            return self._state.operations[told["name"]].told
        told = act()
        self._requests[key] = call.json, told
        return told

    def insert(self, call: GoogleCall) -> dict[str, Any]:
        return self.once(call, partial(self._insert, call))

    def _insert(self, call: GoogleCall) -> dict[str, Any]:
        zone, told = self.zone(call.params["zone"]), call.json
        orders.name(told["name"])
        order = orders.read(told, zone, "resource", self.offered)
        self._references(call, order, places.region_of(zone))
        if self.at(call.project, zone, told["name"]):
            raise exists(f"projects/{call.project}/zones/{zone}/instances/{told['name']}")
        made = self._ordered(call.project, zone, told["name"], order)
        operation = self._begin(made, call.who)
        self._decide([made], 1, zone, operation, None)
        return operation.told

    def bulk(self, call: GoogleCall) -> dict[str, Any]:
        return self.once(call, partial(self._bulk, call))

    def _bulk(self, call: GoogleCall) -> dict[str, Any]:
        told = call.json
        count = int(told.get("count", 0))
        least = int(told.get("minCount", count))
        if count < 1 or least > count:
            raise Problem(400, "Invalid value for field 'resource.count': it must be positive.")
        allowed = self._zones(call)
        names = _names(told, count)
        order = orders.read(
            told.get("instanceProperties", {}),
            allowed[0],
            "resource.instanceProperties",
            self.offered,
        )
        region = places.region_of(allowed[0])
        self._references(call, order, region)
        zone = self._chosen(allowed, order, least)
        regional = "region" in call.params
        scope = f"regions/{region}" if regional else f"zones/{zone}"
        status = {"targetVmCount": count, "createdVmCount": 0, "status": "CREATING"}
        group = f"group-{self._state.number()}"
        more = {
            "operationGroupId": group,
            "instancesBulkInsertOperationMetadata": {
                "perLocationStatus": {f"zones/{zone}": status}
            },
        }
        operation = self._state.begin(call.project, scope, "bulkInsert", scope, "", call.who, more)
        taken = [each for each in names if self.at(call.project, zone, each)]
        if taken:
            path = f"projects/{call.project}/zones/{zone}/instances/{taken[0]}"
            error = {"code": "RESOURCE_ALREADY_EXISTS", "http": (409, "CONFLICT")}
            error["message"] = f"The resource '{path}' already exists"
            self._state.after(
                self._state.dials.operation_s, partial(self._state.done, operation, error)
            )
            return operation.told
        made = [self._ordered(call.project, zone, each, order) for each in names]
        for each in made:
            self._begin(each, call.who, {"operationGroupId": group})
        self._decide(made, least, zone, operation, status)
        return operation.told

    def _zones(self, call: GoogleCall) -> list[str]:
        if "zone" in call.params:
            return [self.zone(call.params["zone"])]
        region = call.params["region"]
        found = places.zones(region)
        if not found:
            raise Problem(400, f"Invalid value for field 'region': '{region}'. Unknown region.")
        wished = call.json.get("locationPolicy", {}).get("locations", {})
        denied = [n for n, told in wished.items() if told.get("preference") == "DENY"]
        allowed = [n for n, told in wished.items() if told.get("preference") == "ALLOW"]
        for each in (*denied, *allowed):
            if each.rpartition("/")[2] not in found:
                raise orders.bad("resource.locationPolicy.locations", each, "Unknown zone.")
        short = [each.rpartition("/")[2] for each in allowed] or found
        return [each for each in short if f"zones/{each}" not in denied] or found

    def _chosen(self, zones: list[str], order: Order, least: int) -> str:
        machine_type = order.kind.partition("+")[0]
        offered = [each for each in zones if self.offered(each, machine_type)] or zones
        room = [e for e in offered if self._world.room((e,), order.kind, order.market) >= least]
        return (room or offered)[0]

    def offered(self, zone: str, kind: str) -> bool:
        return not {(zone, kind), ("*", kind), (places.region_of(zone), kind)} & (
            self._state.not_offered
        )

    def _references(self, call: GoogleCall, order: Order, region: str) -> None:
        """Whatever it names must be there."""
        told = order.told
        for each in told.get("disks", []):
            wished = each.get("initializeParams", {})
            disks.more_usd_month(wished, disks.kind(wished, order.kind))  # raises
            image = each.get("initializeParams", {}).get("sourceImage")
            if image:
                least = int(self._shelves.image(image).get("diskSizeGb", 10))
                size = int(each["initializeParams"].get("diskSizeGb") or least)
                if size < least:
                    raise orders.bad(
                        "resource.disks[0].initializeParams.diskSizeGb",
                        size,
                        f"Requested disk size cannot be smaller than the image size ({least} GB)",
                    )
        cards = []
        for each in told.get("networkInterfaces", []):
            if each.get("subnetwork"):
                need = self._shelves.need
                cards.append((each, need(each["subnetwork"], "subnetworks", call.project, region)))
            elif each.get("network"):
                self._shelves.need(each["network"], "networks", call.project, "")
        if not told.get("networkInterfaces"):
            raise orders.bad("resource.networkInterfaces", "", "At least one is required.")
        zone = call.params.get("zone", "")
        fabric.check_cards(order.kind, zone, cards, self._shelves.network)
        for each in told.get("resourcePolicies", []):
            self._shelves.need(each, "resourcePolicies", call.project, region)
        for each in told.get("serviceAccounts", []):
            email = each.get("email", "")
            if email != "default" and not self._state.knows(email):
                raise orders.bad(
                    "resource.serviceAccounts",
                    email,
                    f"The user does not have access to service account '{email}'.  User:"
                    f" '{call.who.email}'.  Ask a project owner to grant you the"
                    " iam.serviceAccountUser role on the service account",
                )
        affinity = told.get("reservationAffinity", {})
        if affinity.get("consumeReservationType") == "SPECIFIC_RESERVATION":
            for each in affinity.get("values", []):
                self._shelves.reservation(each, call.project)

    def _ordered(self, project: str, zone: str, name: str, order: Order) -> Instance:
        now = self._world.now()
        made = Instance(name, project, zone, self._state.number(), order, now)
        self.all.append(made)
        for number, each in enumerate(order.told.get("disks", [])):
            if each.get("type") == "SCRATCH":
                continue
            wished = each.get("initializeParams", {})
            gb = int(wished.get("diskSizeGb") or each.get("diskSizeGb") or 10)
            disk = f"disk-{made.id}-{number}"
            region = places.region_of(zone)
            sort = disks.kind(wished, order.kind)
            self._world.things[disk] = Thing(
                disk, "volume", region, now, gb=gb, machine=made.id, kind=sort,
                more_usd_month=disks.more_usd_month(wished, sort),
            )  # fmt: skip
            made.disks.append(disk)
        return made

    def _begin(self, made: Instance, who: Who, more: Any = None) -> Operation:
        target = f"zones/{made.zone}/instances/{made.name}"
        scope = f"zones/{made.zone}"
        made.operation = self._state.begin(
            made.project, scope, "insert", target, made.id, who, more
        )
        return made.operation

    # -- whether there is room ---------------------------------------------------------------------

    def _decide(
        self,
        made: list[Instance],
        least: int,
        zone: str,
        operation: Operation,
        status: dict[str, Any] | None,
    ) -> None:
        """Now, to be told when the operation ends. Those that may wait do."""
        order = made[0].order
        if order.market == "flex-start":
            for each in made:
                each.waits = True
            until = self._world.now() + max(order.waits_s, self._state.dials.queue_s)
            self._state.after(
                self._state.dials.queue_s,
                partial(self._try, made, least, zone, operation, status, until),
            )
            return
        error = self._state.late_error(
            "compute.instances.bulkInsert" if status else "compute.instances.insert"
        ) or self._missing(made[0].project, zone, order, len(made), least)
        self._settle(made, least, operation, status, error)

    def _try(
        self,
        made: list[Instance],
        least: int,
        zone: str,
        operation: Operation,
        status: dict[str, Any] | None,
        until: float,
    ) -> None:
        made = [each for each in made if not each.gone]
        if not made:
            self._state.done(
                operation, {"code": "RESOURCE_NOT_FOUND", "message": "It was deleted."}
            )
            return
        error = self._missing(made[0].project, zone, made[0].order, len(made), least)
        if error is not None and self._world.now() < until:
            again = partial(self._try, made, least, zone, operation, status, until)
            self._state.after(_WAIT_S, again)
            return
        for each in made:
            each.waits = False
        self._settle(made, least, operation, status, error)

    def _settle(
        self,
        made: list[Instance],
        least: int,
        operation: Operation,
        status: dict[str, Any] | None,
        error: dict[str, Any] | None,
    ) -> None:
        wait_s = self._state.dials.operation_s
        if error is None:
            for each in made:
                self._run(each)
            self._state.after(wait_s, partial(self._succeeded, made, operation, status))
        else:
            self._state.after(wait_s, partial(self._failed, made, least, operation, status, error))

    def _missing(
        self, project: str, zone: str, order: Order, count: int, least: int
    ) -> dict[str, Any] | None:
        """Why there are not `least` of them. Known lie: never fewer than `count` are given."""
        error = self._over_quota(project, places.region_of(zone), order, count)
        if error is None and self._world.room((zone,), order.kind, order.market) < count:
            error = stock_out(project, zone, order)
        return error

    def _over_quota(
        self, project: str, region: str, order: Order, count: int
    ) -> dict[str, Any] | None:
        for code, much in places.counted(order.kind, order.market):
            limit = self._world.quotas.value(region, code)
            used = self.used(region, code)
            if used + much * count > limit:
                where = "globally" if code in places.GLOBAL else f"in region {region}"
                details = {
                    "quotaInfo": {
                        "metricName": f"compute.googleapis.com/{code.lower()}",
                        "limitName": code.replace("_", "-") + "-per-project-region",
                        "dimensions": {"region": "global" if "glob" in where else region},
                        "limit": limit,
                    }
                }
                return {
                    "code": "QUOTA_EXCEEDED",
                    "message": f"Quota '{code}' exceeded.  Limit: {limit:.1f} {where}.",
                    "errorDetails": [details],
                    "http": (403, "FORBIDDEN"),
                }
        return None

    def used(self, region: str, code: str) -> float:
        alive = self._world.alive() if code in places.GLOBAL else self._world.alive(region=region)
        found = 0.0
        for each in alive:
            much = [m for of, m in places.counted(each.kind, each.market) if of == code]
            found += sum(much)
        return found

    def _run(self, made: Instance) -> None:
        world, order = self._world, made.order
        now = world.now()
        machine = Machine(
            id=made.id,
            region=places.region_of(made.zone),
            zones=(made.zone,),
            kind=order.kind,
            market=order.market,
            reserved="values" in order.told.get("reservationAffinity", {}),
            launched=made.made,
            listed_from=now,
            user_data=order.script,
            record=made,
            name=made.name,
            public=order.public,
        )
        made.machine = machine
        machine.address = world.bodies.address(machine) or f"10.128.0.{len(self.all) % 250 + 2}"
        machine.hostname = f"{made.name}.{made.zone}.c.{made.project}.internal {made.name}"
        world.begin(machine)

    def _succeeded(
        self, made: list[Instance], operation: Operation, status: dict[str, Any] | None
    ) -> None:
        for each in made:
            assert each.operation is not None
            self._state.done(each.operation)
        if status is not None:
            status |= {"createdVmCount": len(made), "status": "DONE"}
            self._state.done(operation)

    def _failed(
        self,
        made: list[Instance],
        least: int,
        operation: Operation,
        status: dict[str, Any] | None,
        error: dict[str, Any],
    ) -> None:
        for each in made:
            assert each.operation is not None
            self._state.done(each.operation, error)
            self._forget(each)
        if status is not None:
            status |= {"failedToCreateVmCount": len(made), "status": "DONE"}
            words = f"Requested minimum count of {least} VMs could not be created."
            whole = {"code": "VM_MIN_COUNT_NOT_REACHED", "message": words}
            also = [{k: v for k, v in error.items() if k != "http"}]
            http = error.get("http", (503, "SERVICE UNAVAILABLE"))
            why = also if self._state.dials.bulk_says_why else []
            self._state.done(operation, {**whole, "also": why, "http": http})

    # -- ending ------------------------------------------------------------------------------------

    def delete(self, call: GoogleCall) -> dict[str, Any]:
        made = self._named(call)
        return self.once(call, partial(self._delete, made, call))

    def _delete(self, made: Instance, call: GoogleCall) -> dict[str, Any]:
        target = f"zones/{made.zone}/instances/{made.name}"
        operation = self._state.begin(
            made.project, f"zones/{made.zone}", "delete", target, made.id, call.who
        )
        machine = made.machine
        made.ending.append(operation)
        if machine is None:
            self._state.after(self._state.dials.operation_s, partial(self._forget, made))
        elif machine.state == "stopped":
            self._world.discard(machine)
        else:
            self._world.end(machine, "user")
        return operation.told

    def _forget(self, made: Instance) -> None:
        """It is gone, and its disks with it."""
        if made.gone:
            return
        made.gone = True
        gone = self._world.now()
        if made.machine is not None and made.machine.ended_by == "spot":
            gone = made.machine.ended or gone
        kept = [each.get("autoDelete", False) for each in made.order.told.get("disks", [])]
        for disk, with_it in zip(made.disks, kept, strict=False):
            if with_it:
                self._world.things[disk].gone = gone
        self._over_at(made, self._world.now())

    def _over_at(self, made: Instance, moment: float) -> None:
        """Operations that end it are done, and it costs nothing from then on."""
        if made.billed_until is None:
            made.billed_until = moment
        for each in made.ending:
            self._state.done(each, at=moment)

    def noticed(self, made: Instance) -> None:
        target = f"zones/{made.zone}/instances/{made.name}"
        operation = self._state.begin(
            made.project,
            f"zones/{made.zone}",
            "compute.instances.preempted",
            target,
            made.id,
            more={"statusMessage": "Instance was preempted."},
        )
        made.ending.append(operation)

    def ended(self, made: Instance, by: str) -> None:
        """Its body is dead, or about to be; `shown` comes when the API may tell."""
        if by in ("inside", "limit"):
            sort = _ENDED_BY[by]
            if by == "limit" and not made.order.deletes:
                sort = "compute.instances.deferredStop"
            target = f"zones/{made.zone}/instances/{made.name}"
            operation = self._state.begin(made.project, f"zones/{made.zone}", sort, target, made.id)
            made.ending.append(operation)
        assert made.machine is not None
        assert made.machine.ended is not None
        if by in ("inside", "spot"):
            self._over_at(made, made.machine.ended)

    def shown(self, made: Instance) -> None:
        machine = made.machine
        assert machine is not None
        if machine.state == "running" and made.order.limit_s is not None:
            assert machine.running_at is not None
            self._world.agenda.at(
                machine.running_at + made.order.limit_s, partial(self._over, made)
            )
        elif machine.state == "ended":
            self._forget(made)

    def _over(self, made: Instance) -> None:
        """Its time is."""
        machine = made.machine
        if made.gone or machine is None:
            return
        if machine.ended is None:
            self._world.end(machine, "limit")
        elif machine.state == "stopped" and made.order.deletes:
            self.ended(made, "limit")
            self._world.discard(machine)

    # -- telling -----------------------------------------------------------------------------------

    def told(self, made: Instance) -> dict[str, Any]:
        order, machine = made.order, made.machine
        status = _STATES.get(machine.state, "STOPPING") if machine else "PROVISIONING"
        if made.waits:
            status = "PENDING"
        scheduling = {"automaticRestart": False, **order.told.get("scheduling", {})}
        told = {
            **{k: v for k, v in order.told.items() if k not in ("disks", "params")},
            "kind": "compute#instance",
            "id": made.id,
            "name": made.name,
            "creationTimestamp": stamp(made.made),
            "zone": f"{LINK}projects/{made.project}/zones/{made.zone}",
            "machineType": f"{LINK}projects/{made.project}/zones/{made.zone}/machineTypes/"
            + order.told["machineType"].rpartition("/")[2],
            "status": status,
            "selfLink": f"{LINK}{made.path}",
            "scheduling": scheduling,
            "labelFingerprint": "42WmSpB8rSM=",
            "fingerprint": f"f{made.id[-8:]}=",
            "networkInterfaces": self._cards(made),
            "disks": [
                {
                    **{k: v for k, v in each.items() if k != "initializeParams"},
                    "kind": "compute#attachedDisk",
                    "index": number,
                    "diskSizeGb": str(each.get("initializeParams", {}).get("diskSizeGb", 10)),
                    "source": f"{LINK}projects/{made.project}/zones/{made.zone}/disks/{made.name}"
                    + (f"-{number}" if number else ""),
                }
                for number, each in enumerate(order.told.get("disks", []))
            ],
        }
        if machine is not None and machine.running_at is not None:
            told["lastStartTimestamp"] = stamp(machine.running_at)
            if order.limit_s is not None:
                ends = machine.running_at + order.limit_s
                told["resourceStatus"] = {"scheduling": {"terminationTimestamp": stamp(ends)}}
        if status == "TERMINATED" and machine is not None and machine.ended is not None:
            told["lastStopTimestamp"] = stamp(machine.ended)
        return told

    def _cards(self, made: Instance) -> list[dict[str, Any]]:
        address = made.machine.address if made.machine else ""
        found = []
        for number, each in enumerate(made.order.told.get("networkInterfaces", [])):
            card = {**each, "name": f"nic{number}", "kind": "compute#networkInterface"}
            card["networkIP"] = address if number == 0 else f"10.200.{number}.2"
            if each.get("accessConfigs"):
                config = {**each["accessConfigs"][0], "natIP": f"203.0.113.{int(made.id[-2:]) + 1}"}
                card["accessConfigs"] = [{"kind": "compute#accessConfig", **config}]
            found.append(card)
        return found

    def list_(self, call: GoogleCall) -> dict[str, Any]:
        zone = self.zone(call.params["zone"])
        there = [self.told(each) for each in self._listed(call.project) if each.zone == zone]
        told = listing.page(listing.kept(there, call.params.get("filter", "")), call.params)
        return {"kind": "compute#instanceList", **told}

    def aggregated(self, call: GoogleCall) -> dict[str, Any]:
        there = [(f"zones/{each.zone}", self.told(each)) for each in self._listed(call.project)]
        every = [f"zones/{each}" for region in places.ZONES for each in places.zones(region)]
        told = listing.aggregated(there, "instances", every, call.params)
        return {"kind": "compute#instanceAggregatedList", **told, **self._unreachable(told)}

    def _unreachable(self, told: dict[str, Any]) -> dict[str, Any]:
        """Zones that do not answer just now, as a test has said."""
        zones = self._state.unreachable
        for zone in zones:
            words = f"The zone '{zone}' did not answer."
            told["items"][f"zones/{zone}"] = {"warning": {"code": "UNREACHABLE", "message": words}}
        return {"unreachables": [f"zones/{each}" for each in zones]} if zones else {}

    def set_labels(self, call: GoogleCall) -> dict[str, Any]:
        made = self._named(call)
        made.order.told["labels"] = call.json.get("labels", {})
        target = f"zones/{made.zone}/instances/{made.name}"
        return self._state.later(
            made.project, f"zones/{made.zone}", "setLabels", target, made.id, call.who
        )

    def console(self, call: GoogleCall) -> dict[str, Any]:
        made = self._named(call)
        text = ""
        if made.machine is not None:
            text = self._world.bodies.console(made.id).decode(errors="replace")
        start = int(call.params.get("start", 0))
        told = {"kind": "compute#serialPortOutput", "contents": text[start:], "start": str(start)}
        return {**told, "next": str(len(text)), "selfLink": f"{LINK}{made.path}/serialPort"}


def _names(told: dict[str, Any], count: int) -> list[str]:
    own = told.get("perInstanceProperties") or {}
    if own:
        if len(own) != count:
            raise Problem(
                400,
                "Invalid value for field 'resource.perInstanceProperties': there must be as many as"
                " resource.count",
            )
        for each in own:
            orders.name(each, "resource.perInstanceProperties")
        return list(own)
    pattern = told.get("namePattern", "")
    marks = re.search(r"#+", pattern)
    if not marks:
        raise orders.bad("resource.namePattern", pattern, "It must have a sequence of '#'.")
    width = len(marks[0])
    return [pattern.replace(marks[0], f"{n:0{width}}") for n in range(1, count + 1)]


def stock_out(project: str, zone: str, order: Order) -> dict[str, Any]:
    kind = order.kind.partition("+")[0]
    info = {
        "reason": "stockout" if order.market != "spot" else "resource_availability",
        "domain": "compute.googleapis.com",
        "metadatas": {"vmType": kind, "zone": zone, "zonesAvailable": "", "attachment": ""},
    }
    words = (
        f"The zone 'projects/{project}/zones/{zone}' does not have enough resources available to"
        f" fulfill the request.  '(resource type:compute)'."
    )
    return {
        "code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "message": words,
        "errorDetails": [{"errorInfo": info}],
        "http": (503, "SERVICE UNAVAILABLE"),
    }
