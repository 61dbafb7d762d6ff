"""The calls of tpu.googleapis.com v2 that we make, what of their answers we use, and the
permissions that each call needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlencode

from msgspec import Struct

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.tpu.troubles import failed, meant
from tradewind.providers.rest import Rest

T = TypeVar("T")

PERMISSIONS: dict[str, tuple[str, ...]] = {
    "tpu.projects.locations.nodes.create": ("tpu.nodes.create", "iam.serviceAccounts.actAs"),
    "tpu.projects.locations.nodes.list": ("tpu.nodes.list",),
    "tpu.projects.locations.nodes.get": ("tpu.nodes.get",),
    "tpu.projects.locations.nodes.delete": ("tpu.nodes.delete",),
    "tpu.projects.locations.queuedResources.create": (
        "tpu.nodes.create",
        "iam.serviceAccounts.actAs",
    ),
    "tpu.projects.locations.queuedResources.list": ("tpu.nodes.list",),
    "tpu.projects.locations.queuedResources.get": ("tpu.nodes.get",),
    "tpu.projects.locations.queuedResources.delete": ("tpu.nodes.delete",),
    "tpu.projects.locations.operations.get": ("tpu.operations.get",),
    "tpu.projects.locations.operations.list": ("tpu.operations.list",),
}
"""By the call's id in Google's discovery document. For queued resources it is a conclusion: no role
of Google's has permissions under their own name."""
EVERYWHERE = "-"
"""Instead of a zone: all of them."""
WAIT_S = 180.0
"""For a slice to be there, or to be refused. A large one takes longer, and is listed meanwhile."""
_PAUSES_S = (0.2, 0.5, 1.0, 2.0)


class Endpoint(Struct, frozen=True, rename="camel"):
    ip_address: str = ""


class Scheduled(Struct, frozen=True, rename="camel"):
    spot: bool = False
    preemptible: bool = False


class Node(Struct, frozen=True, rename="camel"):
    name: str
    state: str = ""
    accelerator_type: str = ""
    create_time: str = ""
    labels: dict[str, str] = {}
    metadata: dict[str, str] = {}
    network_endpoints: tuple[Endpoint, ...] = ()
    queued_resource: str = ""
    scheduling_config: Scheduled = Scheduled()

    @property
    def zone(self) -> str:
        return self.name.split("/")[3]

    @property
    def short(self) -> str:
        return self.name.rpartition("/")[2]


class Status(Struct, frozen=True):
    code: int = 0
    message: str = ""


class Failure(Struct, frozen=True):
    error: Status = Status()


class QueueState(Struct, frozen=True, rename="camel"):
    state: str = ""
    failed_data: Failure = Failure()


class NodeSpec(Struct, frozen=True, rename="camel"):
    node_id: str = ""
    node: dict[str, Any] = {}


class Specs(Struct, frozen=True, rename="camel"):
    node_spec: tuple[NodeSpec, ...] = ()


