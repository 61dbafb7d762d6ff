"""`dstack`: a task or a service for teams that run their work with dstack."""

from __future__ import annotations

import math
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
SETTINGS: tuple[Setting, ...] = (engines.MODEL,)
_TITLE = "dstack"
_SYSTEM_GB = 100
_LATE = 1.5


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    if asked.serving is not None:
        return _service(asked, settings)
    plan, job = asked.training("dstack")
    command = launch.command(
        plan, job, rank='"$DSTACK_NODE_RANK"', first='"$DSTACK_MASTER_NODE_IP"'
    )
    disk = _SYSTEM_GB + math.ceil(
        plan.checkpoint_bytes * (asked.workload.checkpoint.keep + 1) / 1e9
    )
    spot = "spot" if plan.markets == ("spot",) else "auto" if "spot" in plan.markets else ""
    hours = math.ceil(plan.hours_high * _LATE)
    env: Any = [f"{name}={value}" for name, value in launch.variables(plan, job).items()]
    notes = ["dstack apply -f task.dstack.yml, from DIR"]
    if job.secrets:
        env = others.where(
            job.secrets, [*env, *(f"{name}=${{{{ secrets.{name} }}}}" for name in job.secrets)]
        )
        told = "; ".join(f"dstack secret set {name} VALUE" for name in job.secrets)
        notes.append(f"secrets are dstack's own: {told}, once")
    task: dict[str, Any] = {
        "type": "task",
        "name": _name(asked),
        **({"nodes": plan.nodes} if plan.nodes > 1 else {}),
        **({"image": job.image} if job.image else {"python": "3.12"}),
        "files": [f"{asked.job_path}:/job"],
        "working_dir": "/job",
        "env": env,
        "commands": [*([job.setup.strip()] if job.setup else []), command],
        **_place(plan),
        "spot_policy": Why(spot or "on-demand", "As planned."),
        "max_price": Why(
            round(max(plan.price_hour.values()) / 1e6 * 1.2, 2),
            f"An hour of one machine: the plan's price, and a fifth for what prices do. It is"
            f" {plan.instance_type}.",
        ),
        "retry": {"on_events": ["no-capacity", "interruption", "error"], "duration": f"{hours}h"},
        "max_duration": Why(
            f"{hours}h", f"Half as much again as the plan's {plan.hours_high:.1f} hours."
        ),
        "stop_duration": Why("5m", f"To save: a checkpoint is {plan.checkpoint_bytes / 1e9:.1f}"
                                   " GB."),
        "resources": {
            "gpu": _gpu(asked.chip, plan.accelerator_count),
            "shm_size": "16GB",
            "disk": f"{disk}GB..",
        },
    }  # fmt: skip
    if "spot" in plan.markets:
        task["volumes"] = Why(
            [{"instance_path": "/var/lib/checkpoints", "path": "/job/checkpoints"}],
            "On the machine itself: name a volume of yours here, which outlives it.",
        )
        notes.append("checkpoints are on the machine, and go with it: name a volume of yours in"
                     " task.dstack.yml, which outlives it")  # fmt: skip
    return Exported({"task.dstack.yml": File(commented.text(task))}, tuple(notes))


def _service(asked: Asked, settings: Mapping[str, str]) -> Exported:
    pool = shell.one_pool("dstack", asked)
    _, serve = asked.service("dstack")
    rate = others.one_replica(_TITLE, pool)
    known = images.table()
    weights = engines.weights_of(serve, known, settings["model"])
    engine = engines.started(pool, serve, known, weights)
    least, most = others.replicas(pool)
    scaling: dict[str, Any] = {"replicas": Why(f"{least}..{most}", "Of the quietest hour, and of"
                                               " the busiest.")}  # fmt: skip
    if least != most:
        scaling["scaling"] = {
            "metric": "rps",
            "target": Why(round(rate, 2), "Within the targets a replica does it."),
        }
    spot = any(hour.spot for hour in pool.hours)
    service = {
        "type": "service",
        "name": _name(asked),
        "python": "3.12",
        "env": ["HF_TOKEN", "HF_HOME=/models"],
        "commands": [f"pip install {engine.package}", engines.shell(engine)],
        "port": engines.PORT,
        "model": weights,
        **scaling,
        "probes": [{"type": "http", "url": engine.health, "interval": "10s", "timeout": "5s"}],
        **_place(pool),
        "spot_policy": "auto" if spot else "on-demand",
        "resources": {
            "gpu": _gpu(asked.chip, pool.accelerator_count), "shm_size": "16GB", "disk": "200GB..",
        },
        "volumes": [{"instance_path": "/var/lib/models", "path": "/models", "optional": True}],
    }  # fmt: skip
    return Exported(
        {"service.dstack.yml": File(commented.text(service))},
        ("HF_TOKEN=… dstack apply -f service.dstack.yml, from DIR; a gateway has to be there, if"
         " the number of replicas changes",),
    )  # fmt: skip


def _place(bought: Plan | ServingPool) -> dict[str, Any]:
    provider, region = others.place(_TITLE, others.table().dstack, bought)
    found: dict[str, Any] = {"backends": Why([provider], "Where the plan is cheapest.")}
    return {**found, **({"regions": [region]} if region else {})}


def _gpu(chip: Accelerator, count: int) -> str:
    named = others.accelerator(_TITLE, others.table().dstack, chip, "RTX").replace("-", "")
    return f"{named}:{count}"


def _name(asked: Asked) -> str:
    plain = "".join(each if each.isalnum() else "-" for each in asked.name.lower()).strip("-")
    return (plain if plain[:1].isalpha() else f"job-{plain}")[:40].rstrip("-")
