"""A whole world of AWS on this computer: EC2 with bodies, a real S3 server, and runs on them.
google.py has the same of Google Cloud."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from msgspec.structs import replace

from tests.cloud.faces.ec2.control import Control, running
from tests.eventually import eventually
from tests.providers.aws import machines
from tests.store import servers
from tests.store.flaky import flaky
from tests.torch.test_tiny_gpt import EXAMPLE
from tradewind import store as stores
from tradewind.api.follow import Sight
from tradewind.base import clock, steps
from tradewind.catalog import ratecard
from tradewind.controller.drive import performer
from tradewind.journal import runs_store
from tradewind.journal.runs_store import Loaded
from tradewind.ledger.postings import RunCost, cost_of
from tradewind.model import places
from tradewind.model.run import Heartbeat, Spec, Way
from tradewind.providers import charges
from tradewind.providers.aws.facts import FACTS
from tradewind.providers.aws.footprint import KEY
from tradewind.store.base import Store
from tradewind.supervisor import bundle

ROOT = Path(__file__).parents[2]
STORE = "s3://runs/team"
ZONES = ("use1-az1", "use1-az2")
SPOT, ON_DEMAND = 400_000, 1_006_000
HOME = ("aws", "us-east-1")
ADDRESS = charges.address_hour(ratecard.card(), HOME)
RATES = charges.store(ratecard.card(), HOME, HOME, kept_s=86_400)
WATCH = """
import sys
from tradewind import store
from tradewind.journal import runs_store
from tradewind.api import fleet
opened = store.open(sys.argv[1])
loop = fleet.loop(opened)
loop.pass_s = float(sys.argv[3])
def wanted():
    return runs_store.load(opened, sys.argv[2]).state.phase != "closed"
def tell(troubles):
    for where, error in troubles:
        print(where, error, flush=True)
