"""The example trains under `tradewind run` on machines that are taken away: its weights are those
of a training that nothing happened to."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cli.test_run import home, over, tradewind
from tests.eventually import eventually
from tradewind import store as stores
from tradewind.journal import runs_store
from tradewind.model import places
from tradewind.providers.local.provider import LocalProvider

pytestmark = pytest.mark.slow

__all__ = ["home"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiny-gpt"
OPTIONS = "--steps 400 --batch 4 --workers 1"


def weights(text: str) -> str:
    found = re.search(r"^weights ([0-9a-f]{16})$", text, re.M)
    assert found, text
    return found[1]


def copied(folder: Path) -> Path:
    shutil.copytree(EXAMPLE, folder)
    work = folder / "work.yaml"
    text = work.read_text().replace("python train.py", f"python train.py {OPTIONS}")
    work.write_text(text.replace("every: 10s", "every: 1s"))
    return folder


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The same training with nothing around it, meanwhile."""
    with subprocess.Popen(
        [sys.executable, "train.py", *OPTIONS.split()],
        cwd=copied(tmp_path / "alone"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_taken_machines_make_no_difference(
    home: Path, tmp_path: Path, alone: subprocess.Popen[str]
) -> None:
    place = copied(tmp_path / "job")
    words = ("--local", "--yes", "--detach", "--json")
    run = json.loads(tradewind("run", str(place / "work.yaml"), *words))["run"]
    store = stores.open()
    provider = LocalProvider(home, store.url)
    # The first machine is taken with notice, the second without.
    for leg, notice_s in ((1, 10.0), (2, 0.0)):
        saved = f"{places.checkpoints(run)}{leg:06d}/"
        eventually(partial(store.list_after, saved))
        provider.interrupt([f"local-{run}-{leg}-0"], notice_s=notice_s)
    eventually(lambda: over(run), within_s=120)
    log = tradewind("logs", run)
    assert len(runs_store.load(store, run).state.requests) == 3
    assert "resuming from step" in log, log
    assert re.search(r"ends after step (\d+); step \1 is saved", log)
    expected, _ = alone.communicate(timeout=120)
    assert weights(log) == weights(expected)
    assert "succeeded" in tradewind("ps", "--all")
