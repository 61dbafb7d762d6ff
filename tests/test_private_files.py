"""Who else has a login on this computer reads nothing of ours, whatever the umask says."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.local_jobs import cleaned, job
from tests.eventually import eventually
from tradewind import store as stores
from tradewind.base import ownfiles
from tradewind.journal import runs_store
from tradewind.model.event import Closed
from tradewind.store.local import LocalStore


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(root: Path) -> dict[str, int]:
    """Of all that lies below, links not followed."""
    found = {".": stat.S_IMODE(root.lstat().st_mode)}
    for path in root.rglob("*"):
        found[str(path.relative_to(root))] = stat.S_IMODE(path.lstat().st_mode)
    return found


def open_to_others(root: Path) -> list[str]:
    return [name for name, mode in modes(root).items() if mode & 0o077]


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_own_files(mask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    with umask(mask):
        home = ownfiles.home()
        ownfiles.replace(home / "a" / "b.json", b"x")
        ownfiles.append(home / "c" / "d.log").close()
        stores.remember("s3://bucket")
        stores.open(home / "store").replace("runs/r/x", b"secret")
        assert open_to_others(home) == []
        ownfiles.replace(tmp_path / "out" / "page.html", b"", public=True)
        assert modes(tmp_path / "out")["page.html"] == 0o666 & ~mask


def test_home_is_private_whoever_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    with umask(0o022):
        ownfiles.replace(tmp_path / "home" / "catalog" / "c.gz", b"", public=True)
    assert modes(tmp_path / "home")["."] == 0o700


def test_a_store_that_we_make(tmp_path: Path) -> None:
    with umask(0o000):
        store = LocalStore(tmp_path / "made" / "store")
        store.replace("runs/r/a", b"")
        store.create("runs/r/b", b"")
        store.upload_parts("runs/r/c", [b"x"], 1)
        store.get("runs/r/a")
    assert open_to_others(tmp_path / "made") == []


def test_a_store_of_a_group(tmp_path: Path) -> None:
    """Everybody in it writes objects beside those of others, and replaces and deletes them."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o2770)
    with umask(0o077):
        store = LocalStore(folder)
        store.replace("runs/r/a", b"")
        store.create("runs/r/b", b"")
    found = modes(folder)
    assert found["."] == found["runs"] == found["runs/r"] == found[".tradewind-new"] == 0o2770
    assert found["runs/r/a"] == found["runs/r/b"] == 0o660


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_folder_that_was_there_keeps_its_mode_and_the_umask_counts(
    mode: int, tmp_path: Path
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    folder.chmod(mode)
    with umask(0o027):
        LocalStore(folder).replace("runs/a", b"")
    found = modes(folder)
    assert found["."] == mode
    assert found["runs"] == 0o750
    assert found["runs/a"] == 0o640


@pytest.mark.slow
def test_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it leaves at home can be reached by its user only, and its command, which may hold a
    password, is in no process's arguments."""
    home = tmp_path / "home"
    monkeypatch.setenv("TRADEWIND_HOME", str(home))
    go = tmp_path / "go"
    os.mkfifo(go)
    # A builtin of the shell: what a job starts itself has such arguments as it gives.
    work = job(tmp_path / "work", command=f"'password=hunter2; read line < {go}; echo $line'")
    with cleaned(home), umask(0o022):
        subprocess.run(
            [sys.executable, "-P", "-m", "tradewind", "run", work, "--local", "--yes", "--detach"],
            check=True,
            capture_output=True,
        )
        store = stores.open()
        (run_id,) = runs_store.run_ids(store)
        with go.open("w") as told:  # the job is there when it opens its end
            words = b"".join(map(_read, Path("/proc").glob("[0-9]*/cmdline")))
            assert b"hunter2" not in words
            assert run_id.encode() in words
            told.write("done\n")

        def closed() -> bool:
            events = runs_store.load(store, run_id).events
            return any(isinstance(event, Closed) for event in events)

        eventually(closed, within_s=120)
    for path in (home, home / "local", home / "store", home / "controllers", home / "watch"):
        assert stat.S_IMODE(path.lstat().st_mode) == 0o700
    assert open_to_others(home / "store") == []
    assert open_to_others(home / "controllers") == []
    assert open_to_others(home / "watch") == []
    # What the bundle has unpacked keeps its own modes, in a folder that nobody else can enter.
    machines = home / "local" / "machines"
    assert [path for path in machines.iterdir() if path.lstat().st_mode & 0o077] == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""
