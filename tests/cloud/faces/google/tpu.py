"""TPU VMs (v2, v2alpha1): a node is a slice, whose workers are machines with bodies; a queued
resource waits for room, and then makes its nodes.

A spot slice is taken as a whole: notice to every worker, then the node is PREEMPTED and stays until
it is deleted, costing nothing; the queued resource that made it is SUSPENDED. Capacity (control's)
counts slices of a type `tpu-TYPE`. A slice costs its type's price, each worker an equal part, from
when it is READY until its end is asked for. A worker that shuts itself down is paid on.

Known lies: quotas are by zone, under the names that errors tell, and asked of nobody else; an
operation that fails leaves no node behind (the real one may, in state UNKNOWN); a queued resource
passes ACCEPTED at once; reservations, data disks, stop and start are not there; of several nodes of
one queued resource all have room or none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.cloud.faces.google import places, tputypes
from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.problems import Problem
from tests.cloud.faces.google.shelves import Shelves
from tests.cloud.faces.google.state import State, zulu
from tests.cloud.faces.google.tputypes import Type
from tests.cloud.world import Machine

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_WAIT_S = 0.2
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@dataclass
class Slice:
    project: str
    zone: str
    name: str
    id: str
    told: dict[str, Any]
    """As it was asked for."""
    type: Type
    made: float
    spot: bool = False
    email: str = ""
    state: str = "CREATING"
    workers: list[Machine] = field(default_factory=list)
    queued: Queued | None = None
    operations: list[dict[str, Any]] = field(default_factory=list)
    """Done when it is READY."""
    ending: list[dict[str, Any]] = field(default_factory=list)
    """Done when it is gone."""

    @property
    def path(self) -> str:
        return f"projects/{self.project}/locations/{self.zone}/nodes/{self.name}"

    @property
    def kind(self) -> str:
        return f"tpu-{self.type.name}"


@dataclass
class Queued:
    project: str
    zone: str
    name: str
    told: dict[str, Any]
    made: float
    until: float | None
    state: str = "WAITING_FOR_RESOURCES"
    by: str = "SERVICE"
    words: str = ""
    gone: bool = False

    @property
    def path(self) -> str:
        return f"projects/{self.project}/locations/{self.zone}/queuedResources/{self.name}"


@dataclass
class Worker:
    slice: Slice
    number: int

    def attributes(self) -> dict[str, str]:
        whole = self.slice
        kind = whole.type
        addresses = [each.address for each in whole.workers]
        bounds = "2,2,1" if kind.chips_a_host == 4 else f"{'2,4' if kind.chips == 8 else '1,1'},1"
        env = {
            "ACCELERATOR_TYPE": kind.name,
            "CHIPS_PER_HOST_BOUNDS": bounds,
            "CONSUMER_PROJECT_ID": whole.project,
            "HOST_BOUNDS": f"1,{kind.hosts},1",
            "NODE_ID": whole.name,
            "PREEMPTIBLE": "true" if whole.spot else "false",
            "RUNTIME_VERSION": whole.told.get("runtimeVersion", ""),
            "TOPOLOGY": kind.topology,
            "TPU_CHIPS_PER_PROCESS_BOUNDS": bounds,
            "TPU_PROCESS_BOUNDS": f"1,{kind.hosts},1",
            "WORKER_ID": str(self.number),
            "ZONE": whole.zone,
        }
        return {
            **whole.told.get("metadata", {}),
            "accelerator-type": kind.name,
            "agent-worker-number": str(self.number),
            "instance-id": whole.name,
            "tpu-env": "".join(f"{name}: '{value}'\n" for name, value in env.items()),
            "worker-network-endpoints": ",".join(f"unknown:unknown:{each}" for each in addresses),
        }


class Slices:
    def __init__(self, state: State, shelves: Shelves) -> None:
        self._state, self._world, self._shelves = state, state.world, shelves
        self.nodes: dict[str, Slice] = {}
        self.queue: dict[str, Queued] = {}
        self._operations: dict[str, dict[str, Any]] = {}
        self._requests: dict[str, tuple[Any, str]] = {}

    def does(self) -> dict[str, Callable[[GoogleCall], Any]]:
        base = "tpu.projects.locations"
        return {
            f"{base}.list": self.locations,
            f"{base}.nodes.create": self.create,
            f"{base}.nodes.get": lambda call: self._told(self._node(call)),
            f"{base}.nodes.list": self.list_nodes,
            f"{base}.nodes.delete": self.delete,
            f"{base}.queuedResources.create": self.enqueue,
            f"{base}.queuedResources.get": lambda call: self._told_queued(self._queued(call)),
            f"{base}.queuedResources.list": self.list_queued,
            f"{base}.queuedResources.delete": self.dequeue,
            f"{base}.queuedResources.reset": self.reset,
            f"{base}.operations.get": self.operation,
            f"{base}.operations.list": self.list_operations,
            f"{base}.acceleratorTypes.list": self.types,
            f"{base}.acceleratorTypes.get": self.one_type,
            f"{base}.runtimeVersions.list": self.runtimes,
            f"{base}.runtimeVersions.get": self.runtime,
        }

    # -- reading -----------------------------------------------------------------------------------

    def _place(self, call: GoogleCall) -> str:
        parent = call.params.get("parent") or call.params["name"]
        zone = re.sub(r".*/locations/([^/:]+).*", r"\1", parent)
        everywhere = zone == "-" and (
            not self._state.dials.tpu_by_zone or call.action.endswith(".nodes.list")
        )
        if not everywhere and not places.is_zone(zone):
            words = f"Location {zone} is not found or access is unauthorized."
            raise Problem(403, words)
        return zone

    def _node(self, call: GoogleCall) -> Slice:
        zone, name = self._place(call), call.params["name"].rpartition("/")[2]
        path = f"projects/{call.project}/locations/{zone}/nodes/{name}"
        if path not in self.nodes:
            raise Problem(404, f"Resource '{path}' was not found")
        return self.nodes[path]

    def _queued(self, call: GoogleCall) -> Queued:
        zone = self._place(call)
        name = re.sub(r":\w+$", "", call.params["name"]).rpartition("/")[2]
        path = f"projects/{call.project}/locations/{zone}/queuedResources/{name}"
        if path not in self.queue:
            raise Problem(404, f"Resource '{path}' was not found")
        return self.queue[path]

    def _read(self, project: str, zone: str, name: str, told: dict[str, Any], spot: bool) -> Slice:
        if not _NAME.fullmatch(name):
            raise Problem(400, f"Invalid value for node_id: '{name}'")
        path = f"projects/{project}/locations/{zone}/nodes/{name}"
        if path in self.nodes:
            raise Problem(409, f"Resource '{path}' already exists")
        config = told.get("acceleratorConfig")
        wished = told.get("acceleratorType", "")
        if bool(config) == bool(wished):
            raise Problem(400, "Exactly one of accelerator_type and accelerator_config is needed")
        kind = tputypes.found(wished)
        if config:
            kind = tputypes.of_config(config.get("type", ""), config.get("topology", ""))
        if kind is None or not self._offered(zone, kind.name):
            shown = wished or config
            words = f"Accelerator type '{shown}' is not available in zone '{zone}'"
            raise Problem(400, words)
        runtime = told.get("runtimeVersion", "")
        if runtime not in tputypes.RUNTIMES[kind.version]:
            words = f"Runtime version '{runtime}' is not compatible with accelerator '{kind.name}'"
            raise Problem(400, words)
        for key, value in told.get("labels", {}).items():
            if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key) or len(value) > 63:
                raise Problem(400, f"Invalid label: {key}={value}")
        network = told.get("networkConfig", {})
        if network.get("subnetwork"):
            region = places.region_of(zone)
            self._shelves.need(network["subnetwork"], "subnetworks", project, region)
        elif network.get("network"):
            self._shelves.need(network["network"], "networks", project, "")
        email = told.get("serviceAccount", {}).get("email", "")
        number = self._state.found(project).number
        email = email or f"{number}-compute@developer.gserviceaccount.com"
        if not self._state.knows(email):
            raise Problem(400, f"Service account '{email}' does not exist.")
        scheduling = told.get("schedulingConfig", {})
        spot = spot or bool(scheduling.get("spot") or scheduling.get("preemptible"))
        now = self._world.now()
        return Slice(project, zone, name, self._state.number(), told, kind, now, spot, email)

    def _offered(self, zone: str, kind: str) -> bool:
        known = self._state.not_offered
        return not {(zone, kind), ("*", kind), (places.region_of(zone), kind)} & known

    # -- room --------------------------------------------------------------------------------------

    def _alive(self, zone: str, version: str = "") -> list[Slice]:
        alive = ("CREATING", "READY")
        return [
            each
            for each in self.nodes.values()
            if each.zone == zone and each.state in alive and version in ("", each.type.version)
        ]

    def _room(self, wished: list[Slice]) -> bool:
        first = wished[0]
        market = "spot" if first.spot else "on-demand"
        most = self._world.dials.limit((first.zone,), first.kind, market)
        if first.spot:
            most = min(most, self._world.market.room((first.zone,)))
        same = [
            each
            for each in self._alive(first.zone)
            if (each.kind, each.spot) == (first.kind, first.spot) and each not in wished
        ]
        return most - len(same) >= len(wished)

    def _over(self, wished: list[Slice]) -> Problem | None:
        first = wished[0]
        name = tputypes.limit(first.type.version, first.spot)
        value = self._world.quotas.value(places.region_of(first.zone), name)
        used = sum(
            each.type.chips
            for each in self._alive(first.zone, first.type.version)
            if each.spot == first.spot and each not in wished
        )
        if used + sum(each.type.chips for each in wished) <= value:
            return None
        words = f"Quota limit '{name}' has been exceeded. Limit: {value:g} in zone {first.zone}."
        return Problem(429, words, "rateLimitExceeded", "RESOURCE_EXHAUSTED")

    # -- nodes -------------------------------------------------------------------------------------

    def create(self, call: GoogleCall) -> dict[str, Any]:
        zone = self._place(call)
        made = self._read(call.project, zone, call.params.get("nodeId", ""), call.json, False)
        over = self._over([made])
        if over:
            raise over
        operation = self._begin(call, made.path, "create")
        error = self._state.late_error("tpu.projects.locations.nodes.create")
        failure: dict[str, Any] | None = None
        if error is not None:
            failure = {"code": int(error["http"][0]), "message": error["message"]}
        elif not self._room([made]):
            failure = _full(zone)
        self.nodes[made.path] = made
        if failure is None:
            made.operations.append(operation)
            self._start(made)
        else:
            wait_s = self._state.dials.operation_s
            self._state.after(wait_s, partial(self._failed, made, operation, failure))
        return operation

    def _failed(self, made: Slice, operation: dict[str, Any], failure: dict[str, Any]) -> None:
        self.nodes.pop(made.path, None)
        self._done(operation, error=failure)

    def _start(self, made: Slice) -> None:
        world = self._world
        now = world.now()
        script = str(made.told.get("metadata", {}).get("startup-script", "")).encode()
        for number in range(made.type.hosts):
            machine = Machine(
                id=self._state.number(),
                region=places.region_of(made.zone),
                zones=(made.zone,),
                kind=made.kind,
                market="spot" if made.spot else "on-demand",
                launched=made.made,
                listed_from=now,
                user_data=script,
                record=Worker(made, number),
                name=f"{made.name}-w-{number}",
                share=1.0 / made.type.hosts,
                public=bool(made.told.get("networkConfig", {}).get("enableExternalIps")),
            )
            own = f"10.128.1.{len(world.machines) % 250 + 2}"
            machine.address = world.bodies.address(machine) or own
            machine.hostname = f"t1v-n-{made.id[-8:]}-w-{number}"
            made.workers.append(machine)
        for machine in made.workers:  # all addresses are known before the first begins
            world.begin(machine)

    def shown(self, machine: Machine) -> None:
        made = machine.record.slice
        states = {each.state for each in made.workers}
        whole = len(made.workers) == made.type.hosts
        if whole and states == {"running"} and made.state == "CREATING":
            made.state = "READY"
            for each in made.operations:
                self._done(each, response=self._typed(made))
            self._settle_queue(made)
        elif states == {"ended"} and made.state == "DELETING":
            self._forget(made)

    def noticed(self, machine: Machine) -> None:
        """All of a slice, or nothing of it."""
        assert machine.taken_at is not None
        for each in machine.record.slice.workers:
            self._world.notice(each, machine.taken_at - self._world.now())

    def ended(self, machine: Machine) -> None:
        made = machine.record.slice
        if machine.ended_by == "spot" and made.state in ("READY", "CREATING"):
            made.state = "PREEMPTED"
            for each in made.operations:
                self._done(each, error={"code": 10, "message": "The node was preempted."})
            for each in made.workers:
                self._world.end(each, "spot")
            if made.queued is not None:
                made.queued.state, made.queued.by = "SUSPENDED", "SERVICE"
        elif machine.ended_by == "user" and made.state in ("READY", "CREATING"):
            made.state = "DELETING"  # by whoever tidies up after a test

    def delete(self, call: GoogleCall) -> dict[str, Any]:
        made = self._node(call)
        operation = self._begin(call, made.path, "delete")
        self._end(made, operation)
        if made.queued is not None and made.queued.state == "ACTIVE":
            made.queued.state, made.queued.by = "SUSPENDED", "USER"
        return operation

    def _end(self, made: Slice, operation: dict[str, Any] | None) -> None:
        if operation is not None:
            made.ending.append(operation)
        made.state = "DELETING"
        if all(each.ended is not None for each in made.workers):
            self._state.after(self._state.dials.operation_s, partial(self._forget, made))
            return
        for each in made.workers:
            self._world.end(each, "user")

    def _forget(self, made: Slice) -> None:
        self.nodes.pop(made.path, None)
        for each in made.ending:
            self._done(each, response={"@type": "type.googleapis.com/google.protobuf.Empty"})

    def _typed(self, made: Slice) -> dict[str, Any]:
        return {"@type": "type.googleapis.com/google.cloud.tpu.v2.Node", **self._told(made)}

    def _told(self, made: Slice) -> dict[str, Any]:
        told = {
            **made.told,
            "name": made.path,
            "id": made.id,
            "state": made.state,
            "createTime": zulu(made.made),
            "acceleratorType": made.type.name,
            "acceleratorConfig": {
                "type": made.type.version.upper().replace("LITEPOD", "LITE_POD"),
                "topology": made.type.topology,
            },
            "apiVersion": "V2",
            "serviceAccount": {"email": made.email, "scope": [_SCOPE]},
            "schedulingConfig": {"spot": True} if made.spot else {},
            "networkEndpoints": [
                {"ipAddress": each.address, "port": 8470} for each in made.workers
            ],
        }
        if made.state == "READY":
            told["health"] = "HEALTHY"
        if made.queued is not None:
            told["queuedResource"] = made.queued.path
        return told

    def list_nodes(self, call: GoogleCall) -> dict[str, Any]:
        zone, now = self._place(call), self._world.now()
        lag_s = self._state.dials.lag_s
        there = [
            self._told(each)
            for each in self.nodes.values()
            if each.project == call.project and zone in ("-", each.zone)
            if each.made + lag_s <= now
        ]
        told = _page(there, "nodes", call)
        if zone == "-" and self._state.unreachable:
            base = f"projects/{call.project}/locations"
            told["unreachable"] = [f"{base}/{each}" for each in self._state.unreachable]
        return told

    # -- queued resources --------------------------------------------------------------------------

    def enqueue(self, call: GoogleCall) -> dict[str, Any]:
        zone, name = self._place(call), call.params.get("queuedResourceId", "")
        request = call.params.get("requestId", "")
        if request and request in self._requests:
            before, operation = self._requests[request]
            if before != call.json:
                raise Problem(400, "The request id was used differently.")
            return self._operations[operation]
        if not _NAME.fullmatch(name):
            raise Problem(400, f"Invalid value for queued_resource_id: '{name}'")
        path = f"projects/{call.project}/locations/{zone}/queuedResources/{name}"
        if path in self.queue:
            raise Problem(409, f"Resource '{path}' already exists")
        specs = call.json.get("tpu", {}).get("nodeSpec", [])
        if not specs:
            raise Problem(400, "At least one node_spec is needed")
        queued = Queued(
            call.project, zone, name, call.json, self._world.now(), self._until(call.json)
        )
        self._wished(queued)  # what could never be made is refused now
        self.queue[path] = queued
        made = self._begin(call, path, "create")
        wait_s = self._state.dials.operation_s
        answer = {"@type": "type.googleapis.com/google.cloud.tpu.v2.QueuedResource", "name": path}
        self._state.after(wait_s, partial(self._done, made, response=answer))
        self._state.after(self._state.dials.queue_s, partial(self._try, queued))
        if request:
            self._requests[request] = call.json, made["name"]
        return made

    def _until(self, told: dict[str, Any]) -> float | None:
        policy = told.get("queueingPolicy", {})
        if "validUntilDuration" in policy:
            return self._world.now() + float(policy["validUntilDuration"].rstrip("s"))
        if "validUntilTime" in policy:
            from datetime import datetime

            text = policy["validUntilTime"].replace("Z", "+00:00")
            return datetime.fromisoformat(text).timestamp()
        return None

    def _wished(self, queued: Queued) -> list[Slice]:
        spot = "spot" in queued.told
        found = []
        for each in queued.told["tpu"]["nodeSpec"]:
            many = each.get("multisliceParams")
            names = [each.get("nodeId", "")]
            if many:
                prefix = many.get("nodeIdPrefix") or queued.name
                names = [f"{prefix}-{n}" for n in range(int(many.get("nodeCount", 0)))]
            for name in names:
                node = each.get("node", {})
                found.append(self._read(queued.project, queued.zone, name, node, spot))
        for made in found:
            made.queued = queued
        return found

    def _try(self, queued: Queued) -> None:
        if queued.gone or queued.state != "WAITING_FOR_RESOURCES":
            return
        try:
            wished = self._wished(queued)
            error: Any = self._state.late_error("tpu.projects.locations.queuedResources.create")
            words = error["message"] if error else ""
        except Problem as problem:
            wished, words, error = [], problem.words, problem
        if error is None:
            over = self._over(wished)
            if not over and self._room(wished):
                queued.state = "PROVISIONING"
                for each in wished:
                    self.nodes[each.path] = each
                    self._start(each)
                return
            if queued.until is None or self._world.now() < queued.until:
                self._state.after(_WAIT_S, partial(self._try, queued))
                return
            words = "The request could not be fulfilled in time."
        queued.state, queued.words = "FAILED", words

    def _settle_queue(self, made: Slice) -> None:
        if made.queued is None:
            return
        of = [each for each in self.nodes.values() if each.queued is made.queued]
        if all(each.state == "READY" for each in of):
            made.queued.state = "ACTIVE"

    def _told_queued(self, queued: Queued) -> dict[str, Any]:
        every: dict[str, dict[str, Any]] = {
            "FAILED": {"failedData": {"error": {"code": 8, "message": queued.words}}},
            "ACTIVE": {"activeData": {}},
            "PROVISIONING": {"provisioningData": {}},
            "SUSPENDED": {"suspendedData": {}},
            "DELETING": {"deletingData": {}},
        }
        data = every.get(queued.state, {})
        state = {"state": queued.state, "stateInitiator": queued.by, **data}
        told = {**queued.told, "name": queued.path, "createTime": zulu(queued.made)}
        return {**told, "state": state}

    def list_queued(self, call: GoogleCall) -> dict[str, Any]:
        zone = self._place(call)
        there = [
            self._told_queued(each)
            for each in self.queue.values()
            if each.project == call.project and zone in ("-", each.zone)
        ]
        return _page(there, "queuedResources", call)

    def dequeue(self, call: GoogleCall) -> dict[str, Any]:
        queued = self._queued(call)
        nodes = [each for each in self.nodes.values() if each.queued is queued]
        if nodes and call.params.get("force") != "true":
            words = f"Queued resource '{queued.path}' has nodes. Delete them first, or use force."
            raise Problem(400, words, "failedPrecondition", "FAILED_PRECONDITION")
        operation = self._begin(call, queued.path, "delete")
        queued.state, queued.by = "DELETING", "USER"
        for each in nodes:
            self._end(each, None)
        self._dequeued(queued, operation)
        return operation

    def _dequeued(self, queued: Queued, operation: dict[str, Any]) -> None:
        if any(each.queued is queued for each in self.nodes.values()):
            self._state.after(_WAIT_S, partial(self._dequeued, queued, operation))
            return
        queued.gone = True
        self.queue.pop(queued.path, None)
        self._done(operation, response={"@type": "type.googleapis.com/google.protobuf.Empty"})

    def reset(self, call: GoogleCall) -> dict[str, Any]:
        queued = self._queued(call)
        if queued.state not in ("SUSPENDED", "FAILED"):
            words = f"Queued resource '{queued.path}' is {queued.state}."
            raise Problem(400, words, "failedPrecondition", "FAILED_PRECONDITION")
        for each in [node for node in self.nodes.values() if node.queued is queued]:
            self._end(each, None)
        queued.state = "WAITING_FOR_RESOURCES"
        operation = self._begin(call, queued.path, "reset")
        self._state.after(self._state.dials.queue_s, partial(self._try, queued))
        self._done(operation, response={})
        return operation

    # -- operations --------------------------------------------------------------------------------

    def _begin(self, call: GoogleCall, target: str, verb: str) -> dict[str, Any]:
        zone = target.split("/")[3]
        number = f"operation-{int(self._world.now() * 1000)}-{int(self._state.number()):x}"
        name = f"projects/{call.project}/locations/{zone}/operations/{number}"
        metadata = {
            "@type": "type.googleapis.com/google.cloud.common.OperationMetadata",
            "createTime": zulu(self._world.now()),
            "target": target,
            "verb": verb,
            "cancelRequested": False,
            "apiVersion": "v2",
        }
        made: dict[str, Any] = {"name": name, "metadata": metadata, "done": False}
        self._operations[name] = made
        return made

    def _done(
        self,
        operation: dict[str, Any],
        response: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
    ) -> None:
        if operation["done"]:
            return
        operation["done"] = True
        operation["metadata"]["endTime"] = zulu(self._world.now())
        if error is not None:
            operation["error"] = error
        else:
            operation["response"] = response or {}

    def operation(self, call: GoogleCall) -> dict[str, Any]:
        name = re.sub(r"^projects/[^/]+", f"projects/{call.project}", call.params["name"])
        if name not in self._operations:
            raise Problem(404, f"Operation '{name}' was not found")
        return self._operations[name]

    def list_operations(self, call: GoogleCall) -> dict[str, Any]:
        zone = self._place(call)
        base = f"projects/{call.project}/locations/" + ("" if zone == "-" else f"{zone}/")
        there = [each for name, each in self._operations.items() if name.startswith(base)]
        return _page(there, "operations", call)

    # -- what there is -----------------------------------------------------------------------------

    def locations(self, call: GoogleCall) -> dict[str, Any]:
        every = [each for region in places.ZONES for each in places.zones(region)]
        base = f"projects/{call.project}/locations"
        there = [{"name": f"{base}/{each}", "locationId": each} for each in every]
        return _page(there, "locations", call)

    def _type(self, call: GoogleCall, zone: str, kind: Type) -> dict[str, Any]:
        base = f"projects/{call.project}/locations/{zone}/acceleratorTypes"
        config = {"type": kind.version.upper(), "topology": kind.topology}
        told = {"name": f"{base}/{kind.name}", "type": kind.name}
        return {**told, "acceleratorConfigs": [config]}

    def types(self, call: GoogleCall) -> dict[str, Any]:
        zone = self._place(call)
        there = [
            self._type(call, zone, each)
            for each in tputypes.every()
            if self._offered(zone, each.name)
        ]
        return _page(there, "acceleratorTypes", call)

    def one_type(self, call: GoogleCall) -> dict[str, Any]:
        zone, kind = self._place(call), tputypes.found(call.params["name"].rpartition("/")[2])
        if kind is None or not self._offered(zone, kind.name):
            raise Problem(404, f"Resource '{call.params['name']}' was not found")
        return self._type(call, zone, kind)

    def runtimes(self, call: GoogleCall) -> dict[str, Any]:
        base = f"projects/{call.project}/locations/{self._place(call)}/runtimeVersions"
        names = sorted({each for some in tputypes.RUNTIMES.values() for each in some})
        there = [{"name": f"{base}/{each}", "version": each} for each in names]
        return _page(there, "runtimeVersions", call)

    def runtime(self, call: GoogleCall) -> dict[str, Any]:
        name = call.params["name"].rpartition("/")[2]
        if name not in {each for some in tputypes.RUNTIMES.values() for each in some}:
            raise Problem(404, f"Resource '{call.params['name']}' was not found")
        return {"name": call.params["name"], "version": name}


def _full(zone: str) -> dict[str, Any]:
    words = (
        f'There is no more capacity in the zone "{zone}"; you can try in another zone where Cloud'
        " TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions)"
        " [EID: 0x9f48947a7d57c8d]"
    )
    return {"code": 8, "message": words}


def _page(there: list[dict[str, Any]], name: str, call: GoogleCall) -> dict[str, Any]:
    size = int(call.params.get("pageSize") or 1000)
    start = int(call.params.get("pageToken") or 0)
    told: dict[str, Any] = {name: there[start : start + size]}
    if start + size < len(there):
        told["nextPageToken"] = str(start + size)
    return told
