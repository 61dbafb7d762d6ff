"""An exported batch script on a real Slurm: asked to end, it saves, is put back into the queue, and
goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.export import asking
from tests.slurm.cluster import Slurm
from tradewind.export import folder, making
from tradewind.model import Job

pytestmark = pytest.mark.system

# Two ranks. In its first life each waits to be asked; in its second it finds what it has saved.
SCRIPT = """\
import os, pathlib, signal, sys, time
rank = os.environ["SLURM_PROCID"]
saved = pathlib.Path(f"saved-{rank}")
print("rank", rank, "of", os.environ["SLURM_NTASKS"], "meets at", os.environ["MASTER_ADDR"] != "")
if saved.exists():
    pathlib.Path(f"done-{rank}").write_text(os.environ["GREETING"])
    sys.exit(0)
def save(number, frame):
    saved.write_text("here")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
pathlib.Path(f"up-{rank}").touch()
while True:
    time.sleep(0.1)
"""


# Of an array. Task 1 waits to be asked, and in its second life finds what it has saved; the other
# just ends. What is written lies in a folder of each task's own.
SWEPT = """\
import os, pathlib, signal, sys, time
said = " ".join([os.environ["LR"], os.environ["SEED"], pathlib.Path("shared").read_text()])
if os.environ["SEED"] == "1" or pathlib.Path("saved").exists():
    pathlib.Path("done").write_text(said)
    sys.exit(0)
def save(number, frame):
    pathlib.Path("saved").write_text("here")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
pathlib.Path("up").touch()
while True:
    time.sleep(0.1)
"""


def submitted(out: Path) -> int:
    told = subprocess.run(
        ["sbatch", "--parsable", "job.sbatch"], cwd=out, check=True, capture_output=True, text=True,
        env={**os.environ, "TOKEN": "x"},
    )  # fmt: skip
    return int(told.stdout)


def batch_shell(slurm: Slurm, number: int) -> int:
    """Its process on this computer, which is all of the cluster."""
    script = f"{slurm.folder}/spool-"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if any(w.startswith(script) and f"job{number:05}/slurm_script" in w for w in words):
                return int(path.parent.name)
    raise AssertionError(f"job {number} has no batch shell here")


def test_it_saves_is_requeued_and_goes_on(slurm: Slurm, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    asked = asking.example("continue-70b-eu")
    assert asked.plan is not None
    job = Job(
        command=f"{sys.executable} train.py", setup="echo once >> set-up",
        env={"GREETING": "it's $me"}, secrets={"TOKEN": "file:~/token"},
    )  # fmt: skip
    asked = replace(
        asked,
        plan=replace(asked.plan, accelerator_count=1, nodes=2),
        workload=replace(asked.workload, run=job),
        job_path="..",
    )
    settings = {"partition": "gpu", "time": "00:30:00", "gres": "gpu:a100", "cpus": "1"}
    exported = making.made("slurm", asked, settings)
    out = tmp_path / "deploy"
    folder.write(out, "slurm", folder.compared(out, "slurm", exported), overwrite=False)
    number = str(submitted(out))

    def there(name: str) -> bool:
        return all((tmp_path / f"{name}-{rank}").exists() for rank in range(2))

    def said() -> str:
        return "\n".join(path.read_text() for path in out.glob("*.out"))

    eventually(lambda: there("up"), within_s=300)
    # As Slurm does before the time limit (--signal=B:TERM): the batch shell alone is told.
    os.kill(batch_shell(slurm, int(number)), signal.SIGTERM)
    eventually(lambda: there("saved"), within_s=60)
    # A job that was put back waits for two minutes, unless somebody begins it. Not in the second in
    # which its first life was ended: a node takes that end for one of the second life, too. Should
    # Slurm's own wait come to be after ours, it begins all the same.
    state = ("squeue", "-h", "-j", number, "-o", "%T")
    eventually(lambda: slurm.said(*state).strip() == "PENDING", within_s=60)
    slurm.said("scontrol", "update", f"JobId={number}", "StartTime=now+2")
    eventually(lambda: there("done"), within_s=300)
    eventually(
        lambda: (
            slurm.said("sacct", "-nXP", "-j", number, "-o", "State").strip().endswith("COMPLETED")
        ),
        within_s=60,
    )
    assert (tmp_path / "done-1").read_text() == "it's $me"
    assert (tmp_path / "set-up").read_text() == "once\n"
    assert "back into the queue" in said()
    assert "of 2 meets at True" in said()


def test_a_sweep_is_an_array_of_which_one_task_is_put_back_alone(
    slurm: Slurm, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SWEPT)
    (tmp_path / "shared").write_text("seen")
    asked = asking.example("continue-70b-eu")
    assert asked.plan is not None
    asked = replace(
        asked,
        plan=replace(asked.plan, accelerator_count=1, nodes=1),
        workload=replace(
            asked.workload,
            run=Job(command=f"{sys.executable} train.py", setup="echo once >> set-up; sleep 1"),
        ),
        job_path="..",
    )
    settings = {"partition": "gpu", "time": "00:30:00", "cpus": "1",
                "sweep": "LR=1e-3,it's SEED=1,2"}  # fmt: skip
    out = tmp_path / "deploy"
    exported = making.made("slurm", asked, settings)
    folder.write(out, "slurm", folder.compared(out, "slurm", exported), overwrite=False)
    array = submitted(out)
    own = [tmp_path / "sweep" / str(task) for task in range(4)]

    def there(name: str, *tasks: int) -> bool:
        return all((own[task] / name).exists() for task in tasks)

    eventually(lambda: there("up", 1, 3) and there("done", 0, 2), within_s=300)
    # The last to begin has the number of the array: Slurm takes that number for all of them.
    told = slurm.said("squeue", "-h", "-j", str(array), "-t", "R", "-o", "%K %A")
    numbers = {each.split()[0]: each.split()[1] for each in told.splitlines()}
    os.kill(batch_shell(slurm, int(numbers["3"])), signal.SIGTERM)
    eventually(lambda: there("saved", 3), within_s=60)
    task = f"{array}_3"
    state = ("squeue", "-h", "-j", task, "-o", "%T")
    eventually(lambda: slurm.said(*state).strip() == "PENDING", within_s=60)
    slurm.said("scontrol", "update", f"JobId={task}", "StartTime=now+2")
    eventually(lambda: there("done", 3), within_s=300)
    # The others are where they were.
    assert not there("saved", 1)
    assert slurm.said("squeue", "-h", "-j", f"{array}_1", "-o", "%T").strip() == "RUNNING"
    os.kill(batch_shell(slurm, int(numbers["1"])), signal.SIGTERM)
    eventually(lambda: there("saved", 1), within_s=60)
    assert [(own[n] / "done").read_text() for n in (0, 2, 3)] == [
        "1e-3 1 seen", "it's 1 seen", "it's 2 seen",
    ]  # fmt: skip
    assert (tmp_path / "set-up").read_text() == "once\n"
