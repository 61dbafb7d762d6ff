"""Secrets of local runs, by the commands that a user types and with real processes."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.local_jobs import cleaned
from tests.cli.test_run import newest, printed, tradewind

pytestmark = pytest.mark.slow

SECRET = "the-value-itself"
WORK = """
name: secretive
work: {{hours: 1, on: 1xA100-80GB}}
run:
  command: |
    printf %s "$X" | sha256sum
    tr '\\0' '\\n' < /proc/$PPID/cmdline
    {command}
  secrets: {{X: "file:{path}"}}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRADEWIND_NOW", raising=False)
    with cleaned(tmp_path / "home") as home:
        yield home


def workload(tmp_path: Path, command: str = "true") -> Path:
    token = tmp_path / "token"
    token.write_text(f"{SECRET}\n")
    place = tmp_path / "job"
    place.mkdir()
    path = place / "work.yaml"
    path.write_text(WORK.format(command=command, path=token))
    return path


def test_a_file_reaches_the_job_and_nobody_else(home: Path, tmp_path: Path) -> None:
    import hashlib

    work = workload(tmp_path)
    out = tradewind("run", str(work), "--local", "--yes")
    assert f"secret    X from file:{tmp_path / 'token'}" in out
    run = newest()
    lines = printed(run)
    assert lines[0].split()[0] == hashlib.sha256(SECRET.encode()).hexdigest()
    kept = home / "local" / "secrets" / f"{run}.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    holders = [
        path
        for path in (tmp_path / "home").rglob("*")  # with the store and the controllers' memory
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert holders == [kept]
    told = out + tradewind("show", run) + tradewind("show", run, "--json") + "\n".join(lines)
    assert SECRET not in told
    assert f"file:{tmp_path / 'token'}" in tradewind("show", run, "--json")
    assert "secrets" in tradewind("sweep", "--yes")  # it is done, and cannot be resumed
    assert not kept.exists()


def test_a_run_that_may_be_resumed_keeps_them(home: Path, tmp_path: Path) -> None:
    work = workload(tmp_path, "test -e $TRADEWIND_HOME/good")
    tradewind("run", str(work), "--local", "--yes", check=None)
    run = newest()
    (tmp_path / "token").unlink()
    tradewind("sweep", "--yes")
    assert (home / "local" / "secrets" / f"{run}.json").exists()
    (home / "good").touch()
    tradewind("resume", run)
    assert "succeeded" in tradewind("ps", "--all")


def test_a_file_that_is_not_there_is_told_before_anything_is_recorded(
    home: Path, tmp_path: Path
) -> None:
    work = workload(tmp_path)
    (tmp_path / "token").unlink()
    out = tradewind("run", str(work), "--local", "--yes", check=5)
    assert f"run.secrets: X: {tmp_path / 'token'} cannot be read: No such file" in out
    assert "no runs" in tradewind("ps", "--all").lower()
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    assert "is not text" in tradewind("run", str(work), "--local", "--yes", check=2)
    assert not (home / "local" / "secrets").exists()
