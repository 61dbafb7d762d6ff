"""From another computer, over OpenSSH to a login node: a training longer than its partition's time
limit; a login node that is away for ten minutes; and what is wrong with a login node."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.slurm.cluster import SHORT_S, Slurm
from tests.slurm.login import HOST, LoginNode, login_node
from tests.system.gated import undisturbed
from tests.system.slurm.runs import Training, a_world
from tests.torch.test_tiny_gpt import weights
from tradewind.model.event import LegOver

pytestmark = pytest.mark.system
STEPS = 60


@pytest.fixture
def login(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginNode]:
    """Slurm is asked there, and nowhere else."""
    with login_node(tmp_path / "login", slurm) as made:
        monkeypatch.setenv("PATH", made.path)
        for name in slurm.env:
            monkeypatch.delenv(name)
        yield made


@pytest.mark.long
def test_longer_than_a_time_limit(slurm: Slurm, login: LoginNode, tmp_path: Path) -> None:
    with a_world(slurm, tmp_path, "short", login=HOST) as world:
        run = Training(world)
        run.submit(f"python train.py --steps {STEPS}", 1, STEPS)
        run.next(15)

        # It stands there until its time is up, saves, and goes on in another job.
        assert run.over(1) == "stopped", world.told(run.run_id)
        run.next(35)
        told = run.finished()
        (found,) = map(int, re.findall(r"resuming from step (\d+)", told))
        assert found >= 15, told  # all that was done
        assert weights(told) == undisturbed(tmp_path, STEPS)
        machines = world.loaded(run.run_id).state.machines.values()
        lasted = [(e.machine.ended_s or 0) - e.machine.launched_s for e in machines]
        assert len(lasted) == 2
        assert max(lasted) < SHORT_S
        world.nothing_is_left()
        eventually(lambda: "TIMEOUT" not in slurm.said("sacct", "-nPX", "-S", "now-1hour"))


AWAY_S = 600


def beats(run: Training) -> list[int]:
    return [each.beat for each in run.runs.beats(run.run_id)]


def a_pass_in_vain(run: Training) -> None:
    """The job's machine has said something new; Slurm cannot be asked."""
    before = beats(run)
    eventually(lambda: beats(run) != before)
    (trouble,) = run.loop.tick()
    assert f"{HOST} cannot be asked" in str(trouble[1])
    assert run.events(LegOver) == []


def pretended(run: Training) -> None:
    """Ten minutes by the controller's clock."""
    for _ in range(5):
        run.later(AWAY_S / 5)
        a_pass_in_vain(run)


def waited(run: Training) -> None:
    """Ten minutes by everybody's."""
    began = time.monotonic()
    while time.monotonic() < began + AWAY_S:
        a_pass_in_vain(run)


@pytest.mark.parametrize("ten_minutes", [pretended, pytest.param(waited, marks=pytest.mark.long)])
def test_a_login_node_that_is_away_for_ten_minutes(
    slurm: Slurm, login: LoginNode, tmp_path: Path, ten_minutes: Callable[[Training], None]
) -> None:
    """The job does not need it, and nobody takes its silence for an end: it is one leg."""
    with a_world(slurm, tmp_path, "gpu", login=HOST) as world:
        run = Training(world)
        run.submit(f"python train.py --steps {STEPS}", 1, STEPS)
        run.next(11)
        login.stop()
        run.stands(15)
        ten_minutes(run)
        run.go_to(STEPS + 1)  # it is done before anybody can ask Slurm again
        eventually(lambda: {e.doing for e in world.beats(run.run_id)} == {"finished"}, within_s=300)
        assert run.loop.tick() != []
        login.start()
        told = run.finished()
        assert "resuming from" not in told
        assert weights(told) == undisturbed(tmp_path, STEPS)
        assert [each.cause for each in run.events(LegOver)] == ["finished"]
        world.nothing_is_left()


def setup(folder: Path, *words: str) -> str:
    """What `tradewind setup slurm` says when it fails."""
    store = folder / "shared"
    store.mkdir(exist_ok=True)
    env = os.environ | {"TRADEWIND_HOME": str(folder / "own")}
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", "setup", "slurm", "--yes", "--store",
         f"file://{store}", "--login", HOST, "--folder", str(folder / "there"), *words],
        env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "hint:" in done.stderr
    return " ".join(done.stderr.split())


def test_what_is_wrong_is_said_with_what_to_do(
    slurm: Slurm, login: LoginNode, tmp_path: Path
) -> None:
    assert "lab has no partition gpus (did you mean gpu?)" in setup(tmp_path, "--partition", "gpus")
    assert "lab has no account nobody" in setup(tmp_path, "--account", "nobody")
    login.stop()
    login.become_another()
    login.start()
    assert f"the key of {HOST} is not the one that you know" in setup(tmp_path)
    login.stop()
    assert f"`ssh {HOST} squeue` tries it" in setup(tmp_path)
