"""`compose`: Docker compose with the plan's accelerators, for one machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.export import commented, engines, images, launch, registry, shell
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Exported, File, Refused, Setting
from tradewind.model.accelerator import Accelerator

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS: tuple[Setting, ...] = (engines.MODEL,)
_IMAGE = "${IMAGE:?which image? tradewind image build prints its name}"
_SHARED = "16gb"
_SHARING = "For workers that load data, and for NCCL; Docker's own 64 MB end in an error."
_SAVES = "2m"


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    services = _service(asked, settings) if asked.serving is not None else _training(asked)
    volumes: dict[str, Any] = {"models" if asked.serving is not None else "checkpoints": {}}
    text = commented.text(
        {"name": asked.name.replace(".", "-"), "services": services, "volumes": volumes}
    )
    return Exported(
        {"compose.yaml": File(text)},
        ("IMAGE=NAME:TAG docker compose up; the image is what `tradewind export dockerfile` and"
         " `tradewind image build` make",),
    )  # fmt: skip


def _training(asked: Asked) -> dict[str, Any]:
    plan, job = shell.one_machine("compose", asked)
    variables = {name: _plain(each) for name, each in launch.variables(plan, job).items()}
    secrets = {
        name: f"${{{name}:?a secret, kept in {where}}}" for name, where in job.secrets.items()
    }
    return {
        "job": {
            "image": job.image or _IMAGE,
            **({"command": ["/bin/sh", "-c", _plain(_whole(asked))]} if job.image else {}),
            "environment": {**variables, **secrets},
            "volumes": Why(
                ["checkpoints:/job/checkpoints"],
                "A session's own folder: started again, it resumes from there.",
            ),
            "restart": "on-failure:10",
            "init": True,
            "stop_grace_period": Why(
                _SAVES,
                f"To save once more: a checkpoint is {plan.checkpoint_bytes / 1e9:.1f} GB.",
            ),
            "shm_size": Why(_SHARED, _SHARING),
            "ulimits": {"memlock": -1, "stack": 67108864},
            **_devices(asked.chip, [str(each) for each in range(plan.accelerator_count)]),
        }
    }


def _whole(asked: Asked) -> str:
    plan, job = asked.training("compose")
    command = launch.command(plan, job)
    return f"set -e\n{job.setup.strip()}\n{command}" if job.setup else command


def _service(asked: Asked, settings: Mapping[str, str]) -> dict[str, Any]:
    pool = shell.one_pool("compose", asked)
    _, serve = asked.service("compose")
    known = images.table()
    weights = engines.weights_of(serve, known, settings["model"])
    engine = engines.started(pool, serve, known, weights)
    look = f"http://127.0.0.1:{engines.PORT}{engine.health}"
    return {
        f"replica-{number}" if pool.replicas > 1 else "replica": {
            "image": _IMAGE,
            "command": list(engine.command),
            "environment": {"HF_HOME": "/models", "HF_TOKEN": "${HF_TOKEN:-}"},
            "ports": [f"127.0.0.1:{engines.PORT + number}:{engines.PORT}"],
            "volumes": ["models:/models"],
            "restart": "unless-stopped",
            "init": True,
            "stop_grace_period": "1m",
            "shm_size": Why(_SHARED, _SHARING),
            "healthcheck": {
                "test": ["CMD", "python", "-c",
                         f"import urllib.request; urllib.request.urlopen('{look}', timeout=4)"],
                "interval": "10s",
                "timeout": "5s",
                "start_period": "15m",
                "retries": 3,
            },
            **_devices(
                asked.chip, [str(number * pool.tp + each) for each in range(pool.tp)]
            ),
        }
        for number in range(pool.replicas)
    }  # fmt: skip


def _devices(chip: Accelerator, numbers: list[str]) -> dict[str, Any]:
    """By their numbers: two services of one machine get different ones."""
    if chip.vendor == "NVIDIA":
        wanted = {"driver": "nvidia", "device_ids": numbers, "capabilities": ["gpu"]}
        return {"deploy": {"resources": {"reservations": {"devices": [wanted]}}}}
    if chip.vendor == "AMD":
        return {
            "devices": ["/dev/kfd", "/dev/dri"],
            "group_add": ["video", "render"],
            "security_opt": ["seccomp=unconfined"],
        }
    raise Refused(
        f"Compose has no reservation for {chip.name}",
        nearest="script, for the machine as it is; or kubernetes, which has one",
    )


def _plain(text: str) -> str:
    """Compose fills in what stands after a dollar sign; two of them are one."""
    return text.replace("$", "$$")
