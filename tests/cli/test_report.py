"""`tradewind report`, of made-up runs and of a real one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_run import home as real_home
from tests.eventually import eventually
from tests.web.test_page_text import Page
from tradewind import store as stores
from tradewind.journal import runs_store
from tradewind.model import places

__all__ = ["real_home"]

EXAMPLES = str(Path(__file__).parents[2] / "examples" / "store")

JOB = """
import json, os, signal, sys, time
from tradewind import store as stores
from tradewind.model import places
from tradewind.model import places

store = stores.open(os.environ["TRADEWIND_STORE"])
run, leg = os.environ["TRADEWIND_RUN"], int(os.environ["TRADEWIND_LEG"])
resume = os.environ["TRADEWIND_RESUME"]
step = int(resume.rsplit("/", 1)[1].removesuffix(".json")) if resume else 0
with open(os.environ["TRADEWIND_METRICS"], "a", buffering=1) as metrics:
    metrics.write(chr(10) if step else "")
    while step < 80:
        step += 1
        metrics.write(json.dumps({"step": step, "loss": 100 - step, "leg": leg}) + chr(10))
        if step % 20 == 0:
            store.create(places.checkpoint(run, leg, step), b"{}")
        if step == 30 and not os.path.exists("once"):
            open("once", "w").close()
            metrics.write('{"step": 31, "lo')
            metrics.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if step == 70 and leg == 1:
            print("waits", flush=True)
            time.sleep(600)
"""


def tradewind(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def metrics_of(run: str) -> str:
    store = stores.open()
    keys = list(store.list_after(places.metrics(run)))
    return b"".join(store.get_many(keys)).decode()


def test_in_a_terminal_as_json_and_as_a_page(cli: Cli, tmp_path: Path) -> None:
    shown = cli("report", "run-0199", "--store", EXAMPLES).out
    assert "Done in 8h 59m for $231; on demand alone would have cost $447 (48% saved)." in shown
    assert "leg 3" in shown
    assert "2.636 to 1.108, at best 1.067" in shown
    told = cli("report", "run-0199", "--store", EXAMPLES, "--json").json
    assert (told["state"], len(told["legs"]), told["money"]["micros"]) == (
        "succeeded", 3, 230_919_000,
    )  # fmt: skip
    assert round(told["seconds"]["all"] / 3600, 1) == 9.0
    path = tmp_path / "deep" / "run.html"
    ran = cli("report", "run-0199", "--store", EXAMPLES, "--html", str(path))
    assert (ran.code, ran.out) == (0, "")
    assert f"written: {path}" in ran.err
    assert "Done in 8h 59m" in Page(path.read_text()).text


def test_what_cannot_be(cli: Cli, tmp_path: Path) -> None:
    ran = cli("report", "nobody", "--store", EXAMPLES)
    assert (ran.code, "there is no run 'nobody'" in ran.err) == (3, True)
    (tmp_path / "file").write_text("")
    ran = cli(
        "report", "run-0199", "--store", EXAMPLES, "--html", str(tmp_path / "file" / "x.html")
    )
    assert ran.code == 5
    assert "cannot be written" in ran.err


@pytest.mark.slow
def test_metrics_of_a_job_that_is_killed_and_moved(real_home: Path, tmp_path: Path) -> None:
    """Killed in place in the middle of a line, then interrupted: one curve, each step once."""
    place = tmp_path / "job"
    place.mkdir()
    (place / "job.py").write_text(JOB)
    (place / "work.yaml").write_text(
        "name: count\nwork: {hours: 1, on: 1xA100-80GB}\nrun: {command: python job.py}\n"
    )
    work = str(place / "work.yaml")
    run = json.loads(tradewind("run", work, "--local", "--yes", "--detach", "--json"))["run"]
    eventually(lambda: "waits" in tradewind("logs", run), within_s=60)
    # What only the machine has, a short notice would lose.
    eventually(lambda: '"step": 70' in metrics_of(run), within_s=60)
    tradewind("interrupt", run, "--notice", "1s")
    eventually(lambda: runs_store.load(stores.open(), run).state.phase == "closed", within_s=60)
    told = json.loads(tradewind("report", run, "--json"))
    assert told["state"] == "succeeded"
    loss = told["curves"][0]
    assert [bucket[0] for bucket in loss["buckets"]] == list(range(1, 81))
    assert [bucket[2] for bucket in loss["buckets"]] == list(range(99, 19, -1))
    legs = next(curve for curve in told["curves"] if curve["name"] == "leg")
    assert [bucket[2] for bucket in legs["buckets"]] == [1.0] * 60 + [2.0] * 20
    assert "1 line of the job's metrics could not be read" in told["notes"][0]
    assert [kept["step"] for kept in told["checkpoints"]] == [20, 40, 60, 80]
    assert [leg["cause"] for leg in told["legs"]] == ["interrupted", "finished"]
    assert told["rehearsal"]["kind"] == ""
