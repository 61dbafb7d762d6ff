"""Exports of what was planned earlier, and the command around them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.export import asking
from tradewind.cli.app import run

WORK = str(asking.EXAMPLES / "pretrain-1.3b" / "work.yaml")
CHAT = str(asking.EXAMPLES / "serve-chat" / "chat.yaml")


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00")
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(words) == 0
    return capsys.readouterr().out


PLANNED: list[str] = []
"""What `plan CHAT --json` printed, once: many tests damage it."""


def exported(*words: str) -> dict[str, str]:
    assert run(["export", *words, "--out", "deploy", "--overwrite"]) == 0
    files = (path for path in Path("deploy").iterdir() if path.suffix != ".json")
    return {path.name: path.read_text() for path in files}


def test_a_saved_plan_and_a_printed_one_are_exported_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "printed.json").write_text(printed(capsys, "plan", WORK, "--json"))
    assert run(["plan", WORK, "--out", "saved.json"]) == 0
    folder = ["--folder", str(Path(WORK).parent)]
    one = exported("kubernetes", "printed.json", *folder)["job.yaml"]
    other = exported("kubernetes", "saved.json", *folder)["job.yaml"]
    assert one.replace("printed", "saved") == other
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-25T12:00")  # on any day
    assert exported("kubernetes", "saved.json", *folder)["job.yaml"] == other
    file = exported("kubernetes", WORK)["job.yaml"]
    assert file.partition("apiVersion")[2] == other.partition("apiVersion")[2]


def test_a_printed_plan_of_serving_is_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chat.json").write_text(printed(capsys, "plan", CHAT, "--json"))
    one = exported("kubernetes", "chat.json")
    other = exported("kubernetes", CHAT)
    for name, text in one.items():
        assert text.partition("month.")[2] == other[name].partition("month.")[2], name


@pytest.mark.parametrize(
    "change",
    [
        lambda root: root.pop("workload"),
        lambda root: root.update(best=None),
        lambda root: root["best"].update(pools=[]),
        lambda root: root["best"].update(pools=3),
        lambda root: root["best"]["pools"][0].update(tp="x"),
        lambda root: root["best"]["pools"][0].pop("hours"),
        lambda root: root["workload"].update(serve={"model": 3}),
        lambda root: root["workload"].update(serve=[]),
        lambda root: root.update(made_at="yesterday"),
    ],
)
def test_a_damaged_plan_of_serving_is_no_traceback(
    change: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not PLANNED:
        PLANNED.append(printed(capsys, "plan", CHAT, "--json"))
    root = json.loads(PLANNED[0])
    change(root)
    (tmp_path / "chat.json").write_text(json.dumps(root))
    assert run(["export", "kubernetes", "chat.json", "--out", "deploy"]) == 4
    assert "chat.json" in capsys.readouterr().err


def test_hidden_variables_are_not_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(WORK).read_text() + "  env: {MY_TOKEN: word}\n"
    (tmp_path / "work.yaml").write_text(text)
    (tmp_path / "plan.json").write_text(printed(capsys, "plan", "work.yaml", "--json"))
    assert run(["export", "script", "plan.json", "--out", "deploy"]) == 4
    assert "are hidden" in capsys.readouterr().err
    assert not Path("deploy").exists()


def test_check_writes_nothing_and_tells_by_its_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["export", "script", WORK, "--out", "deploy"]
    assert run([*words, "--check"]) == 1
    assert "would be written" in capsys.readouterr().out
    assert not Path("deploy").exists()
    assert run(words) == 0
    assert run([*words, "--check"]) == 0
    Path("deploy/run.sh").write_text("mine\n")
    assert run([*words, "--check"]) == 1
    assert run(words) == 0
    assert "kept as edited" in capsys.readouterr().out
    assert Path("deploy/run.sh").read_text() == "mine\n"
    assert json.loads(printed(capsys, *words, "--json"))["files"] == [
        {"path": "run.sh", "what": "edited", "kept": True}
    ]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["export"], 2),
        (["export", "scrip", WORK, "--out", "d"], 3),
        (["export", "script", "nowhere.yaml", "--out", "d"], 5),
        (["export", "script", WORK, "--out", "d", "--set", "x"], 2),
        (["export", "script", WORK, "--out", "d", "--set", "x=1"], 2),
        (["export", "script", WORK, "--out", "d", "--overwrite", "--check"], 2),
        (["export", "slurm", CHAT, "--out", "d"], 2),
        (["image", "build", "nowhere", "--file", "d"], 5),
        (["image", "build", ".", "--build-arg", "x"], 2),
    ],
)
def test_what_is_wrong_is_said(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == code
    said = capsys.readouterr().err
    assert "bug" not in said
    assert not Path("d").exists()


def test_kinds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "export", "--list", "--json"))
    assert {"kind", "words", "takes", "settings"} <= set(found[0])
