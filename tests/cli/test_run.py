"""Runs by real processes of this computer, from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import on_a_terminal
from tests.eventually import eventually
from tradewind import store as stores
from tradewind.journal import journal, runs_store
from tradewind.model.event import LaunchRefused, LegOver, LegRequested
from tradewind.providers.local.provider import LocalProvider

pytestmark = pytest.mark.slow

JOB = """
import json, os, signal, sys, time
from pathlib import Path
from tradewind import store as stores
from tradewind.model import places

store = stores.open(os.environ["TRADEWIND_STORE"])
run, leg = os.environ["TRADEWIND_RUN"], int(os.environ["TRADEWIND_LEG"])
resume = os.environ["TRADEWIND_RESUME"]
step = int(resume.rsplit("/", 1)[1].removesuffix(".json")) if resume else 0
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
print("from", step, flush=True)
while step < STEPS:
    time.sleep(0.05)
    step += 1
    print("step", step, flush=True)
    if step % 20 == 0 or asked:
        store.create(places.checkpoint(run, leg, step), b"{}")
    if asked:
        sys.exit(1)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = tmp_path / "home"
    monkeypatch.setenv("TRADEWIND_HOME", str(home))
    monkeypatch.delenv("TRADEWIND_NOW", raising=False)
    yield home
    provider = LocalProvider(home, "memory://")
    provider.terminate([m.machine_id for m in provider.list_machines().machines])


def folder(tmp_path: Path, steps: int, command: str = "python job.py") -> Path:
    place = tmp_path / "job"
    place.mkdir()
    (place / "job.py").write_text(JOB.replace("STEPS", str(steps)))
    (place / "work.yaml").write_text(
        f"name: count\nwork: {{hours: 1, on: 1xA100-80GB}}\nrun: {{command: {command}}}\n"
    )
    return place


def tradewind(*arguments: str, check: int | None = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", *arguments], capture_output=True, text=True, timeout=120
    )
    assert check is None or done.returncode == check, done.stdout + done.stderr
    return done.stdout if not check else done.stdout + done.stderr


def newest() -> str:
    return runs_store.run_ids(stores.open())[-1]


def over(run: str) -> bool:
    return runs_store.load(stores.open(), run).state.phase == "closed"


def printed(run: str) -> list[str]:
    return tradewind("logs", run).splitlines()


def test_a_job_runs_to_its_end(home: Path, tmp_path: Path) -> None:
    place = folder(tmp_path, 30)
    out = tradewind("run", str(place / "work.yaml"), "--local", "--yes", "--project", "p")
    assert "leg 1 is up" in out
    assert "done; 1 leg, $0.00" in out
    run = newest()
    assert printed(run) == ["from 0", *(f"step {n}" for n in range(1, 31))]
    assert "succeeded" in tradewind("ps", "--all")
    assert "no runs are running" in tradewind("ps")
    assert "leg 1" in tradewind("show", run[:8])
    assert "count" in tradewind("cost")
    assert "has ended already: done" in tradewind("stop", run)
    told = json.loads(tradewind("stop", run, "--json"))
    assert (told["run"], told["asked"], told["outcome"]) == (run, False, "succeeded")
    lines = [json.loads(line) for line in tradewind("logs", run, "--json").splitlines()]
    assert lines[1] == {"leg": 1, "rank": 0, "offset": 7, "text": "step 1"}
    assert [line["text"] for line in lines] == printed(run)
    told = [json.loads(line) for line in tradewind("watch", run, "--json").splitlines()]
    assert told[0]["event"]["type"] == "submitted"
    assert told[-1] == {"run": run, "outcome": "succeeded"}
    assert "cannot be resumed" in tradewind("resume", run, check=2)
    assert not list((home / "local" / "machines").glob("*/notice.json"))


def test_one_run_for_each_value(home: Path, tmp_path: Path) -> None:
    place = folder(tmp_path, 1, "sh -c 'echo LR is $LR'")
    work = str(place / "work.yaml")
    assert "add --detach" in tradewind("run", work, "--local", "--sweep", "LR=1,2", check=2)
    told = tradewind(
        *("run", work, "--local", "--sweep", "LR=1,2", "--tag", "team=vision"),
        *("--yes", "--detach", "--json"),
    )
    started = [json.loads(line) for line in told.splitlines()]
    assert [run["tags"] for run in started] == [{"team": "vision", "LR": value} for value in "12"]
    for run in started:
        tradewind("watch", run["run"])
        assert printed(run["run"]) == [f"LR is {run['tags']['LR']}"]


