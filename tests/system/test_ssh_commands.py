"""Hosts of one's own by the commands that a user types, with nothing but SSH: the store is on the
user's computer. A controller is killed, and a host loses its network for good."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.eventually import eventually
from tests.providers.ssh.hosts import Hosts, running
from tests.system.chain import FAST, Chain
from tradewind.providers.ssh import names

pytestmark = pytest.mark.system
SPEED = 5.0
JOB = 'echo "on $(hostname)"; while [ ! -e {go} ]; do sleep 0.2; done; echo "done on $(hostname)"'


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Where minutes pass faster."""
    with TemporaryDirectory(prefix="tradewind-fast-") as fast:
        Path(fast).chmod(0o755)  # for users of hosts
        shutil.copy(FAST / "sitecustomize.py", fast)
        env = {"PYTHONPATH": fast, "TRADEWIND_TEST_SPEED": str(SPEED)}
        with running(["h1", "h2"], gpus=1, env=env) as made:
            yield made


def where(chain: Chain, run: str) -> str:
    """The host of the leg that goes on, once its job has begun."""
    found = sorted(chain.state(run).claimed)
    return names.host_of(found[0]) if found else ""


@pytest.mark.long
def test_a_controller_is_killed_and_a_host_loses_its_network(hosts: Hosts, tmp_path: Path) -> None:
    store = f"file://{hosts.laptop}/store"
    chain = Chain(tmp_path, store=store, speed=SPEED)
    refused = chain.cli("setup", "ssh", "--host", "h1", "--store", store, "--yes", code=5)
    assert "--relay" in refused
    named = ("--host", "h1", "--host", "h2", "--relay", "--store", store, "--yes")
    assert "2 changes made" in chain.cli("setup", "ssh", *named)
    work = chain.job(JOB.format(go=hosts.folder / "go"))
    first = chain.popen("run", str(work), "--on", "ssh", "--yes")
    eventually(lambda: chain.ids() and where(chain, chain.ids()[0]), within_s=240)
    (run,) = chain.ids()
    chain.says(run, b"on h", within_s=240)
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = chain.popen("watch", run)
    try:
        lost = where(chain, run)
        leased = json.loads(chain.cli("ps", "--leases", "--json"))["leases"]
        assert [each["place"] for each in leased if each["state"] == "leased"] == [lost]
        hosts.unplug(hosts.machines[lost])
        other = {"h1": "h2", "h2": "h1"}[lost]
        eventually(lambda: where(chain, run) == other, within_s=300)
        (hosts.folder / "go").touch()
        assert chain.over(run, within_s=300).outcome == "succeeded"
        assert f"done on {other}" in chain.cli("logs", run)
    finally:
        second.kill()
        second.wait()
    hosts.plug_in(hosts.machines[lost])
    eventually(lambda: hosts.answers(hosts.machines[lost]))
    # Its machine has stopped by itself, or is ended now that it can be reached.
    chain.cli("tick")
    eventually(lambda: hosts.machines[lost].processes() == [], within_s=300)
    chain.cli("teardown", "ssh", "--store", store, "--yes")
    for host in hosts.machines.values():
        assert host.processes() == []
        assert host.leases() == []
        assert list(host.home("gpu").iterdir()) == []
