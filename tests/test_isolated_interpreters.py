"""Python that we start never imports from the folder that the user happens to be in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tradewind
from tests.cli.local_jobs import cleaned, job
from tests.eventually import eventually
from tradewind import store as stores
from tradewind.journal import journal, runs_store
from tradewind.model.event import Closed

ROOT = Path(tradewind.__file__).parent
ISOLATED = {"-P", "-I"}


def commands(path: Path) -> Iterator[tuple[int, list[str | None]]]:
    """Lists and tuples that are a command with `-m` or `-c`: their texts, None for what is not."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.List | ast.Tuple) and node.elts:
            words = [each.value if isinstance(each, ast.Constant) else None for each in node.elts]
            if {"-m", "-c"} & set(words) and words[0] is None:
                yield node.lineno, [word if isinstance(word, str) else None for word in words]


def test_every_interpreter_that_is_started_is_isolated() -> None:
    found = 0
    for path in sorted(ROOT.rglob("*.py")):
        for line, words in commands(path):
            found += 1
            at = min(words.index(word) for word in ("-m", "-c") if word in words)
            assert ISOLATED & set(words[:at]), f"{path}:{line} would import from any folder"
    assert found > 10


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    with cleaned(tmp_path / "home") as found:
        yield found


@pytest.mark.slow
def test_a_folder_runs_nothing_when_a_run_is_started_from_it(home: Path, tmp_path: Path) -> None:
    """A cloned repository may have files that are called like modules. The job's own `python` would
    find them, which is the job's business; this one starts none."""
    work = job(tmp_path / "cloned", command="echo done")
    told = tmp_path / "executed"
    planted = f"open({str(told)!r}, 'a').write(__name__ + ' ')\n"
    for name in ("tradewind", "pip", "json", "msgspec", "click", "sitecustomize", "subprocess"):
        (work.parent / f"{name}.py").write_text(planted)
    script = Path(sys.executable).with_name("tradewind")
    done = subprocess.run(
        [script, "run", work.name, "--local", "--yes", "--detach"],
        cwd=work.parent,
        env=os.environ | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    store = stores.open()
    (run_id,) = runs_store.run_ids(store)

    def closed() -> bool:
        events = runs_store.load(store, run_id).events
        return any(isinstance(event, Closed) for event in events)

    # By the watcher that `--detach` leaves: nobody else looks after it.
    eventually(closed, within_s=120)
    assert journal.read(store, run_id)
    assert not told.exists(), told.read_text()
