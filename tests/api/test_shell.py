"""How to come to a machine."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tradewind.api import shell
from tradewind.base.errors import MissingExtra
from tradewind.model.run import Machine


def machine(name: str) -> Machine:
    return Machine(
        machine_id=name, launch_id="run-1-1", run_id="run-1", leg=1, rank=0, launched_s=1
    )


AWS = machine("aws-eu-west-1-i-0123456789abcdef0")


def test_a_machine_of_aws_is_reached_without_a_port() -> None:
    assert shell.command(AWS) == shlex.split(
        "aws ssm start-session --region eu-west-1 --target i-0123456789abcdef0"
    )
    told = shell.command(AWS, words=["sh", "-c", 'nvidia-smi --query-gpu=name,uuid && echo "a b"'])
    (line,) = json.loads(told[-1])["command"]
    assert shlex.split(line) == ["sh", "-c", 'nvidia-smi --query-gpu=name,uuid && echo "a b"']
    by_key = shell.command(AWS, key="mine.pem", words=["ls"])
    assert by_key[:3] == ["ssh", "-i", "mine.pem"]
    assert by_key[-2:] == ["ubuntu@i-0123456789abcdef0", "ls"]
    assert "AWS-StartSSHSession" in by_key[4]


def test_what_is_missing_here_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match="aws is not installed"):
        shell.needed(AWS, shell.command(AWS))
    (tmp_path / "aws").write_text("")
    (tmp_path / "aws").chmod(0o755)
    with pytest.raises(MissingExtra, match="Session Manager plugin"):
        shell.needed(AWS, shell.command(AWS))


def test_a_machine_of_this_computer_is_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "a home"))
    folder = tmp_path / "a home" / "local" / "machines" / "local-run-1-1-0"
    folder.mkdir(parents=True)
    made = shell.command(machine("local-run-1-1-0"), words=["pwd"])
    assert subprocess.check_output(made, text=True).strip() == str(folder)
