"""A shell beside a job's processes: a step of the same job, on the node of its rank."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tradewind.base.errors import NotFound
from tradewind.model.run import Machine
from tradewind.providers.slurm import jobs, names, parsing, troubles
from tradewind.providers.slurm.footprint import Footprint
from tradewind.providers.slurm.login import Login


def command(footprint: Footprint, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
    for place, cluster in footprint.clusters.items():
        head = f"{names.ID_PREFIX}{place}-"
        if not machine.machine_id.startswith(head):
            continue
        owner = machine.machine_id.removeprefix(head).partition("-")[0]
        login = Login(cluster.login)
        answers = login.ask(jobs.asking(cluster.user))
        rows = parsing.queue(troubles.asked(answers.get("queue"), "squeue", login.shown), owner)
        up = [e for e in rows if e.name.launch_id == machine.launch_id and e.state == "RUNNING"]
        if not up:
            raise NotFound(f"no job runs for {machine.machine_id}", hint="tradewind ps")
        # --overlap: beside the step that holds the job's cores and GPUs. `-r` counts from the
        # first node of the job, as ranks do.
        step = ["srun", f"--jobid={up[0].job_id}", "--overlap", "-N1", "-n1", f"-r{machine.rank}"]
        step += list(words) or ["--pty", "bash", "-l"]
        if not cluster.login:
            return step
        identity = ("-t", *(["-i", key] if key else []))
        return [*login.command(*identity), shlex.join(step)]
    raise NotFound(
        f"the cluster of {machine.machine_id} is not set up any more", hint="tradewind setup slurm"
    )
