"""`slurm`: a batch script that saves when it is asked to, and is put back into the queue.

Slurm tells the script two minutes before the time limit. The script hands that on to all ranks,
which save; then the job goes back into the queue, and resumes from there. One that is cancelled
does not.

A sweep over parameters is an array: a task for each combination of values, which is a job of its
own to Slurm, and is put back alone. Each works in a folder of its own: in a common one it would
resume from checkpoints of the others.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping

from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_duration
from tradewind.export import launch, registry, shell
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, File, Refused, Setting
from tradewind.model import sweeps
from tradewind.model.job import Job

TAKES = (registry.TRAINING,)
SETTINGS = (
    Setting("partition", "Of the cluster. Default: its own.", example="gpu"),
    Setting("account", "Whom it is charged to. Default: your own.", example="physics"),
    Setting("gres", "What an accelerator is called. Default: gpu.", example="gpu:a100"),
    Setting("time", "The partition's time limit, if it is shorter.", example="24:00:00"),
    Setting("cpus", "Cores of each node. Default: 4 for each accelerator.", example="32"),
    Setting(
        "sweep",
        "An array, with a task for each combination of values: in quotes, parted by blanks.",
        example="'LR=1e-3,1e-4 SEED=1,2'",
    ),
    Setting("at_once", "Of a sweep's tasks, so many at a time. Default: all.", example="4"),
)
_SAVES_S = 120
_CORES = 4
_TIMES = 100
_MOST = 1000
"""Tasks of an array: as many as Slurm takes unless its administrator says otherwise."""


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    plan, job = asked.training("slurm")
    if asked.chip.compute_capability.startswith("tpu"):
        raise Refused(
            f"Slurm hands out no {asked.chip.name}",
            nearest="kubernetes, or limits.accelerators: [H100*]",
        )
    hours = math.ceil(plan.hours_high * 1.1)
    count = plan.accelerator_count
    swept = _swept(job, settings)
    asked_for = [
        f"--job-name={asked.name}",
        f"--nodes={plan.nodes}",
        "--ntasks-per-node=1",
        f"--gres={settings['gres'] or 'gpu'}:{count}",
        f"--cpus-per-task={settings['cpus'] or _CORES * count}",
        f"--time={settings['time'] or f'{hours}:00:00'}",
        *(f"--{name}={settings[name]}" for name in ("partition", "account") if settings[name]),
        f"--signal=B:TERM@{_SAVES_S}",
        "--requeue",
        "--open-mode=append",
        "--output=%x-%A_%a.out" if swept else "--output=%x-%j.out",
    ]
    if swept:
        at_once = f"%{settings['at_once']}" if settings["at_once"] else ""
        asked_for.append(f"--array=0-{len(swept) - 1}{at_once}")
    # The number alone may be that of the whole array.
    this = "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" if swept else "$SLURM_JOB_ID"
    lines = "".join(f"#SBATCH {each}\n" for each in asked_for)
    upper = format_duration(round(plan.hours_high * 3600))
    several = plan.nodes > 1
    command = launch.command(
        plan, job, rank='"$SLURM_NODEID"', first='"$MASTER_ADDR"', port='"$MASTER_PORT"'
    )
    path = shell.within_quotes(asked.job_path)
    started = shell.quoted(f"exec {command}" if shell.is_simple(command) else command)
    note = "# shellcheck disable=SC2016 # each node fills in its own\n" if "$" in started else ""
    text = f"""\
#!/bin/bash
# The plan needs up to {upper}; with less time it saves, and goes back into the queue.
{lines}
set -euo pipefail
# sbatch copies this script: it is submitted from the folder in which it lies.
cd "${{JOB_FOLDER:-$SLURM_SUBMIT_DIR/{path}}}"
{shell.needed(job)}{shell.exports(launch.variables(plan, job))}"""
    if several:
        text += (
            "# Where the nodes meet: at the first of them.\n"
            'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n'
            "MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))\n"
            "export MASTER_ADDR MASTER_PORT\n"
        )
    text += _setup(job, several=bool(swept)) + _own(swept)
    text += f"""
# A task on each node: torchrun, or the command itself, starts a process for each accelerator.
{note}srun --kill-on-bad-exit=1 /bin/sh -c {started} &
ours=$!
asked=''
# To the ranks themselves: an srun that is told to end kills them.
trap 'asked=yes; scancel --signal=TERM "{this}.0" || true' TERM
code=0
wait "$ours" || code=$?
while kill -0 "$ours" 2> /dev/null; do # the wait was cut short by the signal
  code=0
  wait "$ours" || code=$?
done
if [ -n "$asked" ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {_TIMES} ]; then
  echo "asked to end after $SECONDS s: back into the queue"
  scontrol requeue "{this}"
fi
exit "$code"
"""
    return Exported(
        {"job.sbatch": File(text, executable=True)},
        ("cd DIR && sbatch job.sbatch; the job's folder has to be on a file system that the nodes"
         " share",),
    )  # fmt: skip


def _swept(job: Job, settings: Mapping[str, str]) -> list[dict[str, str]]:
    """Combinations of values; none where nothing is swept over."""
    if not settings["sweep"].strip():
        if settings["at_once"]:
            raise InvalidValue("at_once is for a sweep", hint="--set sweep='LR=1e-3,1e-4'")
        return []
    if settings["at_once"] and not re.fullmatch(r"[1-9]\d{0,3}", settings["at_once"], re.ASCII):
        raise InvalidValue(
            f"at_once={settings['at_once']} is no number of tasks", hint="--set at_once=4"
        )
    found = sweeps.combinations(settings["sweep"].split(), said="sweep:", most=_MOST)
    for each in found:
        sweeps.check(each, job.secrets, said="sweep:")
    return found


def _setup(job: Job, *, several: bool) -> str:
    """`several`: tasks that may all begin at the same moment."""
    if not job.setup:
        return ""
    once = f"/bin/sh -e -c {shell.quoted(job.setup.strip())}\n"
    words = "in the folder that all share: remove .prepared to do it again."
    if not several:
        return (
            f"\n# Once, on the first node, {words}\n"
            f"if [ ! -e .prepared ]; then\n  {once}  : > .prepared\nfi\n"
        )
    return (
        f"\n# Once, by the first task, {words}\n"
        "exec 9> .preparing\nflock 9\n"
        f"if [ ! -e .prepared ]; then\n  {once}  : > .prepared\nfi\n"
        "exec 9>&-\n"
    )


def _own(swept: list[dict[str, str]]) -> str:
    """What a task's values are, and where it works."""
    if not swept:
        return ""
    cases = "".join(
        f"  {number}) export"
        + "".join(f" {name}={shlex.quote(value)}" for name, value in each.items())
        + " ;;\n"
        for number, each in enumerate(swept)
    )
    return f"""
case "$SLURM_ARRAY_TASK_ID" in
{cases}  *) echo "there is no task $SLURM_ARRAY_TASK_ID in this sweep" >&2; exit 2 ;;
esac
# Each works in a folder of its own, with links to all of the job's but the checkpoints.
own=sweep/$SLURM_ARRAY_TASK_ID
mkdir -p "$own"
for each in * .[!.]*; do
  case "$each" in sweep | checkpoints) continue ;; esac
  [ ! -e "$each" ] || [ -e "$own/$each" ] || ln -s "../../$each" "$own/$each"
done
cd "$own"
"""
