"""Trainings over hosts of one's own: real OpenSSH servers in network namespaces, a folder that all
of them share as the store, and everything that happens to such hosts."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cloud.bodies.slots import commands
from tests.eventually import eventually
from tests.providers.ssh import machines
from tests.providers.ssh.hosts import Hosts, running
from tests.system.rented import ROOT, Runs, variables
from tests.system.test_torchrun import torchrun
from tests.torch.test_tiny_gpt import EXAMPLE, weights
from tradewind import store as stores
from tradewind.model.event import LegOver, LegUp
from tradewind.model.run import Way
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh import names
from tradewind.providers.ssh.facts import FACTS
from tradewind.providers.ssh.footprint import KEY

pytestmark = pytest.mark.system
STEPS = 400
PRICE = 250_000


class OnHosts(Runs):  # type: ignore[type-arg]
    provider = "ssh"
    hosts: Hosts

    def ways(self, nodes: int) -> tuple[Way, ...]:
        facts = replace(FACTS, listing_lag_s=5)
        return (machines.way(nodes=nodes, price=PRICE, rate=5.0, start_s=20.0, facts=facts),)

    def up(self, run_id: str, leg: int) -> bool:
        return any(isinstance(each, LegUp) and each.leg == leg for each in self.events(run_id))

    def events(self, run_id: str) -> list[object]:
        return [event for commit in self.loaded(run_id).commits for event in commit.events]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Started once. PyTorch is where only root may go, so jobs are root's."""
    with running(["h1", "h2", "h3"], gpus=1) as made:
        made.write_config("root")
        yield made


def a_world(hosts: Hosts, tmp_path: Path, store_folder: Path, **wish: bool) -> Iterator[OnHosts]:
    env = {
        "TRADEWIND_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
    }
    with variables(env):
        store = stores.open(store_folder)
        footprint = machines.set_up(hosts, store_url=store.url, **wish)
        store.replace(KEY, footprint.encoded())
        made = OnHosts(hosts, env | {"PATH": hosts.path}, tmp_path, store)
        made.hosts = hosts
        yield made
        for host in hosts.machines.values():
            if host.process is None:
                hosts.start(host)
        for client in clients.clients(footprint, names.owner_of(store.url)).values():
            client.ask("list", "settling what was switched off")
            assert client.ask("remove", "tidying up") == {"living": []}
        for host in hosts.machines.values():
            assert host.processes() == []
            assert host.leases() == []
            assert list(host.home("root").iterdir()) == []


@pytest.fixture
def world(hosts: Hosts, tmp_path: Path) -> Iterator[OnHosts]:
    yield from a_world(hosts, tmp_path, tmp_path / "store")


@pytest.fixture
def laptop(hosts: Hosts, tmp_path: Path) -> Iterator[OnHosts]:
    """The store is in a folder that no host sees."""
    yield from a_world(hosts, tmp_path, hosts.laptop / "store", relay=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The weights of the same training by two processes of this computer, left alone."""
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("alone") / "job")
    assert torchrun(folder, "train.py", "--steps", str(STEPS)).wait(300) == 0
    return weights((folder / "log").read_text())


def host_of(world: OnHosts, run_id: str) -> str:
    return names.host_of(sorted(world.loaded(run_id).state.claimed)[0])


@pytest.mark.long
def test_a_host_is_switched_off_and_never_comes_back(world: OnHosts, undisturbed: str) -> None:
    run_id = world.submit(STEPS)
    controller = world.watch(run_id)
    eventually(lambda: world.saved(run_id), within_s=300)
    controller.send_signal(signal.SIGKILL)
    controller.wait()
    gone = host_of(world, run_id)
    world.hosts.switch_off(world.hosts.machines[gone])
    last = world.watch(run_id, "second")
    world.finished(run_id)
    last.wait(120)
    assert weights(world.output(run_id)) == undisturbed
    ends = [each for each in world.events(run_id) if isinstance(each, LegOver)]
    assert len(ends) == 2
    assert world.cost(run_id).micros > 0


@pytest.mark.long  # a leg that was refused while the host is away is asked for ten minutes later
def test_a_supervisor_is_killed_and_a_host_restarts(world: OnHosts, undisturbed: str) -> None:
    run_id = world.submit(STEPS)
    controller = world.watch(run_id)
    eventually(lambda: world.saved(run_id), within_s=300)
    kill_supervisor(world.hosts, host_of(world, run_id))
    eventually(lambda: world.up(run_id, 1))
    restarted = world.hosts.machines[host_of(world, run_id)]
    world.hosts.switch_off(restarted)
    world.hosts.start(restarted)
    world.finished(run_id)
    controller.wait(120)
    assert weights(world.output(run_id)) == undisturbed
    # A job whose supervisor was killed is begun again there, but its peer may have given up on it.
    ends = [each for each in world.events(run_id) if isinstance(each, LegOver)]
    assert 2 <= len(ends) <= 3


def test_with_nothing_but_ssh_a_controller_is_killed(laptop: OnHosts, undisturbed: str) -> None:
    """The next one opens the way to the store again, and the same leg goes on."""
    run_id = laptop.submit(STEPS)
    controller = laptop.watch(run_id)
    eventually(lambda: laptop.saved(run_id), within_s=300)
    controller.send_signal(signal.SIGKILL)
    controller.wait()
    last = laptop.watch(run_id, "second")
    laptop.finished(run_id)
    last.wait(120)
    assert weights(laptop.output(run_id)) == undisturbed
    ends = [each for each in laptop.events(run_id) if isinstance(each, LegOver)]
    assert len(ends) == 1


def kill_supervisor(hosts: Hosts, name: str) -> None:
    for pid, words in commands(hosts.machines[name].namespace):
        if "tradewind.supervisor" in words and "-m" in words:
            os.kill(pid, signal.SIGKILL)
            return
    raise AssertionError("there is no supervisor")
