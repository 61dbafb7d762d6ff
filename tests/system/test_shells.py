"""Completion by a real zsh and a real fish; tests/cli/test_completion.py has bash."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import home as home
from tests.cli.test_completion import bin_folder as bin_folder
from tests.cli.test_completion import runs_in_the_store

pytestmark = pytest.mark.system


def by(shell: str, script: str, bin_folder: Path) -> list[str]:
    assert shutil.which(shell), f"{shell} is not installed; run `make test-system`"
    options = ["--no-config"] if shell == "fish" else ["--no-rcs"]
    done = subprocess.run(
        [shell, *options, "-c", script],
        env=os.environ
        | {"PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": str(bin_folder.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


ON_S = "serve services show ssh stop sweep setup schedule schema sim".split()


@pytest.mark.parametrize("name", ["tradewind", "tw"])
def test_fish(bin_folder: Path, name: str) -> None:
    live, over = runs_in_the_store()

    def offered(line: str) -> list[str]:
        script = f"source (tradewind completion fish | psub); complete -C '{name} {line}'"
        return [each.split("\t")[0] for each in by("fish", script, bin_folder)]

    assert sorted(offered("s")) == sorted(ON_S)
    assert set(offered("show ")) == {*live, *over}
    assert offered("stop co") == live
    assert set(offered("offers --ma")) == {"--market", "--max-price"}
    (bin_folder.parent / "work.yaml").write_text("x")
    assert offered(f"plan {bin_folder.parent}/wo") == [f"{bin_folder.parent}/work.yaml"]


@pytest.mark.parametrize("name", ["tradewind", "tw"])
def test_zsh(bin_folder: Path, name: str) -> None:
    """What it gives to zsh's own functions, as they take only what is typed in a terminal."""
    live, over = runs_in_the_store()

    def offered(line: str) -> list[str]:
        words = f"{name} {line}".split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        script = f"""
        autoload -U compinit && compinit -u -D
        eval "$(tradewind completion zsh)"
        _describe() {{ print -l -- ${{(P)3}} }}
        compadd() {{ print -l -- ${{(P)5}} }}
        _path_files() {{ print -- "<$1>" }}
        words=({quoted}); CURRENT={len(words)}
        $_comps[{name}]
        """
        return [each.split(":")[0] for each in by("zsh", script, bin_folder)]

    assert offered("s") == ON_S
    assert offered("show ") == live + over
    assert offered("offers --ma") == ["--market", "--max-price"]
    assert offered("plan wo") == ["<-f>"]