loop.watch(wanted, tell=tell)
"""


C = TypeVar("C")


@dataclass
class Runs(Generic[C]):
    """Runs on machines of an emulated cloud, and their store."""

    cloud: C
    env: dict[str, str]
    folder: Path
    store: Store
    provider: ClassVar[str]

    def ways(self, nodes: int) -> tuple[Way, ...]:
        raise NotImplementedError

    def submit(self, run_steps: int, nodes: int = 2) -> str:
        """tiny-gpt, by torchrun over so many machines."""
        run_id = clock.new_id("gpt")
        packed = bundle.pack(EXAMPLE, self.folder / f"{run_id}.tar.gz")
        self.store.upload(places.bundle(run_id), packed.path)
        spec = Spec(
            name="gpt",
            work=float(run_steps),
            ways=self.ways(nodes),
            deadline_s=clock.now().timestamp() + 3600,
            budget=50_000_000,
            checkpoint_every_s=5,
            checkpoint_bytes=3_000_000,
            job={
                "command": f"torchrun --nproc-per-node 1 train.py --steps {run_steps}",
                "env": {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
                "bundle": places.bundle(run_id),
                "bundle_sha256": packed.sha256,
            },
        )
        from tradewind.controller.controller import Controller

        controller = Controller("ctl-test", (self.provider,), clock=clock.epoch, watch=clock.epoch)
        assert steps.run(controller.submit(run_id, spec), performer(self.store, {}))
        return run_id

    def watch(
        self, run_id: str, name: str = "controller", pass_s: float = 1.0
    ) -> subprocess.Popen[bytes]:
        """A controller of its own."""
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", WATCH, self.store.url, run_id, str(pass_s)],
                env=os.environ | self.env,
                stdout=log,
                stderr=log,
                cwd=ROOT,
            )

    def kill_controllers(self, run_id: str) -> None:
        """One after the other: three when they have written their first line, before the run can be
        done, and three a few seconds later, wherever they are then."""
        chosen = random.Random(5)

        def more_than(before: int) -> bool:
            return len(self.loaded(run_id).commits) > before

        for early in (True, True, True, False, False, False):
            before = len(self.loaded(run_id).commits)
            controller = self.watch(run_id, pass_s=0.5)
            if early:
                eventually(partial(more_than, before), within_s=240)
                assert not self.closed(run_id)
            else:
                with suppress(subprocess.TimeoutExpired):  # else it is done
                    controller.wait(chosen.uniform(4, 14))
            controller.kill()
            controller.wait()

    def loaded(self, run_id: str) -> Loaded:
        return runs_store.load(self.store, run_id)

    def beats(self, run_id: str) -> list[Heartbeat]:
        sight = Sight(self.store, run_id)
        sight.look()
        sight.feel()
        return list(sight.beats.values())

    def saved(self, run_id: str) -> bool:
        return bool(self.store.list_after(places.checkpoints(run_id)))

    def closed(self, run_id: str) -> bool:
        return self.loaded(run_id).state.phase == "closed"

    def finished(self, run_id: str, within_s: float = 900.0) -> Loaded:
        eventually(lambda: self.closed(run_id), within_s=within_s)
        loaded = self.loaded(run_id)
        assert loaded.state.outcome == "succeeded", self.told(run_id)
        return loaded

    def told(self, run_id: str) -> str:
        lines = [
            str(event)[:2000] for commit in self.loaded(run_id).commits for event in commit.events
        ]
        logs = [path.read_text()[-2000:] for path in self.folder.glob("*.log")]
        return "\n".join([*lines, *logs])

    def output(self, run_id: str) -> str:
        keys = self.store.list_after(places.logs(run_id))
        return "".join(self.store.get(key).decode("utf-8", "replace") for key in keys)

    def cost(self, run_id: str) -> RunCost:
        events = [event for commit in self.loaded(run_id).commits for event in commit.events]
        return cost_of(run_id, events)


class Rented(Runs[Control]):
    """On EC2."""

    provider = "aws"

    def ways(self, nodes: int) -> tuple[Way, ...]:
        facts = replace(FACTS, listing_lag_s=5)  # the equipment tells at once what there is
        return tuple(
            machines.way(
                facts=facts,
                market=market,
                zone=zone,
                price=price,
                nodes=nodes,
                rate=5.0,
                address_price=ADDRESS,
                rates=RATES,
                start_s=20.0,
            )
            for market, price in (("spot", SPOT + ADDRESS), ("on_demand", ON_DEMAND + ADDRESS))
            for zone in ZONES
        )

    def instances(self, run_id: str) -> list[str]:
        """Of the leg that goes on."""
        return [name.rpartition("-i-")[2] for name in self.loaded(run_id).state.claimed]


@contextmanager
def a_world(folder: Path, share: float = 0.0, *, lends: bool = False) -> Iterator[Rented]:
    """`share` of what is asked of S3 fails. `lends`: its server lends passes, by its own STS."""
    with ExitStack() as stack:
        cloud = stack.enter_context(running(folder / "ec2", bodies="netns"))
        (folder / "s3").mkdir()
        s3 = stack.enter_context(servers.s3(folder / "s3", lends=lends))
        port = int(s3["AWS_ENDPOINT_URL"].rpartition(":")[2])
        if share:
            port = stack.enter_context(flaky(port, share))
        keys = {name: s3[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        cloud.credentials(*keys.values())
        env = cloud.env | keys | {"AWS_ENDPOINT_URL_S3": cloud.s3(port)}
        if lends:
            env |= {"AWS_ENDPOINT_URL_STS": s3["AWS_ENDPOINT_URL"]}
        env |= {"TRADEWIND_HOME": str(folder / "home")}
        env |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        stack.enter_context(variables(env))
        began = cloud.now()
        for zone in ZONES:
            cloud.spot_price(machines.KIND, zone, SPOT / 1e6, at=began - 7200)
        cloud.on_demand_price(machines.KIND, ON_DEMAND / 1e6)
        store = stores.open(STORE)
        store.replace(KEY, machines.footprint(cloud, store_url=STORE).encoded())
        yield Rented(cloud, env, folder, store)


@contextmanager
def variables(env: dict[str, str]) -> Iterator[None]:
    """In this process's own environment, where libraries look for them."""
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
