"""The conformance suite on real hosts: OpenSSH servers in network namespaces, an unprivileged user,
the start text that every machine runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.providers.conformance import Conformance, Place
from tests.providers.ssh import machines
from tests.providers.ssh.hosts import Hosts
from tradewind.model.run import Machine
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh import names
from tradewind.providers.ssh.footprint import Footprint

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def footprint(hosts: Hosts) -> Footprint:
    return machines.set_up(hosts)


@pytest.fixture
def place(hosts: Hosts, footprint: Footprint) -> Iterator[Place]:

    def alive(machine: Machine) -> bool:
        host = hosts.machines[names.host_of(machine.machine_id)]
        return any(f"/{machine.machine_id}/boot.json" in words for words in host.processes())

    def room(many: int) -> None:
        free = [(host, gpu) for gpu in range(4) for host in hosts.machines.values()][:many]
        for host in hosts.machines.values():
            host.busy(*((gpu, 1) for gpu in range(4) if (host, gpu) not in free))

    machines.folders(footprint, machines.STORE, machines.OTHERS)
    yield Place(
        machines.provider(footprint, hosts.folder),
        way=machines.way(),
        others=machines.provider(footprint, hosts.folder, machines.OTHERS),
        again=lambda: machines.provider(footprint, hosts.folder),
        client=("tests.providers.ssh.machines:opened", machines.argument(footprint, hosts.folder)),
        alive=alive,
        room=room,
    )
    room(8)
    for store in (machines.STORE, machines.OTHERS):
        own = machines.provider(footprint, hosts.folder, store)
        if up := [each.machine_id for each in own.list_machines().machines]:
            own.terminate(up)
        asked = clients.clients(footprint, names.owner_of(store))
        told = clients.each(asked, lambda client: client.ask("remove", "tidying up"))
        assert all(answer == {"living": []} for answer in told.values())
    for host in hosts.machines.values():
        assert host.processes() == []
        assert host.leases() == []
        assert list(host.home("gpu").iterdir()) == []


class TestHosts(Conformance):
    safety = "recorder"

    # Cut off at each of many questions, and each is a connection of its own.
    @pytest.mark.long
    def test_whatever_a_launch_that_was_cut_off_has_bought_is_listed(self, place: Place) -> None:
        super().test_whatever_a_launch_that_was_cut_off_has_bought_is_listed(place)

    @pytest.mark.long
    def test_a_termination_cut_off_anywhere_can_be_repeated_and_lists_no_living_as_ended(
        self, place: Place
    ) -> None:
        super().test_a_termination_cut_off_anywhere_can_be_repeated_and_lists_no_living_as_ended(
            place
        )
