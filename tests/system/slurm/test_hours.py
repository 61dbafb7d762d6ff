"""An account without hours left, as slurmdbd has them and slurmctld counts them: nothing is waited
for that will not be, and whoever asks is told what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.eventually import eventually
from tests.slurm.cluster import NAME, SPENT, Slurm
from tests.system.slurm.runs import Training, a_world
from tradewind.model.event import LaunchRefused
from tradewind.providers.slurm.cloud import CLOUD

pytestmark = pytest.mark.system
TODO = (
    "`sshare -l` tells what is left of each account, `tradewind setup slurm --account NAME` chooses"
    " another"
)


def tradewind(folder: Path, *words: str) -> str:
    """What the command says, which fails."""
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", *words, "--store", f"file://{folder}/store"],
        env=os.environ | {"TRADEWIND_HOME": str(folder / "home")},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return " ".join((done.stdout + done.stderr).split())


def test_setup_doctor_and_plans_say_that_no_hours_are_left(slurm: Slurm, tmp_path: Path) -> None:
    without = f"{NAME}: no hours are left in the account {SPENT}: "  # and how many there were
    with a_world(slurm, tmp_path, "gpu", account=SPENT) as world:
        ways = world.ways(1)
        with slurm.hours(0):
            there = ("--folder", str(tmp_path / "jobs"), "--yes")
            said = tradewind(tmp_path, "setup", "slurm", "--account", SPENT, *there)
            assert without in said
            assert "of 0 minutes of gres/gpu are used" in said
            assert f"hint: {TODO}" in said
            said = tradewind(tmp_path, "doctor", "slurm")
            assert without in said
            assert f"do: {TODO}" in said
            usable = CLOUD.usable(world.record, ways, world.store.url)
            assert usable.ways == ()
            (reason,) = usable.rejected
            assert (reason.kind, reason.hint) == ("quota", TODO)
            assert without in reason.words
            # Another account of the same user has hours.
            other = replace(world.record.clusters[NAME], account="physics")
            record = replace(world.record, clusters={NAME: other})
            assert len(CLOUD.usable(record, ways, world.store.url).ways) == 1


def test_a_run_whose_hours_are_gone_meanwhile_does_not_wait(slurm: Slurm, tmp_path: Path) -> None:
    with a_world(slurm, tmp_path, "gpu", account=SPENT) as world:
        run = Training(world)
        run.submit("python train.py", 1, 10)
        with slurm.hours(0):
            run.attend(lambda: run.events(LaunchRefused))
            (refused,) = run.events(LaunchRefused)
            assert refused.kind == "no_quota"
            assert refused.reason == (
                f"AssocGrpGRESMinutes: no hours are left in its account or QOS; {TODO}"
            )
            # The job that could never begin is taken back.
            jobs = ("squeue", "-h", "-A", SPENT, "-o", "%i")
            run.attend(lambda: not slurm.said(*jobs).strip())
            eventually(lambda: "CANCELLED" in slurm.said("sacct", "-nPX", "-A", SPENT))
