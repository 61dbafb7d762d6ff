"""Trainings on machines of EC2 that are real hosts: launched, booted by user-data, fed from a real
S3 server, taken away, bought again elsewhere, finished, paid, and gone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.system.books import is_paid_and_gone
from tests.system.rented import STORE, Rented, a_world
from tests.system.test_torchrun import torchrun
from tests.torch.test_tiny_gpt import EXAMPLE, weights
from tradewind.base.errors import NotFound
from tradewind.model.event import LegUp
from tradewind.model.run import Machine
from tradewind.store import meter

pytestmark = pytest.mark.system
STEPS = 400


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Rented]:
    with a_world(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The weights of the same training by two processes of this computer, left alone."""
    import shutil

    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("alone") / "job")
    assert torchrun(folder, "train.py", "--steps", str(STEPS)).wait(300) == 0
    return weights((folder / "log").read_text())


def up(world: Rented, run_id: str, leg: int) -> bool:
    commits = world.loaded(run_id).commits
    return any(isinstance(e, LegUp) and e.leg == leg for c in commits for e in c.events)


def machines_of(world: Rented, run_id: str) -> list[Machine]:
    return [each.machine for each in world.loaded(run_id).state.machines.values()]


@pytest.mark.long
def test_controllers_are_killed_again_and_again(world: Rented, undisturbed: str) -> None:
    run_id = world.submit(STEPS)
    world.kill_controllers(run_id)
    last = world.watch(run_id, pass_s=0.5)
    world.finished(run_id)
    last.wait(90)
    assert weights(world.output(run_id)) == undisturbed
    assert len(machines_of(world, run_id)) == 2  # nothing was bought twice
    is_paid_and_gone(world, run_id)


@pytest.mark.long
def test_two_controllers_and_an_answer_that_is_lost(world: Rented, undisturbed: str) -> None:
    world.cloud.lose("RunInstances", count=4)
    run_id = world.submit(STEPS)
    both = [world.watch(run_id, name) for name in ("one", "two")]
    eventually(lambda: world.saved(run_id), within_s=240)
    for name in world.loaded(run_id).state.claimed:
        world.cloud.rebalance(name.removeprefix("aws-us-east-1-"))
    eventually(lambda: any(beat.at_risk for beat in world.beats(run_id)), within_s=60)
    world.finished(run_id)
    for controller in both:
        controller.wait(90)
    assert weights(world.output(run_id)) == undisturbed
    assert len(machines_of(world, run_id)) == 2
    is_paid_and_gone(world, run_id)


@pytest.mark.long
def test_a_store_that_fails_now_and_then(tmp_path: Path, undisturbed: str) -> None:
    with a_world(tmp_path, share=0.05) as world:
        run_id = world.submit(STEPS)
        controller = world.watch(run_id)
        world.finished(run_id)
        controller.wait(90)
        assert weights(world.output(run_id)) == undisturbed
        is_paid_and_gone(world, run_id)


def test_a_machine_that_cannot_begin_says_why(world: Rented) -> None:
    """And ends itself. Its kit is gone before it comes up."""
    from tradewind.model import places

    run_id = world.submit(STEPS, nodes=1)
    controller = world.watch(run_id)
    eventually(lambda: world.loaded(run_id).state.machines, within_s=60)
    for key in world.store.list_after("kits/"):
        world.store.delete(key)
    key = places.first_log(run_id, 1, 0)

    def words() -> str:
        try:
            return world.store.get(key).decode()
        except NotFound:
            return ""

    said = eventually(words, within_s=120)
    assert "the kit: HTTP Error 404" in said
    (name, *_) = world.cloud.bill()["machines"]
    eventually(lambda: world.cloud.state(name["id"]) == "terminated", within_s=60)
    controller.kill()
    controller.wait()


def test_by_the_command_line(world: Rented, tmp_path: Path) -> None:
    """Planned, joined with what the account can have, rented, finished, shown and paid."""
    import json
    import os
    import sys

    text = (EXAMPLE / "work.yaml").read_text()
    path = f"env: {{PATH: '{Path(sys.executable).parent}:/usr/bin:/bin'}}"
    text = text.replace("python train.py", f"python train.py --steps 100\n  {path}")
    (tmp_path / "work.yaml").write_text(text)
    env = os.environ | world.env | {"TRADEWIND_STORE": STORE}

    def tradewind(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tradewind", *words],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = ("--folder", str(EXAMPLE), "--on", "aws", "--region", "us-east-1", "--yes")
    told = json.loads(tradewind("run", str(tmp_path / "work.yaml"), *where, "--json"))
    assert told["outcome"] == "succeeded"
    assert "spot in aws/use1-az" in tradewind("show", told["run"])
    assert "weights" in tradewind("logs", told["run"])
    cost = json.loads(tradewind("cost", "--json"))
    (row,) = cost["lines"]
    assert row["what"] == told["run"]
    assert row["cost_usd"] > 0
    # What this computer has asked, all of its processes together, is what S3 has answered it.
    asked = meter.total(Path(world.env["TRADEWIND_HOME"]) / "used", "runs")
    assert asked is not None
    counted = world.cloud.bill()["s3"][""]
    for name in ("writes", "reads", "bytes_in", "bytes_out"):
        assert getattr(asked, name) == counted[name], name
    assert 0 < cost["this_computer"]["writes"] <= asked.writes
    findings = json.loads(tradewind("doctor", "aws", "--json"))["findings"]
    wrong = [each["what"] for each in findings if each["level"] != "ok"]
    assert wrong == ["the bucket runs takes requests without TLS"]  # as it does here
    assert world.cloud.left() == []
