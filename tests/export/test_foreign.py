"""Files of others as workload files: what they say is kept, what has no place is named."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export import asking
from tradewind import workload
from tradewind.base.errors import BadFile
from tradewind.cli.app import run
from tradewind.export import commented, making
from tradewind.export.foreign import found as foreign
from tradewind.export.foreign import kinds
from tradewind.export.foreign.found import Found

names = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
words = st.text(
    st.characters(codec="ascii", exclude_characters="\\", categories=("L", "N", "P", "S", "Zs")),
    min_size=1, max_size=12,
).map(str.strip).filter(bool)  # fmt: skip
made = st.builds(
    Found,
    name=names,
    command=st.builds(
        lambda script, options: f"torchrun {script}.py {shlex.join(options)}".strip(),
        names, st.lists(words, max_size=3),
    ),
    setup=st.sampled_from(["", "pip install -r requirements.txt", "pip install a\npip install b"]),
    env=st.dictionaries(names.map(lambda n: f"MY_{n.upper()}"), words, max_size=3),
    accelerator=st.just("A100-80GB"),
    count=st.integers(1, 8),
    nodes=st.integers(1, 4),
    hours=st.integers(1, 72).map(float),
)  # fmt: skip


def sky(of: Found) -> str:
    return yaml.safe_dump(
        {"name": of.name, "num_nodes": of.nodes, "setup": of.setup, "run": of.command,
         "envs": of.env, "resources": {"accelerators": f"{of.accelerator}:{of.count}"}}
    )  # fmt: skip


def dstack(of: Found) -> str:
    return yaml.safe_dump(
        {"type": "task", "name": of.name, "nodes": of.nodes, "env": of.env,
         "commands": [*of.setup.splitlines(), of.command],
         "max_duration": f"{of.hours:.0f}h",
         "resources": {"gpu": {"name": of.accelerator, "count": of.count}}}
    )  # fmt: skip


def sbatch(of: Found) -> str:
    env = "".join(f"export {name}={shlex.quote(each)}\n" for name, each in of.env.items())
    return (
        f"#!/bin/sh\n#SBATCH --job-name={of.name} --nodes={of.nodes}\n"
        f"#SBATCH --gres=gpu:{of.accelerator}:{of.count}\n#SBATCH -t {of.hours:.0f}:00:00\n"
        f"set -e\n{env}{of.setup}\nsrun {of.command}\n"
    )


def dockerfile(of: Found) -> str:
    env = "".join(f"ENV {name}={shlex.quote(each)}\n" for name, each in of.env.items())
    setup = "".join(f"RUN {line}\n" for line in of.setup.splitlines())
    return f"FROM base\n{env}{setup}CMD {json.dumps(['/bin/sh', '-c', of.command])}\n"


def same(kind: str, back: Found, of: Found) -> None:
    if kind == "dstack":
        assert back.command == "\n".join([*of.setup.splitlines(), of.command])
    else:
        assert (back.command, back.setup) == (of.command, of.setup)
    assert back.env == of.env
    if kind != "dockerfile":
        assert (back.name, back.nodes, back.count) == (of.name, of.nodes, of.count)
        assert back.accelerator == of.accelerator
    if kind in ("dstack", "sbatch"):
        assert back.hours == of.hours


@pytest.mark.parametrize("write", [sky, dstack, sbatch, dockerfile])
@settings(max_examples=40, deadline=None)
@given(of=made)
def test_what_was_written_is_read_again(write: Any, of: Found) -> None:
    text = write(of)
    kind = write.__name__
    assert kinds.guessed("a file", text) == kind
    back = kinds.read(kind, text)
    same(kind, back, of)
    # And the workload file that comes of it says it, too.
    plain = yaml.safe_load(
        commented.text(foreign.document(back, {"gpus": f"A100-80GB:{back.count}"}))
    )
    work = workload.of(plain)
    assert work.machines is not None
    assert (work.machines.count, work.machines.nodes) == (back.count, back.nodes)
    assert work.run is not None
    assert work.run.command.strip() == back.command.strip()
    assert {**work.run.env} == {k: v for k, v in back.env.items() if k in work.run.env}


def test_an_exported_dockerfile_is_read_again() -> None:
    asked = asking.example("pretrain-1.3b")
    found = kinds.read("dockerfile", making.made("dockerfile", asked).files["Dockerfile"].text)
    assert "torchrun" in found.command
    assert found.command.endswith("train.py")
    plain = foreign.document(found, {"gpus": "L40S"})
    assert not [name for name in plain["run"].get("env", {}) if name.startswith("TRADEWIND_")]


@pytest.mark.parametrize(
    ("kind", "text", "left"),
    [
        ("sky", "run: python a.py\nfile_mounts: {/d: s3://b/d}\n", "file_mounts"),
        ("sky", "run: python a.py $SKYPILOT_NODE_RANK\n", "$SKYPILOT_NODE_RANK is not set"),
        ("sky", "run: python a.py\nresources: {image_id: ami-1}\n", "no container image"),
        ("sbatch", "#SBATCH --array=1-9\nmodule load cuda\nsrun python a.py\n", "module load cuda"),
        ("sbatch", "#SBATCH --array=1-9\nsrun python a.py\n", "--sweep"),
        ("sbatch", "#SBATCH -N 2\nsrun python a.py $SLURM_PROCID\n", "$SLURM_PROCID is not set"),
        ("dockerfile", "FROM a AS b\nFROM c\nEXPOSE 80\nCMD python a.py\n", "EXPOSE 80"),
        ("dstack", "type: task\ncommands: [python a.py]\npython: '3.12'\n", "python 3.12"),
        ("estimator", '{"entry_point": "a.py", "instance_type": "ml.x", "role": "r"}', "role"),
    ],
)
def test_what_has_no_place_is_named(kind: str, text: str, left: str) -> None:
    found = kinds.read(kind, text)
    assert found.command.startswith("python a.py")
    assert [each for each in found.left if left in each]


def test_secrets_are_named_and_not_carried_over() -> None:
    token = "hf_" + "a1B2" * 10
    found = kinds.read(
        "sky", yaml.safe_dump({"run": "python a.py", "envs": {"A": token, "B": "1"}})
    )
    text = commented.text(foreign.document(found, {"gpus": "T4"}))
    assert token not in text
    assert any("looks like a secret" in each for each in found.left)


@pytest.mark.parametrize("kind", kinds.KINDS)
@pytest.mark.parametrize("text", ["", "[]", "{", "a: [", "#SBATCH", "FROM x", "type: task", "\0"])
def test_what_is_no_such_file_is_said(kind: str, text: str) -> None:
    with pytest.raises(BadFile) as caught:
        kinds.read(kind, text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sky", "name: 2024-13-45\nrun: a\n"),
        ("sky", "name: !!int abc\nrun: a\n"),
        ("sky", "a: &a [x]\nb: &b [*a, *a]\nrun: *b\n"),
        ("dstack", f"type: task\nenv: {'[' * 60}{']' * 60}\n"),
        ("sbatch", '#SBATCH --comment="it\npython a.py\n'),
        ("sbatch", "#SBATCH -N 1\nexport A=\"it's\npython a.py\n"),
        ("dockerfile", "FROM\nCMD python a.py\n"),
        ("dockerfile", "FROM a\nRUN <<EOF\npip install b\nEOF\nCMD python a.py\n"),
    ],
)
def test_what_its_own_tool_would_not_take_is_refused(kind: str, text: str) -> None:
    with pytest.raises(BadFile) as caught:
        kinds.read(kind, text)
    assert caught.value.hint


def test_a_shell_without_a_command_is_kept() -> None:
    assert kinds.read("dockerfile", 'FROM a\nCMD ["sh", "-c"]\n').command == "sh -c"


def test_a_limit_that_is_no_number_is_none() -> None:
    text = '{"entry_point": "a.py", "instance_type": "ml.x", "max_run": true}'
    assert kinds.read("estimator", text).hours is None


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200), kind=st.sampled_from(sorted(kinds.KINDS)))
def test_any_text_is_read_or_refused(text: str, kind: str) -> None:
    try:
        kinds.read(kind, text)
    except BadFile:
        return


def test_what_it_shows_is_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("a\nname: x").write_text("FROM a\nEXPOSE \x1b]0;title\x07\nCMD python a.py\n")
    assert run(["import", "a\nname: x", "--accelerator", "T4"]) == 0
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert "# Made of a name: x by `tradewind import`.\n" in told.out


def test_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    text = '{"entry_point": "a.py", "instance_type": "ml.p4d.24xlarge", "instance_count": 2}'
    Path("job.json").write_text(text)
    assert run(["import", "job.json", "--out", "work.yaml"]) == 0
    work = workload.load("work.yaml")
    assert work.machines is not None
    assert (work.machines.type, work.machines.nodes) == ("p4d.24xlarge", 2)
    assert "type: p4d.24xlarge" in Path("work.yaml").read_text()
    assert run(["import", "job.json", "--out", "work.yaml"]) == 2
    assert "there already" in capsys.readouterr().err
    Path("Dockerfile").write_text("FROM a\nCMD python a.py\n")
    assert run(["import", "Dockerfile"]) == 3
    assert "--accelerator" in capsys.readouterr().err
    assert run(["import", "Dockerfile", "--accelerator", "2xT4"]) == 0
    assert "gpus: T4:2" in capsys.readouterr().out
    Path("x.txt").write_text("hello\n")
    assert run(["import", "x.txt"]) == 4


@pytest.mark.parametrize(
    ("resources", "lines"),
    [
        ("{accelerators: {A100-80GB: 4}, disk_size: 500}", ["gpus: A100-80GB:4", "disk: 500GB"]),
        ("{cpus: 8+, memory: 32+}", ["cpus: 8", "ram: 32GB"]),
        ("{instance_type: p5.48xlarge, use_spot: false}", ["type: p5.48xlarge", "- on_demand"]),
    ],
)
def test_the_machines_of_a_task_are_named_exactly(
    resources: str,
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("sky.yaml").write_text(f"num_nodes: 2\nresources: {resources}\nrun: python a.py\n")
    assert run(["import", "sky.yaml"]) == 0
    told = capsys.readouterr()
    assert {*lines, "nodes: 2"} <= {line.strip() for line in told.out.splitlines()}
    assert "not carried over" not in told.err
