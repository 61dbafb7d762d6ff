"""A training on a host of one's own whose store is a bucket: the host is nobody there, and is lent
a pass. It is switched off for good, and the training resumes on the other.

The SSH servers are real, and so are the S3 server, its STS and its policies (SeaweedFS).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.providers.aws import machines as ec2
from tests.providers.ssh import machines
from tests.providers.ssh.hosts import Hosts, Machine, running
from tests.store.servers import ROLE
from tests.system.gated import Gated, shared, tradewind, undisturbed
from tests.system.rented import HOME, STORE, Rented, a_world, variables
from tests.torch.test_tiny_gpt import weights
from tradewind.api import rented, submit
from tradewind.model import places
from tradewind.model.event import LegOver, LegUp
from tradewind.model.timing import GRACE_S, LOST_S
from tradewind.providers.ssh import names

pytestmark = pytest.mark.system
STEPS, EACH = 60, 10
WORK = f"""
name: tiny-gpt
work: {{on: 1xA100-80GB, step: 10s, steps: {STEPS}, memory: 2GB}}
checkpoint: {{every: 5s, size: 3MB}}
limits: {{deadline: 3h, max_accelerators: 1}}
run:
  command: python train.py --steps {STEPS}
  env: {{PATH: "BIN:/usr/bin:/bin", GATE: GATE}}
"""


class World(Gated):
    runs: Rented

    def __init__(self, runs: Rented, hosts: Hosts, gate: Path) -> None:
        super().__init__(runs, gate)
        self.hosts = hosts

    def submit(self, folder: Path) -> None:
        """As `tradewind run work.yaml --on ssh` does it."""
        job = self.job(folder, WORK, EACH)
        on = rented.On(self.runs.store, ["ssh"])
        spec = submit.spec_of(submit.wanted(str(job / "work.yaml"), on), local=False, on=on)
        assert {way.provider for way in spec.ways if way.pass_s} == {"ssh"}
        ways = [replace(w, facts=replace(w.facts, listing_lag_s=5)) for w in spec.ways]
        self.run_id = submit.submit(self.runs.store, replace(spec, ways=tuple(ways)), job)

    def next_host(self, step: int) -> Machine:
        """The one on which the job has come as far as that."""
        return self.hosts.machines[names.host_of(self.next(step))]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with (
        a_world(tmp_path, lends=True) as aws,
        variables({"TRADEWIND_PLAIN_HTTP": aws.cloud.host}),
        running(["h1", "h2"], gpus=1) as hosts,
        shared() as folder,
    ):
        hosts.write_config("root")  # PyTorch is where only root may go
        made = ec2.footprint(aws.cloud, HOME[1], store_url=STORE)
        made = replace(made, account=ROLE.split(":")[4], lending_role=ROLE)
        aws.store.replace(places.footprint("aws"), made.encoded())
        record = replace(machines.set_up(hosts, store_url=STORE), bucket_region=HOME[1])
        assert record.bucket_provider == HOME[0]
        aws.store.replace(places.footprint("ssh"), record.encoded())
        yield World(aws, hosts, folder / "gate")


def files(host: Machine) -> list[Path]:
    return [path for path in host.home("root").rglob("*") if path.is_file()]


def test_resumed_on_another_host_when_its_own_is_switched_off(world: World, tmp_path: Path) -> None:
    hosts = world.hosts
    world.go_to(0)
    world.submit(tmp_path)
    first = world.next_host(25)

    # What it holds is a pass, in a file that nobody else may read; no key of the user's.
    (kept,) = [path for path in files(first) if path.name == "pass.json"]
    assert kept.stat().st_mode & 0o777 == 0o600
    assert b'"token"' in kept.read_bytes()
    secret = os.environ["AWS_SECRET_ACCESS_KEY"].encode()
    assert [path for path in files(first) if secret in path.read_bytes()] == []

    hosts.switch_off(first)
    world.later(LOST_S + 1)  # nobody hears of it any more
    world.attend(lambda: world.events(LegOver))
    second = world.next_host(45)
    assert second != first
    world.go_to(STEPS + 1)
    world.attend(lambda: world.runs.loaded(world.run_id).state.outcome)
    world.later(GRACE_S + 10)  # nobody has told what became of its first machine, nor ever will
    world.attend(lambda: world.runs.closed(world.run_id))
    state = world.runs.loaded(world.run_id).state
    assert state.outcome == "succeeded", world.runs.told(world.run_id)
    assert len(world.events(LegUp)) == 2

    log = tradewind("logs", world.run_id, "--store", STORE)
    assert re.findall(r"resuming from step (\d+)", log) == ["20"], log  # the last checkpoint
    assert weights(log) == undisturbed(tmp_path, STEPS)

    # Nothing is left: no pass in the bucket or on a host, nor anything else on one.
    hosts.start(first)
    world.loop.tick()
    assert world.runs.store.list_after("passes/") == []
    tradewind("teardown", "ssh", "--store", STORE, "--yes")
    for host in hosts.machines.values():
        assert (host.processes(), host.leases(), files(host)) == ([], [], [])
