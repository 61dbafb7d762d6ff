"""Trainings on a real Slurm, which go as far as a test lets them. The store is a folder that its
nodes share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from msgspec import to_builtins
from msgspec.structs import replace

from tests.eventually import eventually
from tests.providers.slurm.machines import way
from tests.slurm.cluster import NAME, NODES, Slurm
from tests.system.gated import Gated
from tests.system.rented import ROOT, Runs, variables
from tradewind import store as stores
from tradewind.base import clock, steps
from tradewind.catalog import ratecard
from tradewind.controller.controller import Controller
from tradewind.controller.drive import performer
from tradewind.model import places
from tradewind.model.event import LegOver
from tradewind.model.run import Spec, Way
from tradewind.providers.slurm import cluster, shapes
from tradewind.providers.slurm.cloud import CLOUD
from tradewind.providers.slurm.footprint import KEY, Cluster, Footprint
from tradewind.providers.slurm.login import Login
from tradewind.supervisor import bundle

STANDS_EACH = 10
"""A training saves every so many steps."""


@dataclass
class OnSlurm(Runs[Slurm]):
    provider: ClassVar[str] = "slurm"
    record: Footprint
    partition: str = "gpu"
    watching: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def watch(
        self, run_id: str, name: str = "controller", pass_s: float = 1.0
    ) -> subprocess.Popen[bytes]:
        self.watching.append(super().watch(run_id, name, pass_s))
        return self.watching[-1]

    def ways(self, nodes: int) -> tuple[Way, ...]:
        made = self.record.clusters[NAME]
        there = shapes.shapes(cluster.look(Login(made.login)), made)
        shape = next(e for e in there if e.partition == self.partition and e.gpus == 1)
        market = "spot" if shape.spot else "on_demand"
        wanted = way(self.partition, nodes=nodes, market=market, price=0, rate=5.0, start_s=20.0)
        usable = CLOUD.usable(
            self.record, [replace(wanted, instance_type=shape.name)], self.store.url
        )
        assert [to_builtins(e) for e in usable.rejected] == []
        return usable.ways

    @property
    def store_folder(self) -> Path:
        return self.folder / "store"

    def nothing_is_left(self) -> None:
        def left() -> list[str]:
            found = [e for name in ("scratch", "jobs") for e in (self.folder / name).rglob("*")]
            return [*self.cloud.said("squeue", "-h", "-o", "%i").split(), *map(str, found)]

        try:
            eventually(lambda: not left(), within_s=60)
        except AssertionError:
            raise AssertionError("\n".join(left())) from None


class Training(Gated):
    """One run of the example, with a gate in it."""

    runs: OnSlurm

    def __init__(self, runs: OnSlurm) -> None:
        super().__init__(runs, runs.folder / "gate")

    def submit(
        self, command: str, nodes: int, work: int, job: Path | None = None, image: str = ""
    ) -> None:
        self.go_to(0)
        folder = job or self.job(self.runs.folder, "", STANDS_EACH)
        run_id = clock.new_id("gpt")
        packed = bundle.pack(folder, self.runs.folder / f"{run_id}.tar.gz")
        self.runs.store.upload(places.bundle(run_id), packed.path)
        spec = Spec(
            name="gpt",
            work=float(work),
            ways=self.runs.ways(nodes),
            deadline_s=clock.now().timestamp() + 7200,
            checkpoint_every_s=3600,
            checkpoint_bytes=3_000_000,
            job={
                "command": command,
                "env": {
                    "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                    "GATE": str(self.gate),
                },
                "bundle": places.bundle(run_id),
                "bundle_sha256": packed.sha256,
                **({"image": image} if image else {}),
            },
        )
        ways = [CLOUD.priced(self.runs.record, spec, w, ratecard.card()) for w in spec.ways]
        spec = replace(spec, ways=tuple(ways))
        controller = Controller("ctl-test", ("slurm",), clock=clock.epoch, watch=clock.epoch)
        assert steps.run(controller.submit(run_id, spec), performer(self.runs.store, {}))
        self.run_id = run_id

    def over(self, legs: int) -> str:
        """How so many legs are over, the last of them."""
        self.attend(lambda: len(self.events(LegOver)) >= legs)
        return self.events(LegOver)[legs - 1].cause

    def finished(self) -> str:
        """What it has said."""
        self.go_to(10**6)
        self.attend(lambda: self.runs.closed(self.run_id))
        loaded = self.runs.loaded(self.run_id)
        assert loaded.state.outcome == "succeeded", self.runs.told(self.run_id)
        self.loop.tick()  # tidies up after the last job
        return self.runs.output(self.run_id)


def occupy(slurm: Slurm, seconds: int = 5, minutes: int = 5) -> None:
    """Somebody else's job, on all nodes, before which jobs of `scavenge` must give way."""
    everything = (f"-N{NODES}", "--exclusive", "-t", str(minutes), "-o", "/dev/null")
    slurm.said("sbatch", "-p", "gpu", *everything, "--wrap", f"sleep {seconds}")


def kill_supervisor(rank: int) -> None:
    """kill -9, of the one that has this rank in the Slurm that is asked here."""
    wanted = {f"SLURM_PROCID={rank}".encode(), f"SLURM_CONF={os.environ['SLURM_CONF']}".encode()}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            env = (place / "environ").read_bytes().split(b"\0")
            if b"tradewind.supervisor" in words and wanted <= set(env):
                os.kill(int(place.name), signal.SIGKILL)
                return
    raise AssertionError(f"there is no supervisor of rank {rank}")


@contextmanager
def a_world(slurm: Slurm, folder: Path, partition: str, **more: Any) -> Iterator[OnSlurm]:
    for name in ("store", "home", "scratch", "jobs"):
        (folder / name).mkdir()
    env = {
        **({} if more.get("login") else slurm.env),  # which only the login node needs to know
        "TRADEWIND_HOME": str(folder / "home"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    usual = Cluster(
        user="root",
        folder=str(folder / "jobs"),
        scratch=str(folder / "scratch"),
        prepare=(f"PATH={Path(sys.executable).parent}:$PATH",),
        interfaces="lo",
    )
    record = Footprint(clusters={NAME: replace(usual, **more)})
    with variables(env):
        store = stores.open(f"file://{folder}/store")
        store.replace(KEY, record.encoded())
        made = OnSlurm(slurm, env, folder, store, record, partition)
        try:
            yield made
        finally:
            for process in made.watching:
                process.kill()
                process.wait()