class QueuedResource(Struct, frozen=True, rename="camel"):
    name: str
    create_time: str = ""
    state: QueueState = QueueState()
    tpu: Specs = Specs()

    @property
    def zone(self) -> str:
        return self.name.split("/")[3]

    @property
    def short(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def node(self) -> dict[str, Any]:
        return self.tpu.node_spec[0].node if self.tpu.node_spec else {}


class Deed(Struct, frozen=True, rename="camel"):
    """What an operation is about."""

    verb: str = ""
    target: str = ""
    create_time: str = ""
    end_time: str = ""


class Operation(Struct, frozen=True, rename="camel"):
    name: str
    done: bool = False
    error: Status | None = None
    metadata: Deed = Deed()


class _Nodes(Struct, frozen=True, rename="camel"):
    nodes: tuple[Node, ...] = ()
    next_page_token: str | None = None
    unreachable: tuple[str, ...] = ()


class _Queue(Struct, frozen=True, rename="camel"):
    queued_resources: tuple[QueuedResource, ...] = ()
    next_page_token: str | None = None
    unreachable: tuple[str, ...] = ()


class _Operations(Struct, frozen=True, rename="camel"):
    operations: tuple[Operation, ...] = ()
    next_page_token: str | None = None
    unreachable: tuple[str, ...] = ()


class Tpu:
    """TPU VMs of one project. Safe from several threads."""

    def __init__(self, google: Google, project: str, zones: Sequence[str] = ()) -> None:
        """`zones`: those that are asked one by one, should Google not take all at once."""
        self.google, self.project, self._zones = google, project, tuple(zones)
        self._singly = False

    @cached_property
    def _rest(self) -> Rest:
        return self.google.rest("tpu")

    def at_s(self) -> int:
        """Google's clock, by its last answer."""
        return self._rest.at_s()

    def place(self, zone: str) -> str:
        return f"projects/{self.project}/locations/{zone}"

    # -- changes: each is an operation, and is sent once ------------------------------------------

    def create(self, zone: str, name: str, body: Mapping[str, Any], doing: str) -> Operation:
        return self._change("POST", f"{self.place(zone)}/nodes", body, doing, nodeId=name)

    def delete(self, zone: str, name: str, doing: str) -> Operation:
        return self._change("DELETE", f"{self.place(zone)}/nodes/{name}", None, doing)

    def enqueue(
        self, zone: str, name: str, body: Mapping[str, Any], request_id: str, doing: str
    ) -> Operation:
        path = f"{self.place(zone)}/queuedResources"
        return self._change("POST", path, body, doing, queuedResourceId=name, requestId=request_id)

    def dequeue(self, zone: str, name: str, doing: str) -> Operation:
        """Its slice ends, if it has one."""
        path = f"{self.place(zone)}/queuedResources/{name}"
        return self._change("DELETE", path, None, doing, force="true")

    def done(self, operation: Operation, doing: str, wait_s: float = WAIT_S) -> Operation:
        """Once it is; raises what it failed of."""
        until = clock.monotonic() + wait_s
        pauses, pause_s = iter(_PAUSES_S), 0.0
        while not operation.done:
            if clock.monotonic() >= until:
                raise OutcomeUnknown(
                    f"{doing}: Google has accepted it, and is not done after {wait_s:.0f} s",
                    hint="the next pass looks whether it was done",
                )
            pause_s = next(pauses, pause_s)
            clock.sleep(pause_s)
            operation = self._rest.get(f"/v2/{operation.name}", Operation, doing)
        if operation.error is not None:
            raise failed(doing, operation.error.code, operation.error.message)
        return operation

    # -- questions --------------------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        """In all zones. There is no filter: whose they are, labels tell."""
        doing = "listing TPU slices"
        pages = self._pages(f"{self.place(EVERYWHERE)}/nodes", _Nodes, doing)
        return [each for page in pages for each in _whole(page, doing).nodes]

    def queue(self) -> list[QueuedResource]:
        doing = "listing queued TPU slices"

        def ask(zone: str) -> list[QueuedResource]:
            pages = self._pages(f"{self.place(zone)}/queuedResources", _Queue, doing)
            return [each for page in pages for each in _whole(page, doing).queued_resources]

        return self._everywhere(ask)

    def operations(self, zone: str = EVERYWHERE) -> list[Operation]:
        doing = "listing operations on TPU slices"

        def ask(zone: str) -> list[Operation]:
            pages = self._pages(f"{self.place(zone)}/operations", _Operations, doing)
            return [each for page in pages for each in page.operations]

        return self._everywhere(ask) if zone == EVERYWHERE else ask(zone)

    def node(self, zone: str, name: str) -> Node | None:
        return self._found(f"{self.place(zone)}/nodes/{name}", Node, f"looking for {name}")

    def queued(self, zone: str, name: str) -> QueuedResource | None:
        path = f"{self.place(zone)}/queuedResources/{name}"
        return self._found(path, QueuedResource, f"looking for {name} in the queue")

    def _change(
        self, method: str, path: str, body: Mapping[str, Any] | None, doing: str, **query: str
    ) -> Operation:
        asked = f"/v2/{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            return self._rest.send(method, asked, body, Operation, doing)
        except TradewindError as error:
            raise meant(error) from error

    def _everywhere(self, ask: Callable[[str], list[T]]) -> list[T]:
        """Of nodes Google's reference says that all zones may be asked at once; of the rest it says
        nothing. Zones without TPUs refuse to tell of them; where all do, it is not for that."""
        if not self._singly:
            try:
                return ask(EVERYWHERE)
            except Refused as error:
                if error.kind not in ("not_allowed", "not_found") or not self._zones:
                    raise
        found: list[T] = []
        refused: list[Refused] = []
        for zone in self._zones:
            try:
                found += ask(zone)
            except Refused as error:
                if error.kind not in ("not_allowed", "not_found"):
                    raise
                refused.append(error)
        if len(refused) == len(self._zones):
            raise refused[0]
        self._singly = True
        return found

    def _found(self, path: str, kind: type[T], doing: str) -> T | None:
        try:
            return self._rest.get(f"/v2/{path}", kind, doing)
        except Refused as error:
            if error.kind != "not_found":
                raise
            return None

    def _pages(self, path: str, kind: type[T], doing: str) -> Iterator[T]:
        def token(page: Any) -> str | None:
            return page.next_page_token or None

        return self._rest.pages(f"/v2/{path}", kind, doing, token, "pageToken")


def _whole(page: Any, doing: str) -> Any:
    """What is not seen may well live."""
    if page.unreachable:
        silent = ", ".join(each.rpartition("/")[2] for each in page.unreachable)
        raise OutcomeUnknown(
            f"{doing}: no answer of {silent}, so that nothing can be concluded of what is not"
            " listed",
            hint="it is asked again; status.cloud.google.com tells of outages",
        )
    return page
