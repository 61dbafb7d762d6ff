"""Machines on hosts, for whoever owns a store.

Each host keeps its own machines (there/): what one tells is true of it alone. A host that does not
answer is no evidence: its machines are not listed, and a run believes their heartbeats for as long
as they come. They are listed again when it is back, ended or not. Where no host answers there is no
listing at all.

Machines' times are by the clock of who launched them, and by how long they were up as their host
measured it: clocks of hosts are never compared.

Safe from several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from urllib.parse import quote

from msgspec.structs import replace

from tradewind.base import clock
from tradewind.base.errors import NoAccess, SourceFailed, TradewindError
from tradewind.model import places
from tradewind.model.run import Listing, Machine, Request
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Luggage, Pack
from tradewind.providers.gang import Gang
from tradewind.providers.ssh import answers, names, offers
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh.client import Client
from tradewind.providers.ssh.footprint import Footprint, Host, setup_command
from tradewind.providers.ssh.relay import TICKET, Tunnels
from tradewind.providers.ssh.troubles import Unreachable
from tradewind.store import relayed
from tradewind.store.links import folder_of

_WHO = "tradewind.providers.ssh"


class SshMachines:
    """One by one (../gang.py)."""

    def __init__(self, footprint: Footprint, owner: str, luggage: Pack) -> None:
        """`owner` is the store's URL."""
        self._footprint, self._store_url, self._luggage = footprint, owner, luggage
        self._clients = clients.clients(footprint, names.owner_of(owner))
        self._lock = threading.Lock()
        self._packed: dict[str, dict[str, Luggage]] = {}
        self._used: dict[str, list[str]] = {}
        """By launch, the hosts of its machines so far."""
        self._tunnels = Tunnels(owner)
        self._seen: dict[str, list[tuple[Machine, str]]] = {}
        """By host, as it was listed last."""
        self._told: set[str] = set()

    def list_machines(self) -> Listing:
        told = clients.each(self._clients, answers.told)
        answered = {
            name: several
            for name, several in told.items()
            if not isinstance(several, TradewindError)
        }
        self._seen = answered
        found = [machine for several in answered.values() for machine, _ in several]
        errors = [error for error in told.values() if isinstance(error, TradewindError)]
        if errors and len(errors) == len(told):
            raise SourceFailed(f"no host answers: {errors[0].message}", hint=errors[0].hint)
        # Not before any machine's own moments: two computers' clocks may differ by a little.
        moments = [moment for each in found for moment in (each.launched_s, each.ended_s or 0)]
        return Listing(at_s=max([int(clock.epoch()), *moments]), machines=tuple(found))

    def launch_one(self, request: Request, rank: int, after: int, key: str) -> Machine:
        way = request.way
        shape = offers.shapes(self._footprint).get((way.region, way.instance_type))
        if shape is None or way.market != "on_demand":
            raise Refused(
                "not_found",
                f"no host has {way.words}",
                hint=setup_command(self._store_url),
            )
        said: list[str] = []
        for client in self._by_room(request, shape, rank, said):
            try:
                machine = self._launched(client, request, shape, rank, after, key)
            except (NoAccess, Unreachable) as error:  # nothing was done there
                said.append(error.message)
            except Refused as error:
                said.append(error.message)
                if error.kind != "no_capacity":
                    raise
            else:
                self._used.setdefault(request.launch_id, []).append(client.name)
                return machine
        raise Refused(
            "no_capacity",
            f"no host of {way.region} has {way.instance_type} free: "
            + ("; ".join(dict.fromkeys(said)) or "all are taken"),
            hint="tradewind doctor ssh shows who has them",
        )

    def terminate(self, machine_ids: Sequence[str]) -> None:
        """Raises when all that answer were asked, if one did not."""
        wanted: dict[str, list[str]] = {}
        for each in machine_ids:
            if (name := names.host_of(each)) in self._clients:
                wanted.setdefault(name, []).append(each)

        def end(client: Client) -> list[str]:
            doing = f"ending machines of {client.name}"
            living = client.ask("end", doing, machine_ids=wanted[client.name])["living"]
            return [str(each) for each in living]

        ended = clients.each({name: self._clients[name] for name in wanted}, end)
        for name, living in ended.items():
            if isinstance(living, TradewindError):
                raise living
            if living:
                raise OutcomeUnknown(
                    f"processes of {living[0]} on host {name} do not die: the kernel holds them",
                    hint="a restart of the host ends them",
                )

    def connect(self) -> None:
        """Hosts with machines that reach the store through us only. What cannot be now is tried at
        the next pass; should it be for long, the machines stop by themselves."""
        relayed = {
            name: several
            for name, several in self._seen.items()
            if self._clients[name].host.relayed
        }
        for several in relayed.values():
            for machine, said in several:
                if said and machine.machine_id not in self._told:
                    key = places.first_log(machine.run_id, machine.leg, machine.rank)
                    self._tunnels.tell(key, said)
                    self._told.add(machine.machine_id)
        wanted = {
            name: self._clients[name]
            for name, several in relayed.items()
            if any(machine.ended_s is None for machine, _ in several)
        }
        silent = {name for name in self._clients if name not in self._seen}
        self._tunnels.keep(set(wanted) | silent)
        clients.each(wanted, self._tunnels.open)

    # -- where, and what they take along -----------------------------------------------------------

    def _by_room(
        self, request: Request, shape: offers.Shape, rank: int, said: list[str]
    ) -> Iterator[Client]:
        """Hosts that have room for one, those first that have no machine of this launch yet, and
        then those with most room. Before the first of several is launched, there must be room for
        all of them."""
        doing = f"asking for {shape.instance_type}"
        within = {name: self._clients[name] for name in self._footprint.within(shape.region)}
        told = clients.each(within, lambda client: answers.gpus(client, doing))
        rooms: dict[str, int] = {}
        for name, gpus in told.items():
            if isinstance(gpus, TradewindError):
                said.append(gpus.message)
            else:
                rooms[name] = offers.room(gpus, shape.model) // shape.count
        if sum(rooms.values()) < request.way.nodes - rank:
            free = sum(rooms.values())
            said.append(f"{free} free, and {request.way.nodes - rank} are needed")
            return
        used = self._used.get(request.launch_id, [])
        order = sorted(
            (name for name, many in rooms.items() if many),
            key=lambda name: (used.count(name), -rooms[name], name),
        )
        yield from (within[name] for name in order)

    def _launched(
        self,
        client: Client,
        request: Request,
        shape: offers.Shape,
        rank: int,
        after: int,
        key: str,
    ) -> Machine:
        name = names.machine_id(client.name, request.launch_id, rank)
        luggage = self._taken_along(request, client.host.architecture)
        store_url, more = self._store_url, {}
        if client.host.relayed:
            self._tunnels.open(client)
            luggage = self._sent(client, luggage)
            more = {TICKET: self._tunnels.ticket(client, request)}
            store_url = relayed.url_of(client.at("machines", name, "told", TICKET))
        boot = told.boot(request, store_url, after, key, "ssh", rank=rank, machine_id=name)
        answer = client.ask(
            "launch",
            f"launching {request.way.words} on host {client.name}",
            machine={
                "machine_id": name,
                "launch_id": request.launch_id,
                "run_id": request.run_id,
                "leg": request.leg,
                "rank": rank,
                "launched_s": int(clock.epoch()),
            },
            model=shape.model,
            count=shape.count,
            files={**told.files(boot, luggage, _WHO), **more},
            env=_environment(client.host, request),
            hard_stop_s=request.hard_stop_s,
        )
        if "refused" in answer:
            raise Refused(str(answer["refused"]), f"host {client.name}: {answer['words']}")
        return answers.launched(client, answer["machine"])

    def _taken_along(self, request: Request, architecture: str) -> Luggage:
        """Once for all machines of a request, and of a processor."""
        with self._lock:
            if request.launch_id not in self._packed:
                self._packed = {request.launch_id: {}}
            packed = self._packed[request.launch_id]
            named = "arm64" if architecture in ("aarch64", "arm64") else "x86_64"
            if named not in packed:
                packed[named] = self._luggage(request, named)
            return packed[named]

    def _sent(self, client: Client, luggage: Luggage) -> Luggage:
        """The same, for a host that does not see the store: its kit lies there, and what it prints
        is asked for."""
        doing = f"sending the kit to host {client.name}"
        path = str(client.ask("kit", doing, sha256=luggage.sha256)["path"])
        if not path:
            data = folder_of(luggage.kit).read_bytes()
            answer = client.ask("kit", doing, sha256=luggage.sha256, payload=data)
            path = str(answer["path"])
        return replace(luggage, kit=f"file://{quote(path)}", tell=())

    def forget(self, request: Request) -> None:
        with suppress(KeyError):
            del self._used[request.launch_id]


class SshProvider(Gang):
    def __init__(self, footprint: Footprint, owner: str, luggage: Pack) -> None:
        self._machines = SshMachines(footprint, owner, luggage)
        super().__init__(self._machines)

    def tidy(self) -> None:
        """After each pass of a controller, and of nobody else."""
        self._machines.connect()

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        try:
            return super().launch(request, after, key)
        finally:
            self._machines.forget(request)


def _environment(host: Host, request: Request) -> dict[str, str]:
    """Of the machine: what its supervisor and its job are told of the host."""
    env = {"TRADEWIND_HOST": host.address or "127.0.0.1"}
    if request.way.nodes > 1 and host.interface:
        # A host has several networks; the others are in this one.
        env |= {"GLOO_SOCKET_IFNAME": host.interface, "NCCL_SOCKET_IFNAME": host.interface}
    return env
