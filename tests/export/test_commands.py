"""Compose files, shell scripts, Makefiles and batch scripts: by the field's linters and schemas,
and run as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.export import asking
from tests.export.linting import linted
from tradewind.base.errors import InvalidValue
from tradewind.export import commented, folder, making
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Refused
from tradewind.model import Job

BIN = Path(sys.executable).parent
NVIDIA = "#!/bin/sh\nfor each in 1 2 3 4 5 6 7 8; do echo L40S; done\n"
SCRIPT = """\
import os, pathlib
assert pathlib.Path("prepared").read_text() == "once\\n", "the setup was done once"
print("greeting", os.environ["GREETING"], "layout", "TRADEWIND_LAYOUT" in os.environ)
"""


def text(kind: str, asked: Asked, **settings: str) -> str:
    files = making.made(kind, asked, settings).files
    name = {"compose": "compose.yaml", "script": "run.sh", "makefile": "Makefile"}
    return files[name.get(kind, "job.sbatch")].text


def with_job(**fields: Any) -> Asked:
    asked = asking.example("pretrain-1.3b")
    return replace(asked, workload=replace(asked.workload, run=Job(**fields)), job_path="..")


def test_shellcheck_finds_what_is_wrong(tmp_path: Path) -> None:
    assert "SC2086" in linted("#!/bin/sh\nls $1\n", tmp_path)


@pytest.mark.parametrize("kind", ["script", "slurm"])
@pytest.mark.parametrize("name", asking.NAMES)
def test_shellcheck_finds_nothing(kind: str, name: str, tmp_path: Path) -> None:
    try:
        script = text(kind, asking.example(name))
    except Refused:
        return
    assert linted(script, tmp_path) == ""


SWEEP = "LR=1e-3,it's SEED=1,2"


def test_a_sweep_is_an_array_on_slurm(tmp_path: Path) -> None:
    script = text("slurm", asking.example("continue-70b-eu"), sweep=SWEEP, at_once="2")
    assert linted(script, tmp_path) == ""
    assert "#SBATCH --array=0-3%2\n" in script
    assert "  1) export LR=1e-3 SEED=2 ;;\n" in script
    assert "$SLURM_JOB_ID" not in script, "Slurm may take it for all of the array"
    assert "--array" not in text("slurm", asking.example("continue-70b-eu"))


@pytest.mark.parametrize(
    ("settings", "words", "hint"),
    [
        ({"sweep": "LR"}, "sweep: LR: it is NAME=VALUE,VALUE…", "LR=1e-3,1e-4"),
        ({"sweep": "LR=1,1"}, "a value is empty or there twice", "LR=1e-3,1e-4"),
        ({"sweep": "LR=1 LR=2"}, "sweep: LR is there twice", "LR=1e-3,1e-4"),
        ({"at_once": "2"}, "at_once is for a sweep", "--set sweep="),
        ({"sweep": "A=1,2", "at_once": "0"}, "at_once=0 is no number of tasks", "at_once=4"),
        ({"sweep": "A=1,2", "at_once": "two"}, "at_once=two is no number of tasks", "at_once=4"),
        ({"sweep": f"A={','.join(map(str, range(1001)))}"}, "1001 combinations", "some of the"),
        (
            {"sweep": "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
            "sweep: AWS_SECRET_ACCESS_KEY looks like", "run.secrets",
        ),
    ],
)  # fmt: skip
def test_a_sweep_that_makes_no_sense_is_refused(
    settings: dict[str, str], words: str, hint: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        text("slurm", asking.example("continue-70b-eu"), **settings)
    assert words in caught.value.message
    assert hint in (caught.value.hint or "")


def test_shellcheck_finds_nothing_in_scripts_of_several_replicas(tmp_path: Path) -> None:
    asked = asking.example("serve-chat")
    assert asked.serving is not None
    pool = replace(asked.serving.pools[0], replicas=2, tp=2)
    script = text("script", replace(asked, serving=replace(asked.serving, pools=(pool,))))
    assert "CUDA_VISIBLE_DEVICES=2,3" in script
    assert "--port=8001" in script
    assert linted(script, tmp_path) == ""


@pytest.mark.parametrize("name", asking.NAMES)
def test_compose_files_are_as_the_schema_has_them(name: str, tmp_path: Path) -> None:
    try:
        found = text("compose", asking.example(name))
    except Refused:
        return
    (tmp_path / "compose.yaml").write_text(found)
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec",
         tmp_path / "compose.yaml"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_replicas_of_a_machine_have_gpus_of_their_own() -> None:
    asked = asking.example("serve-chat")
    assert asked.serving is not None
    pool = replace(asked.serving.pools[0], replicas=2, tp=2)
    asked = replace(asked, serving=replace(asked.serving, pools=(pool,)))
    services = yaml.safe_load(text("compose", asked))["services"]
    devices = [
        each["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"]
        for each in services.values()
    ]
    assert devices == [["0", "1"], ["2", "3"]]
    assert [each["ports"] for each in services.values()] == [
        ["127.0.0.1:8000:8000"],
        ["127.0.0.1:8001:8000"],
    ]


def test_compose_fills_in_secrets_and_nothing_else() -> None:
    asked = with_job(command="python a.py", env={"A": "$HOME"}, secrets={"T": "file:~/t"})
    env = yaml.safe_load(text("compose", asked))["services"]["job"]["environment"]
    assert env["A"] == "$$HOME"
    assert env["T"] == "${T:?a secret, kept in file:~/t}"


@pytest.mark.parametrize("kind", ["compose", "script", "makefile"])
def test_several_machines_are_refused(kind: str) -> None:
    with pytest.raises(Refused) as caught:
        making.made(kind, asking.example("continue-70b-eu"))
    assert "kubernetes or slurm" in (caught.value.hint or "")


# -- run ------------------------------------------------------------------------------------------


def placed(kind: str, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """An export beside a job, on a computer that says it has eight GPUs."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "nvidia-smi").write_text(NVIDIA)
    (tools / "nvidia-smi").chmod(0o755)
    (tmp_path / "job.py").write_text(SCRIPT)
    asked = with_job(
        command=f"{sys.executable} job.py",
        setup="echo once >> prepared",
        env={"GREETING": 'it\'s "so" $HOME #1'},
        secrets={"TOKEN": "file:~/t"},
    )
    out = tmp_path / "deploy"
    exported = making.made(kind, asked)
    folder.write(out, kind, folder.compared(out, kind, exported), overwrite=False)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return out, {"PATH": path, "HOME": str(tmp_path), "TOKEN": "x"}


