"""`github-actions`: workflows that test, rehearse, rent a GPU for minutes, and deploy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.export import commented, pipeline, registry
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Exported, File, Setting
from tradewind.export.pipeline import Pipeline, Step

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS: tuple[Setting, ...] = pipeline.SETTINGS
_FOLDER = ".github/workflows"
_RUNNER = "ubuntu-latest"
# By their commits: a tag of an action can be moved to another one.
_CHECKOUT = "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0"
_PYTHON = "actions/setup-python@e797f83bcb11b83ae66e0230d6156d7c80228e7c # v6.0.0"
_ENDS_MIN = 20
_NOT_OF_FORKS = (
    "github.event_name != 'pull_request'",
    "What others propose gets no logins and spends no money.",
)


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    found = pipeline.of("github-actions", asked, settings, tool="docker")
    name = re.sub(r"[^a-z0-9]+", "-", asked.name.lower()).strip("-") or "job"
    workflow = {
        "name": asked.name,
        "on": {
            "push": {"branches": ["main"], "tags": ["v*"]},
            "pull_request": {},
            "workflow_dispatch": {},
        },
        "permissions": {"contents": "read"},
        "jobs": _jobs(found, name, settings),
    }
    upkeep = {
        "name": f"{asked.name}, upkeep",
        "on": {
            "schedule": Why(
                [{"cron": "*/10 * * * *"}],
                "Interrupted machines are replaced at the next pass, what nobody claims is ended.",
            ),
            "workflow_dispatch": {},
        },
        "permissions": {"contents": "read"},
        "concurrency": {"group": f"{name}-upkeep", "cancel-in-progress": False},
        "jobs": {
            "upkeep": _job((_ours(settings), *found.upkeep), minutes=30, env=_logins(settings))
        },
    }
    return Exported(
        {
            f"{_FOLDER}/{name}.yml": File(_text(workflow)),
            f"{_FOLDER}/{name}-upkeep.yml": File(_text(upkeep)),
            **found.files,
        },
        found.notes,
    )


def _jobs(found: Pipeline, name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    ours, logins = _ours(settings), _logins(settings)
    jobs: dict[str, Any] = {
        "test": _job(found.test, minutes=30),
        "rehearse": _job((ours, *found.rehearse), minutes=30),
    }
    if found.image:
        jobs["image"] = {
            **_job(
                (ours, *found.image), minutes=60, needs=["test"],
                condition=_NOT_OF_FORKS, env=_registry(settings),
            ),
            "permissions": {"contents": "read", "packages": "write"},
        }  # fmt: skip
    jobs["gpu-test"] = _rented(
        name, (ours, *found.gpu_test), found.ends, needs=["test", "rehearse"], env=logins
    )
    if found.benchmark:
        jobs["benchmark"] = _rented(
            name, (ours, *found.benchmark), found.ends, needs=["gpu-test"], env=logins, depth=2
        )
    jobs["deploy"] = {
        **_job(
            (ours, *found.deploy), minutes=30, env=logins,
            needs=[*(["image"] if found.image else []), "gpu-test"],
            condition=("startsWith(github.ref, 'refs/tags/v')",
                       "By a tag such as v1: it spends the plan's money."),
        ),
        "environment": Why(
            "production", "Whoever has to approve is said in the repository's settings."
        ),
    }  # fmt: skip
    return jobs


def _rented(
    name: str,
    steps: Sequence[Step],
    ends: Step,
    *,
    needs: Sequence[str],
    env: Mapping[str, str],
    depth: int = 1,
) -> dict[str, Any]:
    """A job that rents a machine, and ends it."""
    last = {
        "name": ends.name,
        "if": Why("always()", "Also where the steps before were cancelled, or failed."),
        "timeout-minutes": _ENDS_MIN,
        "run": ends.script + "\n",
    }
    return {
        **_job(
            steps, minutes=90, needs=needs, condition=_NOT_OF_FORKS, env=env, depth=depth, last=last
        ),
        "concurrency": Why(
            {"group": f"{name}-rented", "cancel-in-progress": False},
            "One at a time: each stops what it finds of the pipeline's runs.",
        ),
    }


def _job(
    steps: Sequence[Step],
    *,
    minutes: int,
    needs: Sequence[str] = (),
    condition: tuple[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    depth: int = 1,
    last: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    before = [
        {
            "uses": _CHECKOUT,
            "with": {
                "persist-credentials": False,
                **({"fetch-depth": Why(depth, "With the commit before.")} if depth > 1 else {}),
            },
        },
        {"uses": _PYTHON, "with": {"python-version": "3.12"}},
    ]
    return {
        **({"needs": list(needs)} if needs else {}),
        **({"if": Why(*condition)} if condition else {}),
        "runs-on": _RUNNER,
        "timeout-minutes": minutes,
        **({"env": dict(env)} if env else {}),
        "steps": [
            *before,
            *({"name": each.name, "run": each.script + "\n"} for each in steps),
            *([dict(last)] if last else []),
        ],
    }


def _ours(settings: Mapping[str, str]) -> Step:
    return Step("Tradewind", pipeline.installs(settings))


def _logins(settings: Mapping[str, str]) -> dict[str, str]:
    """Of what rents: to the store and to the clouds."""
    return {
        "TRADEWIND_STORE": settings["store"] or "${{ vars.TRADEWIND_STORE }}",
        **{each: f"${{{{ secrets.{each} }}}}" for each in pipeline.variables(settings)},
    }


def _registry(settings: Mapping[str, str]) -> dict[str, str]:
    if settings["registry"]:
        return {
            "REGISTRY": settings["registry"],
            "REGISTRY_USER": "${{ secrets.REGISTRY_USER }}",
            "REGISTRY_PASSWORD": "${{ secrets.REGISTRY_PASSWORD }}",
        }
    return {
        "REGISTRY": "ghcr.io/${{ github.repository_owner }}",
        "REGISTRY_USER": "${{ github.actor }}",
        "REGISTRY_PASSWORD": "${{ github.token }}",
    }


def _text(value: Mapping[str, Any]) -> str:
    """The commit of an action stands without quotes, with its version as a comment."""
    text = commented.text(dict(value))
    for each in (_CHECKOUT, _PYTHON):
        text = text.replace(f"'{each}'", each)
    return text
