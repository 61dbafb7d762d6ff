"""The line that is offered works where cron would run it: with next to no environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tradewind.cli.runs import crontab


def test_it_is_offered_once(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crontab.offer("s3://runs/here")
    assert "tick --store s3://runs/here" in capsys.readouterr().out
    crontab.offer("s3://runs/here")
    assert capsys.readouterr().out == ""


def test_where_it_cannot_be_remembered_it_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "file" / "home"))
    crontab.offer("s3://runs/here")
    assert capsys.readouterr().out == ""


def test_cron_can_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "50% of it"
    store.mkdir()
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "own home"))
    line = crontab.line(str(store))
    schedule, command = line[:10], line[10:].replace("\\%", "%")  # as cron does
    assert schedule == "* * * * * "
    assert "%" not in line.replace("\\%", "")
    shown = command.removesuffix(" >/dev/null 2>&1")
    assert shown != command
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LOGNAME": "somebody"}
    ran = subprocess.run(
        ["/bin/sh", "-c", shown], env=env, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "no runs are running\n"), ran.stderr
    assert (tmp_path / "own home").is_dir()


def test_what_sleep_means_is_said_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crontab.asleep("s3://runs/here")
    said = " ".join(capsys.readouterr().out.split())
    assert "tick --store s3://runs/here" in said
    assert "nobody replaces those that are taken" in said
    crontab.asleep("s3://runs/here")
    assert capsys.readouterr().out == ""
