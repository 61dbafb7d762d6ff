"""Trainings by the real torchrun, interrupted as it is; and more ways to be killed than `make test`
has time for."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cases import and_long
from tests.eventually import eventually
from tests.supervisor.machines import lives
from tests.system.chain import Chain
from tests.torch.lives import Nursery, Training, differ
from tests.torch.test_session import killed
from tests.torch.test_tiny_gpt import EXAMPLE, weights

pytestmark = pytest.mark.system
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


def torchrun(folder: Path, *arguments: str, many: int = 2) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    with (folder / "log").open("a") as log:
        return subprocess.Popen(
            [*command, "--nproc-per-node", str(many), *arguments],
            cwd=folder,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )


def test_sigterm_to_torchrun_saves_and_goes_on(tmp_path: Path) -> None:
    options = ("train.py", "--steps", "400", "--batch", "4", "--workers", "1")
    whole, asked = (shutil.copytree(EXAMPLE, tmp_path / name) for name in ("whole", "asked"))
    alone = torchrun(whole, *options)
    first = torchrun(asked, *options)
    log = asked / "log"
    eventually((asked / "checkpoints" / "metrics.jsonl").exists, within_s=180)
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) != 0
    found = re.search(r"ends after step (\d+); step \1 is saved", log.read_text())
    assert found, log.read_text()
    assert torchrun(asked, *options).wait(120) == 0
    assert f"resuming from step {found[1]} " in log.read_text()
    assert alone.wait(120) == 0
    assert weights(log.read_text()) == weights((whole / "log").read_text())


@pytest.mark.parametrize("many", [1, 2])
def test_torchrun_killed_alone_ends_its_workers(tmp_path: Path, many: int) -> None:
    """It can tell them nothing, and nobody would watch them any more. One rank saves first; several
    agree on a save over a store that has died with torchrun."""
    here = shutil.copytree(EXAMPLE, tmp_path / "here")
    agent = torchrun(here, "train.py", "--steps", "100000", "--batch", "4", many=many)
    eventually((here / "checkpoints" / "metrics.jsonl").exists, within_s=180)
    workers = children(agent.pid)
    assert len(workers) == many
    agent.kill()
    agent.wait()
    try:
        eventually(lambda: not any(map(lives, workers)), within_s=60)
    finally:
        for pid in filter(lives, workers):
            os.kill(pid, signal.SIGKILL)
    log = (here / "log").read_text()
    assert "torchrun, which started this, is gone" in log
    saved = re.search(r"ends after step (\d+); step \1 is saved", log)
    assert many > 1 or saved, log


def children(parent: int) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if each.joinpath("stat").read_text().rpartition(")")[2].split()[1] == str(parent):
                found.append(int(each.name))
        except OSError:  # it has ended
            continue
    return found


def test_a_rank_that_is_killed_under_torchrun(tmp_path: Path) -> None:
    """torchrun ends the others, and is started again."""
    import torch

    script = str(ROOT / "tests" / "torch" / "train.py")
    options = ("--kind", "fsdp", "--every-steps", "10", "--steps", "60")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    alone = torchrun(whole, script, str(whole), *options)
    run = torchrun(broken, script, str(broken), *options, "--step-s", "0.05")
    saved = broken / "checkpoints" / "checkpoints"
    eventually(lambda: list(saved.glob("*/*.json")), within_s=120)
    ranks = sorted((broken / "seen").iterdir())
    os.kill(int(random.Random(1).choice(ranks).name.split("-")[1]), signal.SIGKILL)
    assert run.wait(60) != 0
    assert torchrun(broken, script, str(broken), *options).wait(180) == 0
    assert "resuming from step" in (broken / "log").read_text()
    assert alone.wait(180) == 0
    first, second = (torch.load(folder / "weights.pt") for folder in (whole, broken))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_two_ranks_by_tradewind_run_and_taken_machines(
    chain: Callable[..., Chain], tmp_path: Path
) -> None:
    from tradewind.model import places
    from tradewind.providers.local.provider import LocalProvider

    made = chain()
    options = "--steps 300 --batch 8"
    job, alone = (shutil.copytree(EXAMPLE, tmp_path / name) for name in ("job", "alone"))
    work = job / "work.yaml"
    command = f"torchrun --nproc-per-node 2 train.py {options}"
    text = work.read_text().replace("python train.py", command)
    work.write_text(text.replace("every: 10s", "every: 2s"))
    other = torchrun(alone, "train.py", *options.split())
    run = made.detach(work)
    provider = LocalProvider(made.home, made.store.url)
    for leg, notice_s in ((1, 15.0), (2, 0.0)):
        prefix = f"{places.checkpoints(run)}{leg:06d}/"
        eventually(partial(made.store.list_after, prefix), within_s=180)
        provider.interrupt([f"local-{run}-{leg}-0"], notice_s=notice_s)
    state = made.over(run, within_s=240)
    log = made.log(run).decode()
    assert len(state.requests) == 3
    assert re.search(r"ends after step (\d+); step \1 is saved", log)
    assert other.wait(120) == 0
    assert weights(log) == weights((alone / "log").read_text())


@pytest.mark.parametrize(
    ("options", "world"),
    and_long(
        [
            ("--data weighted --amp bf16 --workers 1", 1),
            ("--kind ddp --data stream --workers 2", 2),
            ("--kind fsdp --workers 2 --amp bf16", 3),
        ],
        [
            ("--data stream --workers 2", 1),
            ("--data stateless", 1),
            ("--kind ddp --accumulate 4 --amp bf16", 3),
            ("--kind ddp --powersgd --accumulate 2", 2),
        ],
    ),
)
def test_more_ways(nursery: Nursery, tmp_path: Path, options: str, world: int) -> None:
    whole, broken = Training(nursery, tmp_path / "whole"), Training(nursery, tmp_path / "broken")
    words = ("--every-steps", "5", "--steps", "60", *options.split())
    whole.start(*words, world=world).done()
    killed(broken, *words, world=world, kills=3)
    assert differ(whole, broken) == []


def test_many_moves(nursery: Nursery, tmp_path: Path) -> None:
    """From two ranks to one, to three, to two, sharded and not, killed each time."""
    moved = Training(nursery, tmp_path / "moved")
    options = tuple("--epochs 3 --samples 127 --batch 3 --every-steps 3 --layernorm".split())
    saved = 0
    for kind, world in (("ddp", 2), ("plain", 1), ("fsdp", 3), ("ddp", 2), ("fsdp", 2)):
        life = moved.start(*options, "--kind", kind, "--step-s", "0.04", world=world)
        life.has_saved(saved + 1).kill()
        saved = life.saved()[-1]
    moved.start(*options).done()
    assert moved.seen() == Counter((epoch, index) for epoch in range(3) for index in range(127))
