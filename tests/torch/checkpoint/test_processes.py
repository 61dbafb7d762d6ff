from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.checkpoint.processes import run

HERE = "tests.torch.checkpoint."


def test_any_number_of_ranks_reads_what_any_other_wrote(tmp_path: Path) -> None:
    said = run(*([f"{HERE}reshard_worker", str(rank), str(tmp_path)] for rank in range(3)))
    assert all("every phase was right" in words for words in said)


@pytest.mark.parametrize(("world", "times"), [(1, 12), (2, 8)])
def test_killed_at_any_moment_it_leaves_a_whole_one(tmp_path: Path, world: int, times: int) -> None:
    (said,) = run([f"{HERE}kill_worker", str(tmp_path), "1", str(times), str(world)])
    assert "steps were durable" in said