def test_a_script_sets_up_once_and_runs_the_job(tmp_path: Path) -> None:
    out, env = placed("script", tmp_path)
    for _ in range(2):
        done = subprocess.run([out / "run.sh"], env=env, capture_output=True, text=True)
        assert done.stdout == 'greeting it\'s "so" $HOME #1 layout True\n', done.stderr
    del env["TOKEN"]
    done = subprocess.run([out / "run.sh"], env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert "TOKEN: a secret, kept in file:~/t" in done.stderr


@pytest.mark.parametrize("kind", ["script", "makefile"])
def test_a_machine_with_less_than_planned_is_refused(kind: str, tmp_path: Path) -> None:
    out, env = placed(kind, tmp_path)
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\necho L40S\n")
    (tmp_path / "prepared").write_text("once\n")
    (tmp_path / ".prepared").touch()
    command: list[Any] = [out / "run.sh"] if kind == "script" else ["make", "-C", out, "run"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert "here are 1 accelerators, and the plan has 8 × L40S" in done.stderr
    done = subprocess.run(command, env={**env, "ANYWAY": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_makefile_runs_the_job(tmp_path: Path) -> None:
    out, env = placed("makefile", tmp_path)
    make = ["make", "-s", "-C", str(out)]
    assert b"make run" in subprocess.run(make, env=env, check=True, capture_output=True).stdout
    subprocess.run([*make, "setup"], env=env, check=True)
    done = subprocess.run([*make, "run"], env=env, capture_output=True, text=True)
    assert done.stdout == 'greeting it\'s "so" $HOME #1 layout True\n', done.stderr


# -- YAML with comments ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": [1, "x", {"c": None, "d": []}], "e": {}},
        {"a": "yes", "b": "1", "c": "", "d": ": #", "e": "- x", "f": "null", "g": "a\tb", "h": "é"},
        {"a": "one\ntwo\n", "b": "one\ntwo", "c": "one\n\n  two\n", "d": "x\n\n", "e": " a\nb"},
        {"a": "trailing \nblank\n", "b": "\nfirst", "c": "a\u2028b\nc", "d": "\x07\n"},
        {"a": [["x", 1], {"b": {"c": ["d"]}, "e": "f\ng"}, "h\ni\n"], "true": True},
    ],
)
def test_yaml_reads_as_it_was(value: Any) -> None:
    assert yaml.safe_load(commented.text(value)) == value


def test_reasons_stand_above_their_figures() -> None:
    value = {"a": Why(1, "as the plan says"), "b": [Why({"c": 2}, "why not")]}
    assert commented.text(value) == "# as the plan says\na: 1\nb:\n# why not\n- c: 2\n"
    assert commented.plain(value) == {"a": 1, "b": [{"c": 2}]}
