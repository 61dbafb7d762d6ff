"""Hosts that others use too, and what happens to machines there: leases, processes of other people,
keepers that are killed, hosts that are unplugged, host keys."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.cloud.bodies.slots import commands
from tests.eventually import eventually
from tests.providers.conformance import Place
from tests.providers.ssh import machines
from tests.providers.ssh.hosts import GPU, Hosts
from tradewind.base.errors import InvalidValue, NoAccess, SourceFailed
from tradewind.model.run import TAKEN
from tradewind.providers.base import Refused
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh import names
from tradewind.providers.ssh.checks import checks
from tradewind.providers.ssh.cloud import CLOUD
from tradewind.providers.ssh.footprint import Footprint
from tradewind.providers.ssh.setup import Look, Wish

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def footprint(hosts: Hosts) -> Footprint:
    return machines.set_up(hosts, "h1")


@pytest.fixture
def place(hosts: Hosts, footprint: Footprint) -> Iterator[Place]:
    host = hosts.machines["h1"]
    host.gpus(2)
    machines.folders(footprint)
    yield Place(machines.provider(footprint, hosts.folder), way=machines.way())
    host.gpus(4)
    host.busy()
    hosts.write_config()
    own = machines.provider(footprint, hosts.folder)
    if up := [each.machine_id for each in own.list_machines().machines]:
        own.terminate(up)
    for client in clients.clients(footprint, names.owner_of(machines.STORE)).values():
        assert client.ask("remove", "tidying up") == {"living": []}
    assert host.processes() == []
    assert host.leases() == []


def pids(hosts: Hosts, words: str) -> list[int]:
    return [pid for pid, said in commands(hosts.machines["h1"].namespace) if words in said]


def test_what_others_compute_on_is_neither_offered_nor_taken(
    hosts: Hosts, place: Place, footprint: Footprint
) -> None:
    host = hosts.machines["h1"]
    host.busy((0, 1))
    offered = {each.instance_type: each for each in CLOUD.offers(footprint, None).offers}  # type: ignore[attr-defined]
    assert offered[machines.KIND].machines == offered[machines.KIND].free == 1
    (machine,) = place.provider.launch(place.request(), 1)
    assert host.leases() == ["GPU-h1-0001.12701.json", "GPU-h1-0001.lock"]
    with pytest.raises(Refused) as caught:
        place.provider.launch(place.request(leg=2), 1)
    assert caught.value.kind == "no_capacity"
    host.busy()  # they have finished
    assert len(place.provider.launch(place.request(leg=2), 1)) == 1
    assert len(place.running()) == 2
    assert machine in place.running()


def test_memory_in_use_by_nobody_that_is_listed_counts_too(hosts: Hosts, place: Place) -> None:
    hosts.machines["h1"].gpus(2, used_mb=20_000)
    with pytest.raises(Refused, match="free"):
        place.provider.launch(place.request(), 1)


def test_leases_hold_between_users(hosts: Hosts, place: Place, footprint: Footprint) -> None:
    place.provider.launch(place.request(), 1)
    hosts.write_config("other")
    theirs = machines.provider(footprint, hosts.folder, machines.OTHERS)
    assert theirs.list_machines().machines == ()
    with pytest.raises(Refused, match="was not set up for this store"):
        theirs.launch(place.request(), 1)
    machines.folders(footprint, machines.OTHERS)
    (machine,) = theirs.launch(place.request(), 1)
    with pytest.raises(Refused):
        theirs.launch(place.request(leg=2), 1)
    (found,) = checks(footprint, known=True, store_url=machines.OTHERS)
    assert "leased: gpu: ssh-h1.run-1-1-0" in found.what
    assert "leased: other: ssh-h1.run-1-1-0" in found.what
    theirs.terminate([machine.machine_id])
    for client in clients.clients(footprint, names.owner_of(machines.OTHERS)).values():
        assert client.ask("remove", "tidying up") == {"living": []}
    hosts.write_config()
    assert len(place.running()) == 1  # ours is as it was
    assert len(place.provider.launch(place.request(leg=2), 1)) == 1  # with what they have left


def test_a_machine_outlives_its_keeper_and_stays_leased(hosts: Hosts, place: Place) -> None:
    (machine,) = place.provider.launch(place.request(), 1)
    eventually(lambda: pids(hosts, "bootstrap.py"))
    for pid in pids(hosts, "i.readline"):
        os.kill(pid, signal.SIGKILL)
    assert place.running() == [machine]
    assert "GPU-h1-0000.lock" in hosts.machines["h1"].leases()
    place.provider.terminate([machine.machine_id])
    (ended,) = place.listed()
    assert ended.ended_s is not None
    assert hosts.machines["h1"].leases() == []


def test_of_what_was_killed_nothing_is_left_and_its_gpus_are_free(
    hosts: Hosts, place: Place
) -> None:
    place.provider.launch(place.request(), 1)
    eventually(lambda: pids(hosts, "bootstrap.py"))
    for words in ("i.readline", "start.sh", "tee", "bootstrap.py"):
        for pid in pids(hosts, words):
            os.kill(pid, signal.SIGKILL)
    (ended,) = place.listed()
    assert ended.ended_s is not None
    assert ended.ended_by == TAKEN
    assert hosts.machines["h1"].leases() == []


def test_a_full_disk_keeps_machines_away_and_lets_them_end(hosts: Hosts, place: Place) -> None:
    host = hosts.machines["h1"]
    try:
        hosts.disk(host, "100m")
        with pytest.raises(Refused, match="less than 1 GB is free") as caught:
            place.provider.launch(place.request(), 1)
        assert caught.value.kind == "no_capacity"
        with pytest.raises(NoAccess, match="5 GB are needed") as refused:
            machines.set_up(hosts, "h1")
        assert "df -h" in str(refused.value.hint)
        hosts.disk(host, "20g")
        (machine,) = place.provider.launch(place.request(), 1)
        eventually(lambda: pids(hosts, "bootstrap.py"))
        folder = next(host.home("gpu").glob(f".tradewind-host/*/machines/{machine.machine_id}"))
        used = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
        hosts.disk(host, str(max(used + 200_000, 400_000)))
        with pytest.raises(OSError, match="space"):
            (folder / "job-fills-it").write_bytes(bytes(1 << 20))
        assert place.running() == [machine]
        place.provider.terminate([machine.machine_id])
        (ended,) = place.listed()
        assert ended.ended_s is not None
        assert pids(hosts, "bootstrap.py") == []
        assert host.leases() == []
    finally:
        hosts.disk(host, "20g")


def test_a_host_that_does_not_answer_is_no_evidence(hosts: Hosts) -> None:
    footprint = machines.set_up(hosts)
    place = Place(machines.provider(footprint, hosts.folder), way=machines.way())
    one, two = place.provider.launch(place.request(nodes=2), 1)
    assert names.host_of(one.machine_id) != names.host_of(two.machine_id)
    away = hosts.machines[names.host_of(one.machine_id)]
    hosts.unplug(away)
    try:
        assert place.running() == [two]
        with pytest.raises(SourceFailed):
            place.provider.terminate([one.machine_id, two.machine_id])
        assert place.running() == []
        only = Footprint(hosts={away.name: footprint.hosts[away.name]})
        alone = machines.provider(only, hosts.folder)
        with pytest.raises(SourceFailed, match="no host answers"):
            alone.list_machines()
    finally:
        hosts.plug_in(away)
    eventually(lambda: hosts.answers(away))
    assert place.running() == [one]
    place.provider.terminate([one.machine_id])
    assert place.running() == []
    for client in clients.clients(footprint, names.owner_of(machines.STORE)).values():
        client.ask("remove", "tidying up")


def test_host_keys_that_are_not_known_or_have_changed(hosts: Hosts) -> None:
    known = hosts.folder / "known_hosts"
    before = known.read_text()
    wish = Wish(store_url=machines.STORE, hosts=("h1",))
    try:
        known.write_text("")
        with pytest.raises(NoAccess, match="not known here") as caught:
            Look(wish).prepared(None)
        assert "ssh h1" in str(caught.value.hint)
        one, two = before.splitlines()[:2]
        known.write_text(f"{one.split()[0]} {' '.join(two.split()[1:])}\n")
        with pytest.raises(NoAccess, match="not the one that is known") as caught:
            Look(wish).prepared(None)
        assert "ssh-keygen -R h1" in str(caught.value.hint)
    finally:
        known.write_text(before)


def test_nobody_is_let_in_and_no_gpu(hosts: Hosts) -> None:
    host = hosts.machines["h2"]
    keys = host.folder / "authorized_keys"
    before = keys.read_text()
    keys.write_text("")
    try:
        with pytest.raises(NoAccess, match="lets nobody in"):
            machines.set_up(hosts, "h2")
    finally:
        keys.write_text(before)
    host.gpus(0)
    try:
        with pytest.raises(Exception, match="no GPU"):
            machines.set_up(hosts, "h2")
    finally:
        host.gpus(4, GPU)


def test_teardown_refuses_while_machines_are_up_and_then_removes_all(
    hosts: Hosts, place: Place, footprint: Footprint
) -> None:
    (machine,) = place.provider.launch(place.request(), 1)
    look = Look(Wish(store_url=machines.STORE))
    with pytest.raises(InvalidValue, match="are up"):
        look.removed(footprint, delete_store=False)
    place.provider.terminate([machine.machine_id])
    for line in look.removed(footprint, delete_store=False):
        line.carry_out()
    assert list(hosts.machines["h1"].home("gpu").iterdir()) == []