def test_interruptions_and_dead_controllers_are_survived(home: Path, tmp_path: Path) -> None:
    """No step of what is saved is done twice, whoever is killed."""
    place = folder(tmp_path, 250)
    told = json.loads(
        tradewind("run", str(place / "work.yaml"), "--local", "--yes", "--detach", "--json")
    )
    run = told["run"]
    eventually(lambda: len(printed(run)) > 30)
    # The controller dies; the job does not notice, and another takes over.
    for pid in Path("/proc").glob("[0-9]*"):
        try:
            words = (pid / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"watch" in words and run.encode() in words:
            os.kill(int(pid.name), signal.SIGKILL)
    taken = json.loads(tradewind("interrupt", run, "--notice", "3s", "--json"))
    assert taken["machines"] == [f"local-{run}-1-0"]
    assert taken["notice_s"] == 3
    watcher = subprocess.Popen(
        [sys.executable, "-m", "tradewind", "watch", run], stdout=subprocess.DEVNULL
    )
    eventually(lambda: over(run), within_s=90)
    assert watcher.wait(60) == 0
    commits = journal.read(stores.open(), run)
    events = [event for commit in commits for event in commit.events]
    assert [e.cause for e in events if isinstance(e, LegOver)] == ["interrupted", "finished"]
    assert sum(isinstance(e, LegRequested) for e in events) == 2
    lines = printed(run)
    again = int(lines[[n for n, line in enumerate(lines) if line.startswith("from")][1]][5:])
    assert again > 30
    assert lines[-1] == "step 250"
    assert f"step {again + 1}" in lines


@pytest.mark.parametrize(
    ("budget", "most"),
    [
        (None, "$11.08 for machines that hang: they end after 3h 10m"),
        (5_000_000, "$5.00, its budget"),
    ],
)
def test_what_rented_machines_may_cost(
    capsys: pytest.CaptureFixture[str], budget: int | None, most: str
) -> None:
    """Half as much again as planned."""
    from dataclasses import replace as changed

    from msgspec.structs import replace

    from tests.lifecycle.builders import SPEC, WAY
    from tests.planning.test_document import PLAN
    from tradewind.base.units import Micros
    from tradewind.cli.runs.run import _may_cost

    plan = changed(PLAN, cost=Micros(2_000_000))
    way = replace(WAY, price=3_500_000)
    _may_cost(plan, replace(SPEC, ways=(way,), budget=budget, predicted_cost=3_000_000))
    price, limit = capsys.readouterr().out.splitlines()[:2]
    assert price == "  price     $3.50 an hour now, with disks and addresses: about $3.00 in all"
    assert limit.startswith(f"  at most   {most}")


def test_a_job_that_fails_says_why(home: Path, tmp_path: Path) -> None:
    place = folder(tmp_path, 1, command="echo broken; exit 3")
    out = tradewind("run", str(place / "work.yaml"), "--local", "--yes", check=1)
    assert "failed" in out
    assert "broken" in out
    assert "exit code 3" in out


def test_stop_and_resume(home: Path, tmp_path: Path) -> None:
    place = folder(tmp_path, 400)
    tradewind("run", str(place / "work.yaml"), "--local", "--yes", "--detach")
    run = newest()
    eventually(lambda: len(printed(run)) > 10)
    assert "not over yet" in tradewind("resume", run, check=2)
    assert "stopped by its user" in tradewind("stop", run, check=None)
    reached = len([line for line in printed(run) if line.startswith("step")])
    assert reached < 400
    tradewind("resume", run, "--detach")
    eventually(lambda: any(line == f"from {reached}" for line in printed(run)))
    tradewind("stop", run, "--no-wait")
    eventually(lambda: over(run), within_s=60)


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        ("run nowhere.yaml --local --yes", "no file nowhere.yaml", 5),
        ("run {work} --yes", "no target: add --local, or set up a cloud", 2),
        ("run {work} --nodes 2 --yes", "go with --local", 2),
        ("run {work} --trace t.csv --yes", "go with --local", 2),
        ("run {work} --local --chaos 9s --trace t.csv --yes", "exclude each other", 2),
        ("run {work} --local --trace-speed 2 --yes", "goes with --trace", 2),
        ("run {work} --local --trace t.csv --trace-speed 0 --yes", "at 0.0 times its speed", 2),
        ("run {work} --local --trace nowhere.csv --yes", "no file nowhere.csv", 3),
        ("run {work} --local", "add --yes", 2),
        ("run {work} --local --yes --tag x", "NAME=VALUE", 2),
        ("run {work} --local --yes --tag x=1 --tag x=2", "--tag x is there twice", 2),
        ("show nothing", "no run 'nothing'", 3),
        ("logs nothing", "no run 'nothing'", 3),
        ("stop nothing", "no run 'nothing'", 3),
        ("interrupt nothing", "no run 'nothing'", 3),
        ("watch nothing", "no run 'nothing'", 3),
    ],
)
def test_misuse(home: Path, tmp_path: Path, arguments: str, words: str, code: int) -> None:
    work = folder(tmp_path, 1) / "work.yaml"
    assert words in tradewind(*arguments.format(work=work).split(), check=code)


