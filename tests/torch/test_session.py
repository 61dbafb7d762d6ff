"""Trainings that are killed and go on: to the bit what they would have been."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.torch.lives import Training, differ
from tests.torch.telemetry.readers import scalars

pytestmark = pytest.mark.slow

Make = Callable[[str], Training]


def killed(training: Training, *options: str, world: int = 1, kills: int = 2) -> None:
    """Trains in several lives; all but the last end by SIGKILL, at any instant of some step after
    something was saved."""
    rng = random.Random(str(options))
    step = 0
    for _ in range(kills):
        life = training.start(*options, "--step-s", "0.03", world=world)
        life.has_saved(step + 1).at(step + rng.randint(6, 12)).kill()
        step = life.saved()[-1]
    training.start(*options, world=world).done()
    assert training.lives[-1].begun() > 0


@pytest.mark.parametrize(
    ("options", "world"),
    [
        (["--workers", "2", "--ema", "--amp", "bf16"], 1),
        (["--accumulate", "4", "--amp", "scaler"], 1),
        (["--kind", "ddp", "--powersgd", "--workers", "2"], 2),
        (["--kind", "fsdp", "--accumulate", "3"], 2),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else str(given),
)
def test_the_weights_are_those_of_an_uninterrupted_training(
    training: Make, options: list[str], world: int
) -> None:
    whole, broken = training("whole"), training("broken")
    options = ["--every-steps", "5", *options]
    whole.start(*options, world=world).done()
    killed(broken, *options, world=world)
    assert differ(whole, broken) == []
    assert whole.seen() == broken.seen()


def test_every_sample_is_seen_once_an_epoch_whatever_the_world(training: Make) -> None:
    """Two ranks with DistributedDataParallel, three with fully_shard, then one by itself."""
    moved = training("moved")
    options = tuple("--epochs 2 --samples 101 --batch 4 --every-steps 4 --layernorm".split())
    slowly = (*options, "--step-s", "0.03")
    moved.start(*slowly, "--kind", "ddp", world=2).has_saved(4).at(6).kill()
    life = moved.start(*slowly, "--kind", "fsdp", "--workers", "1", world=3)
    life.has_saved(moved.lives[0].saved()[-1] + 1).kill()
    last = moved.start(*options).done()
    assert last.begun() > life.begun() > 0
    assert "then of 2 ranks" in life.log()
    assert "then of 3 ranks" in last.log()
    assert moved.seen() == Counter((epoch, index) for epoch in range(2) for index in range(101))
    # What is done is not done again, and nothing is saved anew.
    saved = last.saved()
    again = moved.start(*options).done()
    assert (again.step(), again.begun(), again.saved()) == (0, last.step(), saved)


def test_a_notice_saves_what_was_reached(training: Make) -> None:
    """SIGTERM to all processes of a training, loader workers too, as a supervisor sends it."""
    whole, asked = training("whole"), training("asked")
    options = ("--kind", "ddp", "--workers", "1", "--accumulate", "3", "--steps", "50")
    whole.start(*options, world=2).done()
    life = asked.start(*options, "--step-s", "0.05", world=2).at(10)
    for pid in life.pids:
        os.killpg(pid, signal.SIGTERM)
    assert life.codes() == [143, 143], life.log() + life.log(1)
    assert life.saved() == [life.step()]
    assert f"ends after step {life.step()}; step {life.step()} is saved" in life.log()
    last = asked.start(*options, world=2).done()
    assert last.begun() == life.step()
    assert differ(whole, asked) == []


def test_a_notice_in_the_middle_of_an_evaluation(training: Make) -> None:
    """The workers of the evaluation's loader get the SIGTERM too, and must not die of it."""
    whole, asked = training("whole"), training("asked")
    whole.start("--steps", "30", "--evaluate-s", "0").done()
    life = asked.start("--steps", "30", "--evaluate-s", "2").at(10)
    eventually(lambda: len(life.children()) == 2)
    os.killpg(life.pids[0], signal.SIGTERM)
    assert life.codes() == [143], life.log()
    assert "ends after step 11; step 11 is saved" in life.log()
    assert "evaluates" in life.log()
    assert asked.start("--steps", "30", "--evaluate-s", "0").done().begun() == 11
    assert differ(whole, asked) == []


def test_one_rank_hears_of_it_and_all_end_after_the_same_step(training: Make) -> None:
    asked = training("asked")
    life = asked.start("--kind", "fsdp", "--steps", "5000", "--step-s", "0.02", world=2).at(10)
    os.kill(life.pids[1], signal.SIGTERM)
    assert life.codes() == [143, 143]
    assert life.saved() == [life.step()]
    assert "another process was told" in life.log()


