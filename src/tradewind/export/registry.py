"""The kinds of files, each with the line by which `tradewind export --list` tells of it. A kind is
the module of its name in `kinds/`, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Protocol, cast

from tradewind.base.errors import NotFound
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, Setting

KINDS = {
    "dockerfile": "An image for the plan's accelerator, its driver and PyTorch.",
    "compose": "Docker compose with the plan's GPUs, for one machine.",
    "kubernetes": "Manifests with kustomize: jobs, services, queues, disks, scaling.",
    "terraform": "A module whose machines run the job, and end; or nodes for a cluster.",
    "pulumi": "The same as a Python program for Pulumi.",
    "skypilot": "A task file for SkyPilot.",
    "dstack": "A task or a service for dstack.",
    "sagemaker": "A training job of Amazon SageMaker.",
    "batch": "A compute environment, a queue and a job's definition of AWS Batch.",
    "vertex": "A custom job of Google's Vertex AI.",
    "azureml": "A cluster and a command job of Azure Machine Learning.",
    "slurm": "An sbatch script that saves when it is asked to, and is put back into the queue.",
    "github-actions": "Workflows of GitHub: test, image, rehearsal, GPU test, benchmark, deploy.",
    "gitlab-ci": "A pipeline of GitLab: test, image, rehearsal, GPU test, benchmark, deploy.",
    "script": "The plain commands as a shell script, for one machine.",
    "makefile": "The plain commands as a Makefile, for one machine.",
}


TRAINING, SERVICE = "trainings", "services"


class Kind(Protocol):
    TAKES: tuple[str, ...]
    """`trainings` (all work that ends), `services`, or both."""
    SETTINGS: tuple[Setting, ...]

    def export(self, asked: Asked, settings: Mapping[str, str]) -> Exported: ...


def kind(name: str) -> Kind:
    if name not in KINDS:
        close = get_close_matches(name, KINDS, n=1)
        raise NotFound(
            f"nothing is exported as {name!r}",
            hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(KINDS)}",
            choices=close,
        )
    return cast(Kind, import_module(f"tradewind.export.kinds.{name.replace('-', '_')}"))
