"""torchrun over two nodes of a real Slurm, through what happens there. The weights at the end are
those of a training that nobody disturbed, and nothing is left on the cluster."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.slurm.cluster import Slurm
from tests.system.slurm.runs import Training, a_world, kill_supervisor, occupy
from tests.system.test_torchrun import torchrun
from tests.torch.test_tiny_gpt import EXAMPLE, weights

pytestmark = pytest.mark.system
STEPS = 60


def undisturbed(folder: Path) -> str:
    """The weights of the same training by two processes of this computer, left alone."""
    job = shutil.copytree(EXAMPLE, folder / "alone")
    assert torchrun(job, "train.py", "--steps", str(STEPS)).wait(300) == 0
    return weights((job / "log").read_text())


def test_two_nodes_through_all_that_happens_to_them(slurm: Slurm, tmp_path: Path) -> None:
    with a_world(slurm, tmp_path, "scavenge") as world:
        run = Training(world)
        run.submit(f"torchrun --nproc-per-node 1 train.py --steps {STEPS}", 2, STEPS)

        # The controller is killed, and so is Slurm's: the job goes on, and is found again.
        controller = world.watch(run.run_id)
        run.stands(11)
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        slurm.stop_controller(signal.SIGKILL)
        run.stands(13)
        assert run.loop.tick() != [], "Slurm cannot be asked, and nobody says so"
        slurm.start_controller()
        run.next(15)

        # Another job needs the nodes. All that was done is saved within the grace time.
        occupy(slurm)
        assert run.over(1) == "interrupted"
        run.next(35)

        # A node dies, with all that runs on it, and its slurmd.
        node = slurm.said("squeue", "-h", "-t", "R", "-o", "%B").strip()
        slurm.kill_node(node)
        try:
            assert run.over(2) in ("interrupted", "infrastructure")
        finally:
            slurm.start_node(node)
        run.next(45)

        kill_supervisor(1)
        run.next(55)

        told = run.finished()
        assert weights(told) == undisturbed(tmp_path)
        # What was preempted had notice; of what was killed, the last checkpoint counts. What a node
        # that died had printed just before may be lost with it.
        found = sorted({int(each) for each in re.findall(r"resuming from step (\d+)", told)})
        assert found[0] >= 15, told
        assert found[-1] == 40, told
        world.nothing_is_left()
