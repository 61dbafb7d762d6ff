"""Pipelines: by the published schemas of both hosts, their steps by shellcheck, and what they read
planned and run. `tests/system/export/test_pipelines.py` has actionlint, and cancels them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests import cases
from tests.export import asking
from tradewind import workload
from tradewind.export import making
from tradewind.export.asked import Asked
from tradewind.export.exported import Refused
from tradewind.model import Job

BIN = Path(sys.executable).parent
SCHEMAS = Path(str(files_of("check_jsonschema"))) / "builtin_schemas" / "vendor"
KINDS = {"github-actions": "github-workflows", "gitlab-ci": "gitlab-ci"}
# Plans are what takes long.
OFTEN = ("tiny-gpt", "pretrain-1.3b", "serve-chat")
EXAMPLES = cases.and_long(OFTEN, asking.NAMES)
ALL = dict.fromkeys(("test", "rehearse", "gpu_test", "benchmark"), "python a.py | tee out") | {
    "on": "local",
    "market": "any",
    "secrets": "KEY_ID, KEY",
    "registry": "r.example.com/team",
}


@cache
def schema(kind: str) -> Any:
    found = json.loads((SCHEMAS / f"{KINDS[kind]}.json").read_text())
    return jsonschema.validators.validator_for(found)(found)


def files(kind: str, asked: Asked, **settings: str) -> dict[str, str]:
    return {path: f.text for path, f in making.made(kind, asked, settings).files.items()}


def pipelines(found: dict[str, str]) -> Iterator[dict[str, Any]]:
    for path, text in sorted(found.items(), key=lambda one: "upkeep" in one[0]):
        if path == ".gitlab-ci.yml" or path.startswith(".github/"):
            # YAML 1.1 reads `on` without quotes as true; the hosts do not
            yield yaml.safe_load(text)


def scripts(kind: str, body: dict[str, Any]) -> Iterator[str]:
    if kind == "github-actions":
        for job in body["jobs"].values():
            yield from (step["run"] for step in job["steps"] if "run" in step)
    else:
        for job in body.values():
            if isinstance(job, dict):
                yield from (*job.get("script", ()), *job.get("after_script", ()))


def variants(name: str) -> Iterator[dict[str, str]]:
    yield {}
    trained = asking.example(name).serving is None
    yield ALL if trained else {k: v for k, v in ALL.items() if k not in ("rehearse", "benchmark")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_they_are_as_the_schemas_have_them(kind: str, name: str) -> None:
    for settings in variants(name):
        found = list(pipelines(files(kind, asking.example(name), **settings)))
        assert found
        for body in found:
            assert [e.message for e in schema(kind).iter_errors(body)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_schemas_find_what_is_wrong(kind: str) -> None:
    (body, *_) = pipelines(files(kind, asking.example("tiny-gpt")))
    job = body["jobs"]["test"] if kind == "github-actions" else body["test"]
    job["timeout-minutes" if kind == "github-actions" else "rules"] = {"no": "such"}
    assert list(schema(kind).iter_errors(body))


@pytest.mark.parametrize("name", EXAMPLES)
def test_shellcheck_finds_nothing_in_their_steps(name: str, tmp_path: Path) -> None:
    said = []
    for kind in KINDS:
        for settings in variants(name):
            found = files(kind, asking.example(name), **settings)
            said += [script for body in pipelines(found) for script in scripts(kind, body)]
            said += [text for path, text in found.items() if path.endswith(".sh")]
            said += [
                yaml.safe_load(text)["run"]["command"]
                for path, text in found.items()
                if path.startswith("ci/") and path.endswith(".yaml")
            ]
    for number, script in enumerate(dict.fromkeys(said)):
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
        (tmp_path / f"{number}.sh").write_text(text)
    paths = sorted(tmp_path.glob("*.sh"))
    assert len(paths) > 15
    done = subprocess.run(
        [BIN / "shellcheck", "--color=never", *paths], capture_output=True, text=True
    )
    assert done.stdout + done.stderr == ""


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_their_steps_run_are_workloads(name: str, tmp_path: Path) -> None:
    """Within the limits of the work itself, with an end and a budget."""
    asked = asking.example(name)
    found = files("github-actions", asked)
    for path, text in found.items():
        if path.startswith("ci/") and path.endswith(".yaml"):
            (tmp_path / "work.yaml").write_text(text)
            work = workload.load(tmp_path / "work.yaml", now=asking.DAY)
            assert work.run is not None
            assert work.run.max_duration_s
            assert work.limits.regions == asked.workload.limits.regions
            assert work.limits.providers == asked.workload.limits.providers
            if "rehearse" not in path:
                assert work.limits.markets == ("spot",)
                assert work.limits.budget
                assert work.run.on_idle == "stop"


def test_the_gpu_test_can_be_planned() -> None:
    asked = asking.example("tiny-gpt")
    text = files("gitlab-ci", asked)["ci/gpu-test.yaml"]
    plan = asking.of(yaml.safe_load(text)).plan
    assert plan is not None
    assert plan.accelerator == asked.chip.name
    assert plan.markets == ("spot",)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_rents_is_ended_always(kind: str) -> None:
    (body, *_) = pipelines(files(kind, asking.example("tiny-gpt")))
    jobs = body["jobs"] if kind == "github-actions" else body
    for name in ("gpu-test", "benchmark"):
        job = jobs[name]
        if kind == "github-actions":
            last = job["steps"][-1]
            assert last["if"] == "always()"
            assert job["concurrency"]["cancel-in-progress"] is False
            ends, said = last["run"], "".join(s.get("run", "") for s in job["steps"])
        else:
            (ends,), said = job["after_script"], "".join(job["script"])
            assert job["resource_group"] == "tiny-gpt-rented"
            limits = ("RUNNER_SCRIPT_TIMEOUT", "RUNNER_AFTER_SCRIPT_TIMEOUT")
            minutes = sum(int(job["variables"][each].removesuffix("m")) for each in limits)
            assert minutes < int(job["timeout"].removesuffix(" minutes")), "what ends it is not run"
        assert "tradewind stop --tag ci=tiny-gpt &&" in ends
        assert "tradewind sweep --yes" in ends
        assert "--tag ci=tiny-gpt --yes" in said


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_waits_for_an_image_that_cannot_be_made(kind: str) -> None:
    """Of a plan that `export dockerfile` refuses, the training would never begin."""
    for asked, there in ((asking.example("tiny-gpt"), False), (asking.at("tiny-gpt", "aws", "T4"),
                                                               True)):  # fmt: skip
        made = making.made(kind, asked, {})
        (body, *_) = pipelines({path: file.text for path, file in made.files.items()})
        jobs = body["jobs"] if kind == "github-actions" else body
        assert ("image" in jobs or "build-image" in jobs) is there
        assert any("without an image" in each and "T4g" in each for each in made.notes) is not there
        if kind == "github-actions":
            assert jobs["deploy"]["needs"] == [*(["image"] if there else []), "gpu-test"]
        else:
            assert ("image" in body["stages"]) is there


def test_a_narrowed_plan_is_narrowed_for_its_image_too() -> None:
    narrowed = "tradewind export github-actions job/work.yaml --accelerator T4 --provider='aws*'"
    asked = replace(asking.at("tiny-gpt", "aws", "T4"), command=narrowed, file_path="job/work.yaml")
    made = making.made("github-actions", asked)
    command = (
        "tradewind export dockerfile job/work.yaml --accelerator T4 '--provider=aws*'"
        " --out ci/image"
    )
    assert f"the image's Dockerfile: {command}" in made.notes
    assert command.replace("'", "") in made.files[".github/workflows/tiny-gpt.yml"].text.replace(
        "'\"'\"'", ""
    ).replace("'", "")
    assert any("plans anew, without --accelerator T4" in each for each in made.notes)


def test_logins_are_names_alone_and_not_of_forks() -> None:
    asked = asking.at("tiny-gpt", "aws", "T4")
    (body, *_) = pipelines(files("github-actions", asked, secrets="KEY_ID,KEY"))
    assert body["jobs"]["gpu-test"]["env"]["KEY"] == "${{ secrets.KEY }}"
    for name in ("gpu-test", "benchmark", "image"):
        assert body["jobs"][name]["if"] == "github.event_name != 'pull_request'"
    for name in ("test", "rehearse"):
        assert "env" not in body["jobs"][name]
    with pytest.raises(Refused, match="no name of a variable"):
        files("github-actions", asked, secrets="KEY=word")


def test_what_is_no_part_of_a_service_is_refused() -> None:
    with pytest.raises(Refused, match="benchmark is of trainings"):
        files("gitlab-ci", asking.example("serve-chat"), benchmark="x")


CLOCK = {
    "date": '#!/bin/sh\ncat "$CLOCK"\n',
    "sleep": '#!/bin/sh\necho $(($(cat "$CLOCK") + $1 * 1000000000)) > "$CLOCK"\n',
}
"""Time passes by sleeping alone, however busy this computer is."""


def compared(tmp_path: Path, before: str, after: str) -> subprocess.CompletedProcess[str]:
    asked = asking.example("tiny-gpt")
    work = replace(asked.workload, run=Job(command="sh job.sh"))
    found = files("github-actions", replace(asked, workload=work, job_path="job"))
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "compare.sh").write_text(found["ci/compare.sh"])
    for name, script in (("before", before), ("after", after)):
        (tmp_path / name / "job").mkdir(parents=True)
        (tmp_path / name / "job" / "job.sh").write_text(script)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, script in CLOCK.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    (programs / "clock").write_text("0")
    return subprocess.run(
        ["sh", "compare.sh"], cwd=tmp_path, capture_output=True, text=True,
        env={"PATH": f"{programs}:/usr/bin:/bin", "TRADEWIND_RUN": "r",
             "CLOCK": str(programs / "clock")},
    )  # fmt: skip


STEPS = """\
test -z "$TRADEWIND_RUN"; test ! -e left; : > left
echo '{"step": %d}' > "$TRADEWIND_PROGRESS"
sleep 2
"""


def test_two_commits_are_compared_by_their_steps(tmp_path: Path) -> None:
    same = compared(tmp_path / "same", "set -e\n" + STEPS % 100, "set -e\n" + STEPS % 100)
    assert same.returncode == 0, same.stderr
    assert same.stdout == "step: before 20000 µs, after 20000 µs, 100 %\n"
    slower = compared(tmp_path / "slower", STEPS % 100, STEPS % 50)
    assert slower.returncode == 1
    assert "slower than the last commit by more than 10 %" in slower.stderr


@pytest.mark.parametrize(
    ("after", "code", "words"),
    [
        ("sleep 2\n", 2, "one tells of steps and the other does not"),
        ("exit 3\n", 3, ""),
    ],
)
def test_what_cannot_be_compared_is_said(after: str, code: int, words: str, tmp_path: Path) -> None:
    done = compared(tmp_path, STEPS % 100, after)
    assert done.returncode == code
    assert words in done.stderr
