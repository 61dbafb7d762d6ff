"""The examples, as their pages say: killed in the middle, they end with the weights of a training
that nothing happened to."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cases import and_long
from tests.eventually import eventually
from tests.torch.test_tiny_gpt import weights

pytestmark = pytest.mark.system
ROOT = Path(__file__).parents[2]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")

OFTEN = ("resnet, two processes",)
CASES = {
    "resnet": ("resnet", (), "--epochs 2 --pictures 1500"),
    "resnet, two processes": ("resnet", TORCHRUN, "--epochs 2 --pictures 1500"),
    "finetune-lora": ("finetune-lora", (), "--steps 80"),
    "finetune-lora, two processes": ("finetune-lora", TORCHRUN, "--steps 80"),
    "big-model, sharded": ("big-model", TORCHRUN, "--steps 60"),
    "big-model, in stages": ("big-model", TORCHRUN, "--steps 60 --spread pipeline"),
}


class Example:
    def __init__(self, name: str, folder: Path, launcher: tuple[str, ...], options: str) -> None:
        self.folder = shutil.copytree(ROOT / "examples" / name, folder)
        cadence = folder / "cadence.json"
        cadence.write_text(json.dumps({"every_s": 1.0}))
        self._command = [sys.executable, *launcher, "train.py", *options.split()]
        self._env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "TRADEWIND_CADENCE": str(cadence),
            "HF_HUB_OFFLINE": "1",
        }

    def start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                self._command,
                cwd=self.folder,
                env=self._env,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def run(self) -> str:
        process = self.start()
        assert process.wait(600) == 0, self.log()
        return self.log()

    def saved(self) -> bool:
        return any((self.folder / "checkpoints" / "checkpoints").glob("**/*.json"))

    def kill(self) -> None:
        """All at once: torchrun's workers are in groups of their own."""
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (each / "cwd").readlink() == self.folder:
                    os.kill(int(each.name), signal.SIGKILL)

    def log(self) -> str:
        return (self.folder / "log").read_text()


@pytest.mark.parametrize("case", and_long(OFTEN, CASES))
def test_killed_examples_end_as_if_nothing_had_happened(case: str, tmp_path: Path) -> None:
    name, launcher, options = CASES[case]
    whole = Example(name, tmp_path / "whole", launcher, options).run()
    killed = Example(name, tmp_path / "killed", launcher, options)
    process = killed.start()
    eventually(killed.saved, within_s=180)
    assert process.poll() is None, "it was over before it could be killed"
    killed.kill()
    assert process.wait(30) == -signal.SIGKILL
    log = killed.run()
    assert re.search(r"resuming from step [1-9]", log), log
    assert weights(log) == weights(whole)
