"""Trainings by frameworks under the real torchrun, of two ranks, killed and gone on with; and by
`tradewind run`, with machines that are taken."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cases import and_long
from tests.eventually import eventually
from tests.system.chain import Chain
from tests.torch.frameworks.test_frameworks import MODULES
from tests.torch.lives import Nursery, Training, differ
from tests.torch.test_tiny_gpt import weights
from tradewind.model import places
from tradewind.providers.local.provider import LocalProvider

pytestmark = pytest.mark.system
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "frameworks"
FRAMEWORKS = ("hf", "lightning", "accelerated")


class Launched:
    """torchrun, in a process group of its own with all that it starts."""

    def __init__(self, framework: str, folder: Path, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.log = folder, folder / "log"
        module = f"tests.torch.frameworks.{framework}"
        run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, *run, "-m", module, str(folder), *options],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def saved(self) -> list[Path]:
        return list(self.folder.glob("checkpoints/checkpoints/*/*.json"))

    def code(self) -> int:
        try:
            return self.process.wait(400)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """Each rank has a group of its own, as torchrun starts them."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=True
        )
        for pid in [self.process.pid, *map(int, found.stdout.split())]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def weights(self) -> dict[str, Any]:
        import torch

        loaded: dict[str, Any] = torch.load(self.folder / "weights.pt", weights_only=True)
        return loaded

    def step(self) -> int:
        return max(map(int, re.findall(r"^step (\d+)$", self.log.read_text(), re.M)), default=0)


@pytest.mark.parametrize(
    ("framework", "options", "how"),
    and_long(
        [
            ("accelerated", "--workers 1", signal.SIGTERM),
            ("hf", "--fsdp", signal.SIGKILL),
        ],
        [
            ("lightning", "--accumulate 2 --workers 1", signal.SIGKILL),
            ("hf", "--accumulate 2 --workers 1", signal.SIGKILL),
            ("accelerated", "--accumulate 2 --workers 1", signal.SIGKILL),
            ("hf", "--best", signal.SIGTERM),
            ("lightning", "--best", signal.SIGTERM),
            ("accelerated", "--fsdp", signal.SIGKILL),
        ],
    ),
)
def test_two_ranks_by_torchrun(
    tmp_path: Path, framework: str, options: str, how: signal.Signals
) -> None:
    import torch

    words = ("--every-steps", "3", "--samples", "207", "--epochs", "2", *options.split())
    whole = Launched(framework, tmp_path / "whole", *words)
    first = Launched(framework, tmp_path / "broken", *words, "--step-s", "0.2")
    over = first.process.poll
    eventually(lambda: (first.saved() and first.step() > 7) or over() is not None, within_s=300)
    assert over() is None, first.log.read_text()
    if how == signal.SIGKILL:
        first.kill()
    else:
        first.process.send_signal(how)
        assert first.code() != 0
        found = re.search(r"ends after step (\d+); step \1 is saved", first.log.read_text())
        assert found, first.log.read_text()
    last = Launched(framework, tmp_path / "broken", *words)
    assert last.code() == 0, last.log.read_text()
    assert "resuming from step" in last.log.read_text()
    assert whole.code() == 0, whole.log.read_text()
    ours, theirs = last.weights(), whole.weights()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


@pytest.mark.parametrize(
    "script", and_long(["train_accelerate.py"], ["train_hf.py", "train_lightning.py"])
)
def test_the_examples_by_tradewind_run_on_machines_that_are_taken(
    chain: Callable[..., Chain], tmp_path: Path, script: str
) -> None:
    made = chain(env={"OMP_NUM_THREADS": "1"})
    job, alone = (shutil.copytree(EXAMPLE, tmp_path / name) for name in ("job", "alone"))
    work = job / "work.yaml"
    text = work.read_text().replace("train_accelerate.py", script)
    work.write_text(text.replace("every: 5s", "every: 1s"))
    run = made.detach(work)
    provider = LocalProvider(made.home, made.store.url)
    for leg, notice_s in ((1, 20.0), (2, 0.0)):
        prefix = f"{places.checkpoints(run)}{leg:06d}/"
        eventually(partial(made.store.list_after, prefix), within_s=300)
        provider.interrupt([f"local-{run}-{leg}-0"], notice_s=notice_s)
    state = made.over(run, within_s=300)
    log = made.log(run).decode()
    assert len(state.requests) == 3
    assert "resuming from step" in log  # what a machine without notice said last is lost
    assert re.search(r"ends after step (\d+); step \1 is saved", log)
    done = subprocess.run(
        [sys.executable, script], cwd=alone, env=made.env, capture_output=True, text=True
    )
    assert weights(log) == weights(done.stdout)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery(*MODULES.values())
    yield made
    made.close()


@pytest.mark.parametrize(
    ("framework", "options"),
    and_long([("accelerated", "--stream --workers 2")], [("hf", "--stream")]),
)
def test_streams(nursery: Nursery, tmp_path: Path, framework: str, options: str) -> None:
    module = MODULES[framework]
    whole, broken = (Training(nursery, tmp_path / name, module) for name in ("whole", "broken"))
    words = ("--every-steps", "3", *options.split())
    whole.start(*words).done()
    broken.start(*words, "--step-s", "0.05").has_saved(5).at(11).kill()
    assert broken.start(*words).done().begun() > 0
    assert differ(whole, broken) == []


def test_what_is_refused(nursery: Nursery, tmp_path: Path) -> None:
    """Streams under Lightning; and another number of processes, but not by Accelerate."""
    stream = Training(nursery, tmp_path / "stream", MODULES["lightning"]).start("--stream")
    assert stream.codes() == [1]
    assert "data without a length is not supported" in stream.log()
    for framework in ("hf", "accelerated"):
        training = Training(nursery, tmp_path / framework, MODULES[framework])
        training.start("--epochs", "1", world=2).done()
        other = training.start("--epochs", "2")
        if framework == "hf":
            assert other.codes() == [1]
            assert "is of 2 processes and there are 1" in other.log()
        else:
            assert other.done().begun() == 13
            assert other.step() == 13 + 26