def test_under_a_supervisor(training: Make, tmp_path: Path) -> None:
    """The files of docs/jobs.md: cadence and save are read, progress is written, checkpoints are in
    the run's store under its leg."""
    under = training("under")
    env = {
        "TRADEWIND_RUN": "run-1",
        "TRADEWIND_LEG": "2",
        "TRADEWIND_STORE": str(tmp_path / "store"),
        "TRADEWIND_RESUME": "",
        **{
            f"TRADEWIND_{name.upper()}": str(tmp_path / f"{name}.json")
            for name in ("progress", "save", "cadence")
        },
    }
    (tmp_path / "cadence.json").write_text('{"every_s": 0.5}')
    options = ("--steps", "100000", "--step-s", "0.01")
    life = under.start(*options, env=env)
    places = tmp_path / "store" / "runs" / "run-1" / "checkpoints" / "000002"
    eventually(lambda: len(list(places.glob("*.json"))) > 1)

    def progress() -> dict[str, float]:
        try:
            told: dict[str, float] = json.loads((tmp_path / "progress.json").read_text())
        except FileNotFoundError:
            return {}
        return told if told["saved"] and told["rate"] else {}

    told = eventually(progress)
    assert 0 < told["saved"] <= told["step"]
    (tmp_path / "save.json").touch()
    assert life.codes() == [143], life.log()
    newest = max(places.glob("*.json"))
    assert int(newest.stem) == life.step() == progress()["saved"]
    # The next leg is told which checkpoint to go on from, and is asked again, by SIGTERM.
    (tmp_path / "save.json").unlink()
    key = str(newest.relative_to(tmp_path / "store"))
    later = {**env, "TRADEWIND_LEG": "3", "TRADEWIND_RESUME": key}
    third = under.start(*options, env=later).at(life.step() + 5)
    assert third.begun() == life.step()
    os.killpg(third.pids[0], signal.SIGTERM)
    assert third.codes() == [143]
    assert (places.parent / "000003" / f"{third.step():020d}.json").exists()


def test_what_has_changed_is_said_and_metrics_are_whole(training: Make) -> None:
    changed = training("changed")
    changed.start("--steps", "9").done()
    life = changed.start("--steps", "20", "--batch", "4").done()
    said = [line for line in life.log().splitlines() if "since the checkpoint of step 9" in line]
    assert len(said) == 2  # and not the code, which is the same
    assert "batch was 8 and is 4" in said[0]
    assert "samples in a batch was 8 and is 4" in said[1]
    lines = (changed.folder / "checkpoints" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 21))
    assert all(json.loads(line)["loss"] > 0 for line in lines)


def test_time_that_is_up_ends_it(training: Make) -> None:
    """A step that takes too long after a notice is not waited for, nor is anything after a second
    signal."""
    late = training("late")
    life = late.start("--step-s", "60", "--grace-s", "0.5").at(1)
    os.kill(life.pids[0], signal.SIGTERM)
    assert life.codes() == [143]
    assert life.saved() == []
    twice = late.start("--step-s", "60").at(1)
    os.kill(twice.pids[0], signal.SIGTERM)
    eventually(lambda: "asked to save" in twice.log())

    def gone() -> bool:
        os.kill(twice.pids[0], signal.SIGTERM)
        return not twice._alive()

    eventually(gone)
    assert twice.codes() == [143]
    assert twice.saved() == []


def test_ranks_that_skip_different_saves_end_together(training: Make) -> None:
    """Saves are asked for faster than they are done: one rank may skip what another has begun."""
    life = training("ddp").start("--kind", "ddp", "--every-steps", "1", "--steps", "25", world=2)
    life.done()
    assert life.saved()[-1] == 25


def test_metrics_have_no_seam_after_a_kill(training: Make) -> None:
    """Steps after the checkpoint are made again, and told once: in our file, and as TensorBoard
    reads its own."""
    seam = training("seam")
    life = seam.start("--steps", "100000", "--every-steps", "10", "--step-s", "0.05")
    metrics = seam.folder / "checkpoints" / "metrics.jsonl"
    events = seam.folder / "checkpoints" / "tensorboard"

    def told() -> list[dict[str, float]]:
        lines = metrics.read_text().splitlines() if metrics.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    # Later than what was saved: that is what would come twice.
    eventually(lambda: any("telemetry/step_s" in row for row in told()) and events.exists())
    eventually(lambda: (rows := told()) and rows[-1]["step"] % 10 > 3 and life.saved())
    life.kill()
    last = told()[-1]["step"]
    again = seam.start("--steps", str(int(last) + 30)).done()
    assert 0 < again.begun() < last
    assert [row["step"] for row in told()] == list(range(1, int(last) + 31))
    steps = [step for step, _ in scalars(events)]
    assert steps == sorted(set(steps))
    assert steps[-1] == last + 30
