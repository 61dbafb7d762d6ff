"""`vertex`: a custom job of Google's Vertex AI, as gcloud takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.export import commented, launch, managed, registry, shell
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Exported, File, Refused, Setting
from tradewind.model import secrets

TAKES = (registry.TRAINING,)
SETTINGS = (
    managed.IMAGE,
    Setting("account", "The service account that the job is.",
            example="job@project.iam.gserviceaccount.com"),
    Setting("bucket", "Where checkpoints go.", example="gs://acme-training"),
)  # fmt: skip
_TITLE = "Vertex AI"
_CHIPS = {
    "P100": "NVIDIA_TESLA_P100", "P4": "NVIDIA_TESLA_P4", "T4": "NVIDIA_TESLA_T4",
    "V100-16GB": "NVIDIA_TESLA_V100", "V100": "NVIDIA_TESLA_V100", "L4": "NVIDIA_L4",
    "A100-40GB": "NVIDIA_TESLA_A100", "A100-80GB": "NVIDIA_A100_80GB",
    "H100-SXM": "NVIDIA_H100_80GB", "H200": "NVIDIA_H200_141GB", "B200": "NVIDIA_B200",
    "RTX-PRO-6000": "NVIDIA_RTX_PRO_6000",
}  # fmt: skip
"""What it calls them (aiplatform v1, AcceleratorType)."""
_MEGA = "a3-megagpu"
_LONGEST_S = 28 * 86_400
_CLUSTER = """\
import json, os
c = json.loads(os.environ["CLUSTER_SPEC"])
p, t = c["cluster"], c["task"]
n = [a for k in sorted(p) for a in p[k]]
print(n[0].split(":")[0], n.index(p[t["type"]][t["index"]]))"""
"""The first machine, and the number of this one."""


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    plan, job = managed.asked_of("vertex", _TITLE, "gcp", asked)
    chip = _CHIPS.get(asked.chip.name)
    if chip is None:
        raise Refused(
            f"Vertex AI has no name for {asked.chip.name}",
            nearest=f"--accelerator with one of {', '.join(_CHIPS)}",
        )
    machine = plan.instance_type.partition("+")[0]
    if machine.startswith(_MEGA):
        chip = "NVIDIA_H100_MEGA_80GB"
    spot, more = managed.spot(_TITLE, plan)
    longest = managed.seconds(plan)
    if longest > _LONGEST_S:
        raise Refused(
            "a custom job ends after 28 days, and the plan's upper end is"
            f" {plan.hours_high / 24:.0f} days",
            nearest="terraform, whose machines have no such end; or a shorter deadline",
        )
    name = managed.name(asked, 100)
    bucket = (settings["bucket"].rstrip("/") or "gs://BUCKET").removeprefix("gs://")
    stand_in = f"{plan.region}-docker.pkg.dev/PROJECT/jobs/{name}:1"
    image, notes = managed.image(asked, job, settings, stand_in)
    disk, disk_why = managed.disk_gb(asked, plan, 100)
    hybrid = plan.instance_type.startswith(("a3-ultragpu", "a4", "g4"))
    *before, command = _lines(asked, bucket, name)
    pool: dict[str, Any] = {
        "machineSpec": {
            "machineType": Why(machine, "The plan's machine."),
            "acceleratorType": chip,
            "acceleratorCount": plan.accelerator_count,
        },
        "replicaCount": 1,
        "diskSpec": {
            "bootDiskType": "hyperdisk-balanced" if hybrid else "pd-ssd",
            "bootDiskSizeGb": Why(disk, disk_why),
        },
        "containerSpec": {
            "imageUri": image,
            "command": ["/bin/sh", "-c"],
            "args": [managed.script(job, command, *before)],
            "env": [
                {"name": each, "value": value}
                for each, value in launch.variables(plan, job).items()
            ],
        },
    }
    others = {**pool, "replicaCount": plan.nodes - 1}
    description: dict[str, Any] = {
        "workerPoolSpecs": Why(
            [pool, others] if plan.nodes > 1 else [pool],
            "The first machine, and the others." if plan.nodes > 1 else "One machine.",
        ),
        "scheduling": {
            "strategy": Why("SPOT" if spot else "STANDARD", "As planned."),
            "timeout": Why(f"{longest}s", managed.seconds_why(plan)),
            "restartJobOnWorkerRestart": Why(
                plan.nodes > 1, "Ranks meet again from the beginning, and resume."
            ),
        },
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{bucket}/{name}"},
        **({"serviceAccount": settings["account"]} if settings["account"] else {}),
    }
    notes += managed.left_open(settings, bucket="gs://NAME")
    if job.secrets:
        notes.append("secrets are read by the job's service account at its start: the image needs"
                     " gcloud")  # fmt: skip
    return Exported(
        {"custom-job.yaml": File(commented.text(description))},
        (f"gcloud ai custom-jobs create --region {plan.region} --display-name {name} --config"
         " custom-job.yaml, from DIR", *notes, *more),
    )  # fmt: skip


def _lines(asked: Asked, bucket: str, name: str) -> list[str]:
    """The last of them is the command."""
    plan, job = asked.training("vertex")
    kept = f"/gcs/{bucket}/{name}/checkpoints"
    lines = [f"mkdir -p {kept}\nrm -rf {managed.CHECKPOINTS} && ln -s {kept} {managed.CHECKPOINTS}"]
    for variable, text in job.secrets.items():
        found = managed.reference(_TITLE, variable, text, (secrets.GCP_SECRET_MANAGER,))
        secret, _, version = found.name.partition("/versions/")
        read = (
            f"gcloud secrets versions access {version or 'latest'} --secret {shell.quoted(secret)}"
        )
        lines.append(managed.asked_for(variable, read, found.key))
    if plan.nodes > 1:
        lines.append(managed.met(_CLUSTER))
    return [*lines, launch.command(plan, job, rank='"$NODE_RANK"', first='"$MASTER_ADDR"')]
