"""Completion by a real bash: the script is sourced, its function called as bash would, and what it
offers read. tests/system/test_shells.py has zsh and fish."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.test_light_imports import loaded
from tradewind import store as stores
from tradewind.base import clock
from tradewind.model import places
from tradewind.providers import registry


@pytest.fixture
def bin_folder(home: Path, tmp_path: Path) -> Path:
    """Both names of ours, wherever Python's are."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("tradewind", "tw"):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m tradewind "$@"\n')
        script.chmod(0o755)
    return folder


def completed(bin_folder: Path, line: str, **env: str) -> list[str]:
    """What bash offers for the last word of the line; `<file>` and `<dir>` are left to bash."""
    words = line.split(" ")
    called = f"COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}"
    script = f"""
    compopt() {{ case $2 in dirnames) echo '<dir>';; default) echo '<file>';; esac; }}
    source <(tradewind completion bash)
    complete -p {words[0]} >&2
    {called}
    _tradewind_completion {words[0]} '' ''
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"} | env,
        capture_output=True,
        text=True,
        check=True,
    )
    # Nothing was printed but that both names are completed.
    assert done.stderr == f"complete -o nosort -F _tradewind_completion {words[0]}\n"
    return done.stdout.split()


def runs_in_the_store(*, over: int = 1) -> tuple[list[str], list[str]]:
    store = stores.open()
    live = [clock.new_id("count")]
    ended = [f"count-01900000000{number}-abcdef" for number in range(over)]
    for name in live + ended:
        store.create(places.bundle(name), b"x")
    store.create(places.live(live[0]), b"{}")
    return live, ended


@pytest.mark.parametrize("name", ["tradewind", "tw"])
def test_commands_and_options(bin_folder: Path, name: str) -> None:
    names = [
        "serve",
        "services",
        "show",
        "ssh",
        "stop",
        "sweep",
        "setup",
        "schedule",
        "schema",
        "sim",
    ]
    assert completed(bin_folder, f"{name} s") == names
    assert completed(bin_folder, f"{name} setup ") == list(registry.CLOUDS)
    assert completed(bin_folder, f"{name} offers --ma") == ["--market", "--max-price"]
    assert completed(bin_folder, f"{name} bench j") == ["journal"]
    assert completed(bin_folder, f"{name} offers --sort pf") == ["pflop-hour"]


def test_runs(bin_folder: Path) -> None:
    live, over = runs_in_the_store()
    for command in ("show", "logs -f", "report", "cost", "top"):
        assert completed(bin_folder, f"tradewind {command} ") == live + over
    for command in ("stop", "interrupt", "watch"):
        assert completed(bin_folder, f"tradewind {command} ") == live
    assert completed(bin_folder, "tradewind resume co") == over
    assert completed(bin_folder, f"tradewind show {live[0][:-3]}") == live


@pytest.mark.slow
def test_names_and_files(bin_folder: Path) -> None:
    assert completed(bin_folder, "tradewind offers h100") == [
        "H100-SXM",
        "H100-PCIe",
        "H100-NVL",
    ]
    assert completed(bin_folder, "tradewind plan --provider aws,gc") == ["aws,gcp"]
    assert "llama-3.1-8b" in completed(bin_folder, "tradewind plan --model llama-3")
    assert completed(bin_folder, "tradewind compare p5.") == ["p5.48xlarge", "p5.4xlarge"]
    for line in ("plan w", "run ", "plan --out ", "sim trace w"):
        assert completed(bin_folder, f"tradewind {line}") == ["<file>"]
    assert completed(bin_folder, "tradewind ps --store r") == ["<dir>"]
    assert completed(bin_folder, "tradewind explain no-p") == ["no-plan", "no-progress"]
    assert completed(bin_folder, "tradewind doctor p") == ["parts", "prices"]


def test_what_is_wrong_is_not_said_between_two_letters(bin_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for wrong in (str(tmp_path / "file"), "ftp://x", "s3://bucket", "\1"):
        assert completed(bin_folder, "tradewind show ", TRADEWIND_STORE=wrong) == []
    home = tmp_path / "own"
    home.mkdir()
    (home / "catalog.json.gz").write_text("damaged")
    assert completed(bin_folder, "tradewind offers h", TRADEWIND_HOME=str(home)) == []
    assert completed(bin_folder, "tradewind nonsense --x ") == []


def test_only_what_is_needed_is_imported(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("_TRADEWIND_COMPLETE", "bash_complete")
    call = "from tradewind.cli.app import run; run([])"
    for words, place, also_not in (
        ("tradewind ", 1, {"tradewind.cli.plan.plan", "tradewind.cli.runs.show", "msgspec"}),
        ("tradewind show ", 2, {"tradewind.catalog", "tradewind.cli.plan.plan"}),
        ("tradewind offers h", 2, {"msgspec"}),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(place))
        assert not loaded(call) & ({"torch", "numpy", "rich", "yaml", "urllib3"} | also_not)


def test_the_script_is_printed_for_three_shells(cli: Cli) -> None:
    bash, zsh, fish = (cli("completion", shell).out for shell in ("bash", "zsh", "fish"))
    assert "complete -o nosort -F _tradewind_completion tradewind tw\n" in bash
    assert zsh.startswith("#compdef tradewind tw\n")
    assert "compdef _tradewind_completion tradewind tw\n" in zsh
    assert "complete --command tw --wraps tradewind" in fish
    ran = cli("completion", "tcsh")
    assert ran.code == 2
    assert "'bash', 'zsh', 'fish'" in ran.err
