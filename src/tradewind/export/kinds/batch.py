"""`batch`: AWS Batch: a compute environment, a queue, and the job's definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.export import commented, launch, managed, registry
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Exported, File, Refused, Setting
from tradewind.model import secrets
from tradewind.model.job import Job
from tradewind.model.plan import Plan

TAKES = (registry.TRAINING,)
SETTINGS = (
    managed.IMAGE,
    Setting("filesystem", "Of EFS, for checkpoints, which outlives machines.",
            example="fs-0123456789abcdef0"),
    Setting("role", "ARN of the role that the job has, and that reads its secrets.",
            example="arn:aws:iam::123456789012:role/training"),
    Setting("subnet", "Where machines are.", example="subnet-0123456789abcdef0"),
    Setting("group", "The security group of machines.", example="sg-0123456789abcdef0"),
)  # fmt: skip
_TITLE = "AWS Batch"
_CORES, _MEMORY_MIB = 4, 14_000
_MOST_CORES = 256
_TIMES = 10
_RANK = '"$AWS_BATCH_JOB_NODE_INDEX"'
_FIRST = '"${AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS:-127.0.0.1}"'


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    plan, job = managed.asked_of("batch", _TITLE, "aws", asked)
    spot, more = managed.spot(_TITLE, plan)
    if spot and plan.nodes > 1:
        raise Refused(
            f"AWS Batch has no spot machines for jobs of several, and the plan has {plan.nodes}",
            nearest="--market on_demand, or --max-nodes 1; or sagemaker, which has",
        )
    name = managed.name(asked, 100)
    stand_in = f"123456789012.dkr.ecr.{plan.region}.amazonaws.com/{name}:1"
    image, notes = managed.image(asked, job, settings, stand_in)
    files = {
        "compute-environment.yaml": _environment(asked, plan, name, spot, settings),
        "job-queue.yaml": {
            "jobQueueName": name,
            "state": "ENABLED",
            "priority": 1,
            "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": name}],
        },
        "job-definition.yaml": _definition(plan, job, name, image, settings),
    }
    notes += managed.left_open(settings, role="ARN", subnet="ID", group="ID")
    if not settings["filesystem"]:
        notes.append("checkpoints go with their machine: --set filesystem=fs-… keeps them")
    region = f"--region {plan.region}"
    return Exported(
        {path: File(commented.text(value)) for path, value in files.items()},
        (f"from DIR: aws batch create-compute-environment {region} --cli-input-yaml"
         " file://compute-environment.yaml; create-job-queue and register-job-definition likewise;"
         f" then aws batch submit-job {region} --job-name {name} --job-queue {name}"
         f" --job-definition {name}", *notes, *more),
    )  # fmt: skip


def _environment(
    asked: Asked, plan: Plan, name: str, spot: bool, settings: Mapping[str, str]
) -> dict[str, Any]:
    strategy = "SPOT_PRICE_CAPACITY_OPTIMIZED" if spot else "BEST_FIT_PROGRESSIVE"
    return {
        "computeEnvironmentName": name,
        "type": "MANAGED",
        "state": "ENABLED",
        "computeResources": {
            "type": Why("SPOT" if spot else "EC2", "As planned."),
            "allocationStrategy": strategy,
            "minvCpus": Why(0, "Without jobs there are no machines."),
            "maxvCpus": Why(_MOST_CORES * plan.nodes, "More than the plan's machines have."),
            "instanceTypes": Why(
                [plan.instance_type], f"{plan.accelerator_count} × {asked.chip.name}."
            ),
            "ec2Configuration": Why(
                [{"imageType": "ECS_AL2023_NVIDIA"}], "An image with NVIDIA's driver."
            ),
            "subnets": [settings["subnet"] or "SUBNET"],
            "securityGroupIds": [settings["group"] or "GROUP"],
            "instanceRole": "ecsInstanceRole",
        },
    }


def _definition(
    plan: Plan, job: Job, name: str, image: str, settings: Mapping[str, str]
) -> dict[str, Any]:
    role = settings["role"] or "arn:aws:iam::123456789012:role/ROLE"
    count = plan.accelerator_count
    command = launch.command(plan, job, rank=_RANK, first=_FIRST)
    hidden = [
        {"name": variable, "valueFrom": _from(managed.reference(
            _TITLE, variable, text, (secrets.AWS_SSM, secrets.AWS_SECRETS_MANAGER)))}
        for variable, text in job.secrets.items()
    ]  # fmt: skip
    container: dict[str, Any] = {
        "image": image,
        "command": ["/bin/sh", "-c", managed.script(job, command)],
        "jobRoleArn": role,
        "executionRoleArn": role,
        "resourceRequirements": Why(
            [
                {"type": "GPU", "value": str(count)},
                {"type": "VCPU", "value": str(_CORES * count)},
                {"type": "MEMORY", "value": str(_MEMORY_MIB * count)},
            ],
            f"{_CORES} cores and {_MEMORY_MIB} MiB for each accelerator: less than what such"
            " machines have for each.",
        ),
        "environment": [
            {"name": each, "value": value} for each, value in launch.variables(plan, job).items()
        ],
        **({"secrets": hidden} if hidden else {}),
        "linuxParameters": {
            "sharedMemorySize": Why(16_384, "MiB, for workers that load data, and for NCCL."),
            "initProcessEnabled": True,
        },
    }
    if settings["filesystem"]:
        container["volumes"] = [
            {
                "name": "checkpoints",
                "efsVolumeConfiguration": {
                    "fileSystemId": settings["filesystem"],
                    "transitEncryption": "ENABLED",
                },
            }
        ]
        container["mountPoints"] = [
            {"sourceVolume": "checkpoints", "containerPath": managed.CHECKPOINTS}
        ]
    shape: dict[str, Any] = {"type": "container", "containerProperties": container}
    if plan.nodes > 1:
        container["instanceType"] = plan.instance_type
        shape = {
            "type": "multinode",
            "nodeProperties": {
                "numNodes": plan.nodes,
                "mainNode": 0,
                "nodeRangeProperties": [{"targetNodes": "0:", "container": container}],
            },
        }
    return {
        "jobDefinitionName": name,
        **shape,
        "retryStrategy": {
            "attempts": _TIMES,
            "evaluateOnExit": Why(
                [
                    {"onStatusReason": "Host EC2*", "action": "RETRY"},
                    {"onReason": "*", "action": "EXIT"},
                ],
                "What a machine's loss has ended is begun again; what fails is not.",
            ),
        },
        "timeout": {
            "attemptDurationSeconds": Why(managed.seconds(plan), managed.seconds_why(plan))
        },
    }


def _from(reference: secrets.Reference) -> str:
    if reference.scheme == secrets.AWS_SSM or not reference.key:
        return reference.name
    if reference.name.startswith("arn:"):
        return f"{reference.name}:{reference.key}::"
    raise Refused(
        f"AWS Batch reads a key of a secret by the secret's ARN, and {reference.name} is a name",
        nearest="aws-secretsmanager:arn:…#key, or aws-ssm:/path/name",
    )
