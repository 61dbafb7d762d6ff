"""What people type who come from SkyPilot: commands, machines that are named, variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.conftest import Cli
from tradewind.base.errors import InvalidValue, TradewindError
from tradewind.cli.app import COMMANDS, ELSEWHERE, SAME
from tradewind.cli.runs import runoptions
from tradewind.model import Workload

NOTHING: dict[str, Any] = {
    "gpus": None, "type": None, "cpus": None, "ram": None, "disk": None, "deadline": None,
    "budget": None, "market": (), "env": (), "env_file": (), "name": None, "retries": None,
    "image": None, "idle": None, "max_duration": None,
}  # fmt: skip


def asked(*words: str, nodes: int | None = None, local: bool = False, **given: Any) -> Workload:
    found = runoptions.asked(words, nodes, NOTHING | given, local).what
    assert isinstance(found, Workload)
    return found


def test_their_commands_do_the_same_or_say_what_does(cli: Cli) -> None:
    for theirs, ours in SAME.items():
        assert theirs not in COMMANDS
        assert cli(theirs, "--help").out.startswith(f"Usage: tradewind {ours} ")
    for theirs in ELSEWHERE:
        ran = cli(theirs, "x")
        assert ran.code == 2
        assert "`tradewind " in ran.err


@pytest.mark.parametrize("typed", ["doun", "downn", "tear", "sweap", "down-all"])
def test_nobody_is_led_to_what_removes_things(cli: Cli, typed: str) -> None:
    ran = cli(typed, "x")
    assert ran.code == 2
    assert "teardown" not in ran.err


def test_down_is_about_a_run_and_not_about_the_account(cli: Cli) -> None:
    ran = cli("down", "x")
    assert ran.code == 3
    assert "there is no run 'x'" in ran.err


def test_a_command_on_machines_that_are_named() -> None:
    work = asked("torchrun --nproc-per-node 8 train.py", gpus="H100:8", nodes=2, retries="0")
    assert work.machines is not None
    assert (work.machines.count, work.machines.nodes, work.name) == (8, 2, "train")
    assert work.run is not None
    assert (work.run.command, work.run.retries) == ("torchrun --nproc-per-node 8 train.py", 0)
    more = asked("python", "a b.py", cpus="4", name="mine", market=("on-demand,spot",), budget="$5")
    assert more.run is not None
    assert (more.run.command, more.name) == ("python 'a b.py'", "mine")
    assert more.limits.markets == ("on_demand", "spot")
    assert more.limits.budget == 5_000_000


def test_options_stand_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("name: a\ngpus: L4\nrun: {command: x, env: {A: '1', B: '2'}}\n")
    work = asked(str(file), gpus="A100-80GB:4", nodes=3, env=("B=3",), name="b", deadline="2h")
    assert work.machines is not None
    assert work.run is not None
    assert (work.machines.gpus, work.machines.nodes) == (("A100-80GB",), 3)
    assert work.run.env == {"A": "1", "B": "3"}
    assert (work.name, work.limits.within_s) == ("b", 7200)
    file.write_text("work: {on: 1xL4, hours: 1}\nrun: {command: x}\n")
    with pytest.raises(click.UsageError, match="--nodes goes with"):
        asked(str(file), nodes=2)
    assert asked(str(file), nodes=2, local=True).machines is None


def test_variables_from_here_and_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_HERE", "h")
    file = tmp_path / "env"
    file.write_text("# some\nexport A='x y'\nB=1=2\n\nC=\"q\"\n")
    work = asked("a", gpus="L4", env=("FROM_HERE", "B=9", "D="), env_file=(str(file),))
    assert work.run is not None
    assert work.run.env == {"A": "x y", "B": "9", "C": "q", "FROM_HERE": "h", "D": ""}


@pytest.mark.parametrize(
    ("words", "given", "told"),
    [
        (("python train.py",), {}, "on which machines"),
        (("python", "train.py"), {}, "on which machines"),
        (("a",), {"gpus": "L4", "env": ("NOT_THERE_AT_ALL",)}, "no value"),
        (("a",), {"gpus": "L4", "env": ("1A=2",)}, "NAME=VALUE"),
        (("a",), {"gpus": "L4", "env_file": ("nowhere",)}, "--env-file nowhere"),
        (("a",), {"gpus": "L5000"}, "--gpus: "),
        (("a",), {"gpus": "L4", "market": ("cheap",)}, "--market: "),
        (("a",), {"gpus": "L4", "budget": "much"}, "--budget: "),
        (("a",), {"gpus": "L4", "retries": "x"}, "--retries: "),
        (
            ("a",),
            {"gpus": "L4", "env": ("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789",)},
            "run.env",
        ),
    ],
)
def test_what_is_wrong_is_told_by_the_option(
    words: tuple[str, ...], given: dict[str, Any], told: str
) -> None:
    with pytest.raises(TradewindError) as caught:
        asked(*words, **given)
    assert told in caught.value.message
    assert "options" not in caught.value.message


def test_a_saved_plan_is_carried_out_as_it_is(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("gpus: L4\nrun: {command: x}\n")
    plan = str(tmp_path / "plan.json")
    shown = cli("plan", str(file), "--out", plan)
    assert shown.code == 0
    assert "nobody has said how long it takes" in shown.out
    assert "--why is for machines" in cli("plan", str(file), "--why", "g6.xlarge").err
    assert runoptions.asked((plan,), None, NOTHING, False).what == plan
    with pytest.raises(InvalidValue, match="--budget"):
        runoptions.asked((plan,), None, NOTHING | {"budget": "$5"}, False)


def test_it_says_what_stops_it_before_it_asks(cli: Cli, tmp_path: Path) -> None:
    ran = cli("run", "--gpus", "L4", "--folder", str(tmp_path), "--local", "true")
    assert "not a terminal, cannot ask" in ran.err
    assert "stops     when the job has made no step and used nothing for 30m" in ran.out
    assert "at most" in ran.out
