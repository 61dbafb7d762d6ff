"""`gitlab-ci`: a pipeline that tests, rehearses, rents a GPU for minutes, and deploys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.export import commented, pipeline, registry
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Exported, File, Setting
from tradewind.export.pipeline import Step

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS: tuple[Setting, ...] = pipeline.SETTINGS
_PYTHON = "python:3.12-bookworm"
_NO_SCHEDULE = {"if": "$CI_PIPELINE_SOURCE == 'schedule'", "when": "never"}
_MAIN = {"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}
_TAG = {"if": "$CI_COMMIT_TAG"}
_OWN = {"REGISTRY_USER": "$CI_REGISTRY_USER", "REGISTRY_PASSWORD": "$CI_REGISTRY_PASSWORD"}
_PATIENT = {
    "RUNNER_SCRIPT_TIMEOUT": Why("65m", "What follows has to fit into the job's own limit."),
    "RUNNER_AFTER_SCRIPT_TIMEOUT": Why("20m", "A job that stops saves first; five are usual."),
}
_KUBECTL = Step(
    "",
    "curl -fsSLO https://dl.k8s.io/release/v1.34.1/bin/linux/amd64/kubectl\n"
    "curl -fsSLO https://dl.k8s.io/release/v1.34.1/bin/linux/amd64/kubectl.sha256\n"
    'echo "$(cat kubectl.sha256)  kubectl" | sha256sum --check\n'
    "install kubectl /usr/local/bin/",
)


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    found = pipeline.of("gitlab-ci", asked, settings, tool="buildah")
    pipeline.variables(settings)  # they are there for all jobs: only their names are looked at
    ours = Step("", pipeline.installs(settings))
    main = Why([_NO_SCHEDULE, _MAIN, _TAG], "What others propose spends no money.")
    jobs: dict[str, Any] = {
        "test": _job("test", found.test, rules=[_NO_SCHEDULE, {"when": "on_success"}]),
        "rehearse": _job(
            "test", (ours, *found.rehearse), rules=[_NO_SCHEDULE, {"when": "on_success"}]
        ),
        **({"build-image": {  # `image` is a word of its own there
            **_job(
                "image",
                (
                    Step("", "apt-get update\napt-get install -y --no-install-recommends buildah"),
                    ours,
                    *found.image,
                ),
                rules=main,
            ),
            "variables": {
                "REGISTRY": settings["registry"] or "$CI_REGISTRY_IMAGE",
                **({} if settings["registry"] else _OWN),
                "STORAGE_DRIVER": Why("vfs", "Without rights that runners do not have."),
                "BUILDAH_ISOLATION": "chroot",
            },
        }} if found.image else {}),
        "gpu-test": _rented("gpu-test", (ours, *found.gpu_test), found.ends, main, asked),
    }  # fmt: skip
    if found.benchmark:
        jobs["benchmark"] = {
            **_rented("benchmark", (ours, *found.benchmark), found.ends, main, asked),
            "variables": {**_PATIENT, "GIT_DEPTH": Why("2", "With the commit before.")},
        }
    jobs["deploy"] = {
        **_job(
            "deploy",
            (_KUBECTL if asked.serving is not None else ours, *found.deploy),
            rules=Why(
                [_NO_SCHEDULE, {**_TAG, "when": "manual"}],
                "By hand, for a tag: it spends the plan's money.",
            ),
        ),
        "environment": "production",
    }
    jobs["upkeep"] = {
        **_job(
            "deploy",
            (ours, *found.upkeep),
            rules=Why(
                [{"if": "$CI_PIPELINE_SOURCE == 'schedule'"}],
                "A schedule of the project, each ten minutes: interrupted machines are replaced at"
                " the next pass, what nobody claims is ended.",
            ),
        ),
        "resource_group": "upkeep",
    }
    stages = [
        "test",
        *(["image"] if found.image else []),
        "gpu-test",
        *(["benchmark"] if found.benchmark else []),
        "deploy",
    ]
    value = {
        "stages": stages,
        **({"variables": {"TRADEWIND_STORE": settings["store"]}} if settings["store"] else {}),
        "default": {"image": _PYTHON, "interruptible": False},
        **jobs,
    }
    return Exported(
        {".gitlab-ci.yml": File(commented.text(value)), **found.files},
        (*found.notes, "a schedule of the project (Build > Pipeline schedules), each ten minutes"),
    )


def _job(stage: str, steps: Sequence[Step], *, rules: Any) -> dict[str, Any]:
    return {
        "stage": stage,
        "rules": rules,
        "script": [_block(each) for each in steps],
    }


def _rented(
    stage: str, steps: Sequence[Step], ends: Step, rules: Any, asked: Asked
) -> dict[str, Any]:
    return {
        **_job(stage, steps, rules=rules),
        "timeout": "90 minutes",
        "resource_group": Why(
            f"{asked.name}-rented",
            "One at a time: each stops what it finds of the pipeline's runs.",
        ),
        "variables": dict(_PATIENT),
        "after_script": Why([_block(ends)], "Also where the script was cancelled, or failed."),
    }


def _block(step: Step) -> str:
    """In a shell of its own: a folder that it goes to, or a word that ends it, is its own alone."""
    lines = step.script.split("\n")
    if len(lines) == 1 and not lines[0].startswith("cd "):
        return step.script
    inner = "\n".join(f"  {line}" for line in lines)
    return f"(\n  set -e\n{inner}\n)\n"
