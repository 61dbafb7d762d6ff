from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.checkpoint.processes import run

pytestmark = pytest.mark.slow

HERE = "tests.torch.checkpoint."


def test_any_number_of_ranks_reads_what_any_other_wrote(tmp_path: Path) -> None:
    (said,) = run([f"{HERE}reshard_worker", str(tmp_path)])
    assert "every phase was right" in said


@pytest.mark.parametrize(("world", "times"), [(1, 8), (2, 6)])
def test_killed_at_any_moment_it_leaves_a_whole_one(tmp_path: Path, world: int, times: int) -> None:
    (said,) = run([f"{HERE}kill_worker", str(tmp_path), "1", str(times), str(world)])
    assert "steps were durable" in said


@pytest.mark.system  # 20 s: torchrun takes its time
def test_under_torchrun_each_attempt_agrees_anew(tmp_path: Path) -> None:
    script = Path(__file__).with_name("torchrun_worker.py")
    options = ["--standalone", "--nproc-per-node=2", "--max-restarts=3", "--monitor-interval=0.1"]
    run(["torch.distributed.run", *options, str(script), str(tmp_path)])
    assert [(tmp_path / f"done-{rank}").read_text() for rank in range(2)] == ["2", "2"]
