"""`skypilot`: a task file for teams that run their work with SkyPilot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.export import commented, engines, images, launch, others, registry, shell
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Exported, File, Setting
from tradewind.model.accelerator import Accelerator
from tradewind.model.plan import Plan
from tradewind.model.serveplan import ServingPool

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS: tuple[Setting, ...] = (
    Setting(
        "bucket",
        "Of a spot task, for its checkpoints. Default: named as the job.",
        example="acme-checkpoints",
    ),
    engines.MODEL,
)
_TITLE = "SkyPilot"
_SYSTEM_GB = 100


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    if asked.serving is not None:
        return _service(asked, settings)
    plan, job = asked.training("skypilot")
    command = launch.command(
        plan, job, rank='"$SKYPILOT_NODE_RANK"',
        first='"$(echo "$SKYPILOT_NODE_IPS" | head -n 1)"',
    )  # fmt: skip
    disk = _SYSTEM_GB + round(plan.checkpoint_bytes * (asked.workload.checkpoint.keep + 1) / 1e9)
    setup = job.setup.strip() + "\n" if job.setup else ""
    image = {"image_id": f"docker:{job.image}"} if job.image else {}
    task: dict[str, Any] = {
        "name": _name(asked),
        "resources": {
            **_place(plan),
            "accelerators": Why(
                {_called(asked.chip): plan.accelerator_count}, _cost(asked, plan)
            ),
            "use_spot": "spot" in plan.markets,
            "disk_size": Why(
                disk, f"{_SYSTEM_GB} GB, and what is kept of checkpoints of"
                f" {plan.checkpoint_bytes / 1e9:.1f} GB.",
            ),
            **image,
            "job_recovery": {"max_restarts_on_errors": 3},
        },
        "num_nodes": plan.nodes,
        "workdir": asked.job_path,
        "envs": dict(launch.variables(plan, job)),
    }  # fmt: skip
    notes = ["sky jobs launch task.yaml, which begins a spot task again elsewhere; from DIR"]
    if job.secrets:
        task["secrets"] = others.where(job.secrets, dict.fromkeys(job.secrets))
        told = " ".join(f"--secret {name}" for name in job.secrets)
        notes.append(f"secrets are of whoever launches: {told}, from the environment")
    if "spot" in plan.markets:
        bucket = settings["bucket"] or f"{_name(asked)}-checkpoints"
        notes.append(
            f"{bucket} is made where it is not there: names of buckets are everybody's,"
            " and --set bucket=NAME has another"
        )
        task["file_mounts"] = Why(
            {"~/checkpoints": {"name": bucket, "mode": "MOUNT_CACHED"}},
            "A bucket, which outlives each machine: the job's checkpoints/ is a link to it.",
        )
        # What came with the folder would be written to, and lost with the machine.
        link = "{ rm -rf checkpoints; ln -s ~/checkpoints checkpoints; }"
        setup = f"[ -L checkpoints ] || {link}\n{setup}"
    if setup:
        task["setup"] = setup
    task["run"] = f"{command}\n"
    if "on_demand" in plan.markets and "spot" in plan.markets:
        notes.append("SkyPilot stays on spot: the plan's change to on demand near the deadline,"
                     " and the deadline, are left out")  # fmt: skip
    return Exported({"task.yaml": File(commented.text(task))}, tuple(notes))


def _cost(asked: Asked, plan: Plan) -> str:
    return (
        f"{plan.instance_type} is the plan's machine: any with {plan.accelerator_count} ×"
        f" {asked.chip.name} will do."
    )


def _service(asked: Asked, settings: Mapping[str, str]) -> Exported:
    pool = shell.one_pool("skypilot", asked)
    _, serve = asked.service("skypilot")
    rate = others.one_replica(_TITLE, pool)
    known = images.table()
    engine = engines.started(
        pool, serve, known, engines.weights_of(serve, known, settings["model"])
    )
    least, most = others.replicas(pool)
    a_second = {} if least == most else {
        "target_qps_per_replica": Why(
            round(rate, 2), "Within the targets a replica does so many a second."
        )
    }  # fmt: skip
    task = {
        "name": _name(asked),
        "service": {
            "readiness_probe": {"path": engine.health, "initial_delay_seconds": 900},
            "replica_policy": {
                "min_replicas": Why(least, "Of the quietest hour of the plan."),
                "max_replicas": Why(most, "Of its busiest hour."),
                **a_second,
            },
        },
        "resources": {
            **_place(pool),
            "accelerators": {_called(asked.chip): pool.accelerator_count},
            "use_spot": any(hour.spot for hour in pool.hours),
            "ports": engines.PORT,
            "disk_size": 200,
        },
        "secrets": Why({"HF_TOKEN": None}, "Of whoever launches, where the weights ask for one."),
        "setup": f"pip install {engine.package}\n",
        "run": f"{engines.shell(engine)}\n",
    }
    return Exported(
        {"task.yaml": File(commented.text(task))},
        (f"sky serve up task.yaml --secret HF_TOKEN; from DIR; {engine.package} brings its"
         " PyTorch",),
    )  # fmt: skip


def _place(bought: Plan | ServingPool) -> dict[str, Any]:
    provider, region = others.place(_TITLE, others.table().skypilot, bought)
    infra = f"{provider}/{region}" if region else provider
    return {"infra": Why(infra, "Where the plan is cheapest; without it, it looks everywhere.")}


def _called(chip: Accelerator) -> str:
    return others.accelerator(_TITLE, others.table().skypilot, chip, "RTX")


def _name(asked: Asked) -> str:
    return "".join(each if each.isalnum() else "-" for each in asked.name.lower()).strip("-")
