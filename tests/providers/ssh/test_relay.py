"""Hosts that see nothing of the store but through the connection of who looks after their runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.eventually import eventually
from tests.providers.conformance import Place
from tests.providers.ssh import machines
from tests.providers.ssh.hosts import Hosts
from tradewind import store as stores
from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.base.signing import SEED
from tradewind.model import places
from tradewind.model.finding import BROKEN, OK
from tradewind.providers.ssh import client as clients
from tradewind.providers.ssh import names, relay
from tradewind.providers.ssh.checks import checks
from tradewind.providers.ssh.client import Client
from tradewind.providers.ssh.footprint import Footprint
from tradewind.providers.ssh.setup import Look, Wish, wish_of
from tradewind.store.base import Store

pytestmark = pytest.mark.system
_HOLDS = """
import sys
from tradewind.providers.ssh import client, footprint, names
from tradewind.providers.ssh.relay import Tunnels
url, record = sys.argv[1:]
known = footprint.decoded(record.encode())
(one,) = client.clients(known, names.owner_of(url)).values()
tunnels = Tunnels(url)
tunnels.open(one)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def store(hosts: Hosts) -> Store:
    made = stores.open(hosts.laptop / "store")
    made.create(SEED, bytes(32))
    return made


@pytest.fixture(scope="module")
def footprint(hosts: Hosts, store: Store) -> Footprint:
    wish = Wish(store_url=store.url, hosts=("h1",), relay=True)
    return Look(wish).prepared(None).carry_out()


@pytest.fixture
def client(hosts: Hosts, store: Store, footprint: Footprint) -> Iterator[Client]:
    (made,) = clients.clients(footprint, names.owner_of(store.url)).values()
    made.ask("make", "making its folder")
    yield made
    assert made.ask("remove", "tidying up") == {"living": []}
    host = hosts.machines["h1"]
    assert host.processes() == []
    assert host.leases() == []
    assert list(host.home("gpu").iterdir()) == []


def sockets(client: Client) -> list[str]:
    return sorted(os.listdir(client.at("relay")))  # noqa: PTH208


def test_a_folder_that_hosts_do_not_see_is_refused_unless_it_is_relayed(
    hosts: Hosts, store: Store, footprint: Footprint
) -> None:
    with pytest.raises(NoAccess, match="is not shared with h1") as caught:
        Look(Wish(store_url=store.url, hosts=("h1",))).prepared(None)
    assert "--relay" in str(caught.value.hint)
    host = footprint.hosts["h1"]
    assert host.relayed
    assert host.root == str(hosts.machines["h1"].home("gpu") / ".tradewind-host")
    again = Look(Wish(store_url=store.url)).prepared(footprint)
    assert again.carry_out() == footprint
    with pytest.raises(InvalidValue, match="--relay is for a folder"):
        wish_of("s3://b", ("h1",), {"relay": True})


def test_a_server_that_forwards_nothing_is_told_of(hosts: Hosts, client: Client, store: Store,
    footprint: Footprint) -> None:  # fmt: skip
    keys = hosts.machines["h1"].folder / "authorized_keys"
    before = keys.read_text()
    keys.write_text(f"no-port-forwarding {before}")
    try:
        (found,) = checks(footprint, known=True, store_url=store.url)
    finally:
        keys.write_text(before)
    assert found.level == BROKEN
    assert "makes no socket" in found.why
    assert "AllowStreamLocalForwarding" in found.todo
    (found,) = checks(footprint, known=True, store_url=store.url)
    assert found.level == OK
    assert sockets(client) == []


def test_a_machine_is_given_all_that_it_needs_and_nothing_else(
    hosts: Hosts, client: Client, store: Store, footprint: Footprint
) -> None:
    own = machines.provider(footprint, hosts.laptop, store.url)
    place = Place(own, way=machines.way())
    (machine,) = own.launch(place.request(), 1, "a-key")
    folder = Path(client.at("machines", machine.machine_id))
    eventually(lambda: (folder / "boot.seen").exists())
    ticket = folder / "told" / "relay.json"
    assert ticket.stat().st_mode & 0o777 == 0o600
    (path,) = sockets(client)
    assert Path(client.at("relay", path)).stat().st_mode & 0o777 == 0o600
    reached = stores.open(f"relay://{ticket}")
    beat = places.heartbeat("run-1", machine.machine_id)
    reached.replace(beat, b"alive")
    assert store.get(beat) == b"alive"
    with pytest.raises(NoAccess):
        reached.get(SEED)
    # Who launches again sends no kit again, and uses the connection that there is.
    own.launch(place.request(leg=2), 1, "a-key")
    assert sockets(client) == [path]
    # Another controller has its own way; when all machines are over, nobody needs one.
    other = machines.provider(footprint, hosts.laptop, store.url)
    other.list_machines()
    other.tidy()
    assert len(sockets(client)) == 2
    up = [each.machine_id for each in own.list_machines().machines]
    own.terminate(up)
    for each in (own, other):
        each.list_machines()
        each.tidy()
    eventually(lambda: sockets(client) == [])


def test_what_a_machine_printed_that_could_not_begin_comes_to_the_store(
    hosts: Hosts, client: Client, store: Store, footprint: Footprint
) -> None:
    own = machines.provider(footprint, hosts.laptop, store.url, program="raise SystemExit('odd')")
    place = Place(own, way=machines.way())
    own.launch(place.request(run_id="run-x"), 1)
    eventually(lambda: [each for each in own.list_machines().machines if each.ended_s is not None])
    own.tidy()
    assert b"odd" in store.get(places.first_log("run-x", 1, 0))


def test_a_controller_that_is_killed_leaves_no_way_open(
    hosts: Hosts, client: Client, store: Store, footprint: Footprint
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS, store.url, footprint.encoded().decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        assert len(sockets(client)) == 1
        holder.send_signal(signal.SIGKILL)
    eventually(lambda: sockets(client) == [])
    eventually(lambda: hosts.machines["h1"].processes() == [])


def test_a_home_with_too_long_a_name(footprint: Footprint) -> None:
    far = replace(footprint.hosts["h1"], root="/home/" + "x" * 100)
    with pytest.raises(InvalidValue, match="too long"):
        relay.check_path(Client("h1", far, "0" * 16))
