"""Trainings that a framework runs, killed and gone on with: to the bit as if they were not."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import and_long
from tests.torch.lives import Life, Nursery, Training, differ
from tradewind.base.errors import MissingExtra
from tradewind.telemetry import files as telemetry

pytestmark = pytest.mark.slow

MODULES = {name: f"tests.torch.frameworks.{name}" for name in ("hf", "lightning", "accelerated")}
AVERAGES = "tests.torch.frameworks.averages"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery(*MODULES.values(), AVERAGES)
    yield made
    made.close()


def told(life: Life) -> list[str]:
    """What it says at its end: its log, its counters, what was best."""
    lines = [line for line in life.log().splitlines() if line.startswith(("log", "ended"))]
    assert lines, life.log()
    return lines


@pytest.mark.parametrize(
    ("framework", "options"),
    and_long(
        [
            ("hf", "--workers 2 --accumulate 3 --epochs 4"),
            ("lightning", "--best"),
        ],
        [
            ("accelerated", "--workers 2 --accumulate 3 --epochs 4"),
            ("hf", "--best"),
            ("lightning", "--workers 2 --accumulate 3 --epochs 4"),
            ("accelerated", "--best"),
        ],
    ),
)
def test_killed_and_asked_to_end(
    nursery: Nursery, tmp_path: Path, framework: str, options: str
) -> None:
    module = MODULES[framework]
    whole, broken = (Training(nursery, tmp_path / name, module) for name in ("whole", "broken"))
    words = ("--every-steps", "3", *options.split())
    first = whole.start(*words).done()
    life = broken.start(*words, "--step-s", "0.05").has_saved(5).at(11)
    life.kill()
    second = broken.start(*words, "--step-s", "0.05").at(21)
    assert second.begun() > 0
    os.killpg(second.pids[0], signal.SIGTERM)
    assert second.codes() == [143], second.log()
    ended = second.step()
    assert f"ends after step {ended}; step {ended} is saved" in second.log()
    last = broken.start(*words).done()
    assert last.begun() == ended
    assert differ(whole, broken) == []
    assert told(last) == told(first)
    again = broken.start(*words).done()  # what is done is not done again
    assert again.step() == 0
    assert differ(whole, broken) == []


def test_a_script_that_resumes_by_itself_is_told(nursery: Nursery, tmp_path: Path) -> None:
    """Of a checkpoint that is nowhere, of the framework's own, and of ours, which is preferred."""
    hf, lightning = (Training(nursery, tmp_path / n, MODULES[n]) for n in ("hf", "lightning"))
    lost = hf.start("--resume", "nowhere")
    assert lost.codes() == [1]
    assert "'nowhere' is no folder, and there is no checkpoint of tradewind's" in lost.log()
    for training, theirs, words in (
        (hf, "out/checkpoint-*", "resume_from_checkpoint="),
        (lightning, "best/*.ckpt", "ckpt_path="),
    ):
        training.start("--best", "--epochs", "1").done()
        found = next(training.folder.glob(theirs))
        steps = int(found.name.split("-")[-1].split("=")[-1].split(".")[0])
        again = training.start("--best", "--epochs", "1", "--resume", str(found)).done()
        assert f"{words}'{found}' is not used" in again.log()
        assert again.step() == 0
        other = Training(nursery, training.folder / "other", MODULES[training.folder.name])
        begun = other.start("--epochs", "1", "--every-steps", "3", "--resume", str(found)).done()
        assert "begins with" in begun.log()
        numbers = [int(line[5:]) for line in begun.log().splitlines() if line.startswith("step ")]
        assert numbers == list(range(steps + 1, 27))
        last = other.start("--epochs", "1").done()
        assert last.begun() == 26


def test_metrics_and_the_words_of_a_supervisor(nursery: Nursery, tmp_path: Path) -> None:
    for name, metric in (("hf", "eval_loss"), ("lightning", "val_loss"), ("accelerated", "loss")):
        training = Training(nursery, tmp_path / name, MODULES[name])
        env = {
            f"TRADEWIND_{each.upper()}": str(training.folder / f"{each}.json")
            for each in ("progress", "save", "cadence")
        }
        (training.folder / "cadence.json").write_text('{"every_s": 0.1}')
        life = training.start("--best", "--step-s", "0.05", env=env).has_saved(1).at(16)
        (training.folder / "save.json").touch()
        assert life.codes() == [143], life.log()
        progress = json.loads((training.folder / "progress.json").read_text())
        assert progress["saved"] == progress["step"] == life.step()
        lines = (training.folder / "checkpoints" / "metrics.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        assert any(metric in row for row in rows)
        assert {row["step"] for row in rows if "loss" in row} == set(range(1, life.step() + 1))
        (told,) = telemetry.read(training.folder / "checkpoints" / "telemetry", time.time())
        assert told.data is not None  # how long it waited for batches


@pytest.mark.parametrize("framework", ["accelerated", "lightning", "hf"])
def test_averages_that_were_not_handed_over(
    nursery: Nursery, tmp_path: Path, framework: str
) -> None:
    """Are refused, be they modules or a library's lists; `extra=` keeps them, or the callback that
    has them. And what is told of a step is one row."""
    kept = "callback" if framework == "lightning" else "extra"
    said = {"copy": "a Module changes in training", "library": "Shadows.shadow_params has tensors"}
    for where in ("copy", "library", kept):
        training = Training(nursery, tmp_path / where, AVERAGES)
        life = training.start(framework, where)
        assert life.codes() == [int(where != kept)], life.log()
        assert said.get(where, "") in life.log()
        assert ("has tensors" in life.log()) == (where == "library"), life.log()
    lines = (tmp_path / kept / "c" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["step"] for row in rows] == list(range(1, 13))
    if framework == "accelerated":
        assert [row["decay"] for row in rows] == [number / 10 for number in range(1, 13)]
        assert (rows[-1]["logged_step"], rows[-1]["tested"]) == (7.0, 1.0)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import tradewind.torch as tw

    for name in ("transformers", "accelerate", "lightning", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    for call, pip in (
        (lambda: tw.hf(object()), "pip install 'transformers[torch]'"),
        (tw.LightningCallback, "pip install lightning"),
        (lambda: tw.accelerate(*[object()] * 4), "pip install accelerate"),
    ):
        with pytest.raises(MissingExtra) as error:
            call()
        assert error.value.hint == pip