def test_a_workload_without_a_command(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "work.yaml"
    path.write_text("name: count\nwork: {hours: 1, on: 1xA100-80GB}\n")
    assert "what to run" in tradewind("run", str(path), "--local", "--yes", check=2)
    assert runs_store.run_ids(stores.open()) == []


def test_ticks_move_a_run_forward(home: Path, tmp_path: Path) -> None:
    """As cron does: each is a process of its own."""
    place = folder(tmp_path, 5)
    from tradewind.api import submit

    spec = submit.spec_of(submit.wanted(place / "work.yaml"), local=True)
    run = submit.submit(stores.open(), spec, place)
    eventually(lambda: bool(tradewind("tick")) and over(run), within_s=90)
    assert json.loads(tradewind("tick", "--json"))["troubles"] == {}


@pytest.mark.system
def test_a_trace_is_replayed(home: Path, tmp_path: Path) -> None:
    """Refused while there was no capacity, taken when it ended, and finished all the same."""
    place = folder(tmp_path, 200)
    work = place / "work.yaml"
    work.write_text(work.read_text() + "limits: {markets: [spot]}\n")
    table = tmp_path / "traces.csv"
    table.write_text("trace_id,zone,nodes,gap_seconds,rle\nt,z,1,60,0x5 1x45 0x5 1x9999\n")
    told = json.loads(
        tradewind(
            "run", str(work), "--local", "--yes", "--json", "--trace", str(table),
            "--trace-speed", "60",
        )
    )  # fmt: skip
    assert told["outcome"] == "succeeded"
    commits = journal.read(stores.open(), told["run"])
    events = [event for commit in commits for event in commit.events]
    refused = [event for event in events if isinstance(event, LaunchRefused)]
    assert {event.kind for event in refused} == {"no_capacity"}
    assert "t)" in refused[0].reason


@pytest.mark.system
def test_whoever_comes_back_sees_how_it_stands(home: Path, tmp_path: Path) -> None:
    """Though another process looks after the run, and ours stands back."""
    place = folder(tmp_path, 200)
    tradewind("run", str(place / "work.yaml"), "--local", "--yes", "--detach")
    run = newest()
    eventually(lambda: len(printed(run)) > 5)
    shown = on_a_terminal(home, "watch", run)
    assert "leg 1 is up" in shown
    assert "leg 1 · working · " in shown
    assert "done; 1 leg" in shown


def test_what_git_keeps_back_is_told_before_anything_is_spent(home: Path, tmp_path: Path) -> None:
    place = folder(tmp_path, 1)
    (place / "data").mkdir()
    (place / "data" / "train.bin").write_bytes(b"x" * 3000)
    (place / "out").mkdir()
    (place / "out" / "best.bin").write_bytes(b"x" * 5000)  # an output, which no job needs
    (place / ".gitignore").write_text("*.bin\n")
    (place / "work.yaml").write_text(
        (place / "work.yaml").read_text().replace("job.py}", "job.py, outputs: [out]}")
    )
    work = str(place / "work.yaml")
    out = tradewind("run", work, "--local", check=2)  # and nobody is there to be asked
    assert "not sent  data/train.bin (3kB): git ignores them" in out
    assert "include: [data/train.bin]" in out
    assert not runs_store.run_ids(stores.open())
    assert "Not sent with the job, because git ignores them: data/train.bin" in tradewind(
        "plan", work
    )
    (place / "work.yaml").write_text(
        "name: count\nwork: {hours: 1, on: 1xA100-80GB}\n"
        "run: {command: wc -c data/train.bin, include: [data/train.bin],"
        " outputs: [out]}\n"
    )
    out = tradewind("run", work, "--local", "--yes")
    assert "not sent" not in out
    assert printed(newest()) == ["3000 data/train.bin"]


OWN = """offers:
  - {name: box, provider: local, accelerator: 1xA100-80GB, on_demand: $1.20}
"""


def test_a_command_on_machines_that_are_named(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a file, found by its name, and not tried again where that would change nothing."""
    home.mkdir()
    (home / "account.yaml").write_text(OWN)
    (tmp_path / "job").mkdir()
    monkeypatch.chdir(tmp_path / "job")
    gpus = ("run", "--gpus", "A100-80GB", "--type", "box", "--local", "--yes", "--name", "mine")
    out = tradewind(*gpus, "--env", "WHO=me", "echo hello $WHO")
    assert "nobody has said how long it takes" in out
    assert ": $1.20 an hour" in out
    assert tradewind("logs", "mine") == "hello me\n"
    out = tradewind(*gpus, "no-such-command", check=1)
    assert "ended (job hopeless): the job has failed with exit code 127" in out
    assert out.count("no-such-command: not found") == 1
    out = tradewind(*gpus, "--retries", "1", "echo again; exit 3", check=1)
    assert tradewind("logs", "mine").count("again") == 2
    assert len(tradewind("status", "mine").splitlines()) == 4


def test_a_plan_without_spot_is_interrupted_all_the_same(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "account.yaml").write_text(OWN)
    (tmp_path / "job").mkdir()
    monkeypatch.chdir(tmp_path / "job")
    gpus = ("run", "--gpus", "A100-80GB", "--type", "box", "--local", "--yes", "--chaos", "1s")
    out = tradewind(*gpus, "test $TRADEWIND_LEG -gt 1 || sleep 600")
    assert "machines on demand are interrupted too" in out
    assert "leg 1 ended (interrupted)" in out
    assert "done; " in out
