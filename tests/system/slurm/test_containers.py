"""Jobs in images, on a real Slurm, by what stands in for pyxis and Apptainer (tests/slurm/stand_ins
has its lies): the command lines are ones that the programs take, and what is mounted is enough for
supervisor, job and store, when the job is preempted as well."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.slurm.cluster import Slurm
from tests.slurm.stand_ins import StandIns
from tests.system.gated import undisturbed
from tests.system.slurm.runs import Training, a_world, occupy
from tests.torch.test_tiny_gpt import weights

pytestmark = pytest.mark.system
STEPS = 40
SCRATCH = rf"/[^\s=]*/scratch/tradewind-{os.getuid()}-\d+-0"
NO_JOB = 9_999_999
IMAGE = "nvcr.io/nvidia/pytorch:25.10-py3"
KNOWN = {
    "pyxis": "nvcr.io#nvidia/pytorch:25.10-py3",
    "apptainer": f"docker://{IMAGE}",
}
"""As each program is told of it."""
BEGINS = {"pyxis": "sh ./rank.sh", "apptainer": "env HOME=SCRATCH/home sh ./start.sh"}
JOB = (
    "sh -c 'mkdir -p ~/.cache/kernels && case ~ in *-*/home) exec python train.py --steps"
    f" {STEPS} ;; esac; echo home is ~; exit 1'"
)
"""As libraries do, it writes to its home, which is the machine's own."""


@pytest.mark.parametrize("legs", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", [*KNOWN])
def test_a_training_in_an_image(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, legs: int
) -> None:
    """With two legs it is preempted, and resumes."""
    there = StandIns(tmp_path / "programs", [KNOWN[kind]])
    monkeypatch.setenv("PATH", f"{there.bin}:{os.environ['PATH']}")
    with a_world(slurm, tmp_path, "scavenge", containers=kind) as world:
        run = Training(world)
        run.gate = world.store_folder / "gate"  # which jobs see
        # What a machine has left that was killed is removed by the next one, in an image as well.
        (tmp_path / "scratch" / f"tradewind-{os.getuid()}-{NO_JOB}-0").mkdir()
        run.submit(JOB, 1, STEPS, image=IMAGE)
        if legs == 2:
            run.next(15)
            occupy(slurm)
            assert run.over(1) == "interrupted"
        told = run.finished()
        found = [int(step) for step in re.findall(r"resuming from step (\d+)", told)]
        assert len(found) == legs - 1
        assert all(step >= 15 for step in found), told  # it had notice, within the container too
        assert weights(told) == undisturbed(tmp_path, STEPS)
        calls = there.calls()
        began = [(image, re.sub(SCRATCH, "SCRATCH", " ".join(c))) for image, _, c in calls]
        assert began == [(KNOWN[kind], BEGINS[kind])] * legs
        for _, mounts, _ in calls:
            assert all(source == target for source, target in mounts)
            shown = {Path(source).parent.name for source, _ in mounts if "tw-" in source}
            assert shown == {"jobs"}, mounts
            assert {str(world.store_folder), str(tmp_path / "scratch")} <= {m[0] for m in mounts}
        world.nothing_is_left()
