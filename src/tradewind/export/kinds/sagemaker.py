"""`sagemaker`: a training job of Amazon SageMaker, as its own command line takes it."""

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
    Setting("role", "ARN of the role that the job has.",
            example="arn:aws:iam::123456789012:role/training"),
    Setting("bucket", "Where checkpoints and outputs go.", example="s3://acme-training"),
)  # fmt: skip
_TITLE = "SageMaker"
_FAMILIES = (
    "g4dn", "g5", "g6", "g6e", "g7", "g7e", "p3", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en",
    "p6-b200", "p6-b300", "trn1", "trn1n", "trn2",
)  # fmt: skip
"""Whose machines it has, of those with accelerators (botocore 1.44, TrainingInstanceType)."""
_LONGEST_S = 28 * 86_400
_LONGEST_LINE, _MOST_LINES = 256, 100
_HOSTS = (
    'import json\nc = json.load(open("/opt/ml/input/config/resourceconfig.json"))\n'
    'h = sorted(c["hosts"])\nprint(h[0], h.index(c["current_host"]))'
)
_READ = {
    secrets.AWS_SSM: 'import boto3, sys\nprint(boto3.client("ssm").get_parameter('
    'Name=sys.argv[1], WithDecryption=True)["Parameter"]["Value"])',
    secrets.AWS_SECRETS_MANAGER: 'import boto3, sys\nprint(boto3.client("secretsmanager")'
    '.get_secret_value(SecretId=sys.argv[1])["SecretString"])',
}


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    plan, job = managed.asked_of("sagemaker", _TITLE, "aws", asked)
    if plan.instance_type.partition(".")[0] not in _FAMILIES:
        raise Refused(
            f"SageMaker has no {plan.instance_type}",
            nearest="--accelerator with another; it has T4, A10G, L4, L40S, V100, A100, H100, H200",
        )
    longest = managed.seconds(plan)
    if longest > _LONGEST_S:
        raise Refused(
            f"a training job ends after 28 days, and the plan's upper end is"
            f" {plan.hours_high / 24:.0f} days",
            nearest="terraform, whose machines have no such end; or a shorter deadline",
        )
    name = managed.name(asked, 63)
    bucket = settings["bucket"].rstrip("/") or "s3://BUCKET"
    role = settings["role"] or "arn:aws:iam::123456789012:role/ROLE"
    stand_in = f"123456789012.dkr.ecr.{plan.region}.amazonaws.com/{name}:1"
    image, notes = managed.image(asked, job, settings, stand_in)
    spot, more = managed.spot(_TITLE, plan)
    disk, disk_why = managed.disk_gb(asked, plan, 60)
    *before, command = _lines(asked)
    description: dict[str, Any] = {
        "TrainingJobName": Why(name, "Of one job: the next has another name."),
        "RoleArn": role,
        "AlgorithmSpecification": {
            "TrainingImage": image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": Why(
                ["/bin/sh", "-c", 'eval "$(printf "%s\\n" "$@")"', "sh"],
                "A line of the script is an argument: none may have more than one.",
            ),
            "ContainerArguments": _arguments(managed.script(job, command, *before)),
        },
        "ResourceConfig": {
            "InstanceType": Why(
                f"ml.{plan.instance_type}",
                "The plan's machine. SageMaker's own price of it is higher than the plan's.",
            ),
            "InstanceCount": plan.nodes,
            "VolumeSizeInGB": Why(disk, disk_why),
        },
        "StoppingCondition": {
            "MaxRuntimeInSeconds": Why(longest, managed.seconds_why(plan)),
            **({"MaxWaitTimeInSeconds": Why(
                min(2 * longest, _LONGEST_S), "And as long again, to wait for spot machines."
            )} if spot else {}),
        },
        "EnableManagedSpotTraining": spot,
        "CheckpointConfig": {
            "S3Uri": f"{bucket}/{name}/checkpoints",
            "LocalPath": Why(managed.CHECKPOINTS, "Kept in step with the bucket, both ways."),
        },
        "OutputDataConfig": {"S3OutputPath": f"{bucket}/{name}"},
        "Environment": dict(launch.variables(plan, job)),
    }  # fmt: skip
    if plan.nodes > 1:
        description["EnableInterContainerTrafficEncryption"] = False
    notes += managed.left_open(settings, role="ARN", bucket="s3://NAME")
    if job.secrets:
        notes.append("secrets are read by the job's role at its start: the image needs boto3")
    return Exported(
        {"training-job.yaml": File(commented.text(description))},
        (f"aws sagemaker create-training-job --region {plan.region} --cli-input-yaml"
         " file://training-job.yaml, from DIR", *notes, *more),
    )  # fmt: skip


def _arguments(script: str) -> list[str]:
    lines = script.split("\n")
    if too_long := next((each for each in lines if len(each) > _LONGEST_LINE), ""):
        raise Refused(
            f"SageMaker takes {_LONGEST_LINE} characters on a line, and one has {len(too_long)}:"
            f" {too_long[:40]}…",
            nearest="a script in the job's folder that has the line, as run.command",
        )
    if len(lines) > _MOST_LINES:
        raise Refused(
            f"SageMaker takes {_MOST_LINES} lines, and the setup has {len(lines)}",
            nearest="a script in the job's folder that has them, as run.setup",
        )
    return lines


def _lines(asked: Asked) -> list[str]:
    """The last of them is the command."""
    plan, job = asked.training("sagemaker")
    lines = []
    for variable, text in job.secrets.items():
        found = managed.reference(_TITLE, variable, text, tuple(_READ))
        read = f"python3 -c {shell.quoted(_READ[found.scheme])} {shell.quoted(found.name)}"
        lines.append(managed.asked_for(variable, read, found.key))
    if plan.nodes > 1:
        lines.append(managed.met(_HOSTS))
    return [*lines, launch.command(plan, job, rank='"$NODE_RANK"', first='"$MASTER_ADDR"')]
