"""What users get wrong, typed as they type it: a clear word, an exit code, and nothing lost."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.system.chain import Chain
from tradewind.journal import journal
from tradewind.model.event import FORMAT, CancelAsked

RUN = ("--local", "--yes")


pytestmark = pytest.mark.system


def nothing_came_of_it(made: Chain) -> bool:
    return made.ids() == [] and not made.pids() and not (made.home / "local").exists()


def test_what_cannot_be_submitted_leaves_nothing(
    chain: Callable[..., Chain], tmp_path: Path
) -> None:
    made = chain(mortal=True)
    work = str(made.job("true"))
    big, secret = tmp_path / "big", tmp_path / "secret"
    for folder in (big, secret):
        folder.mkdir()
    with (big / "data").open("wb") as stream:
        stream.truncate(200_000_000)
    (secret / "key").write_text("")
    (secret / "key").chmod(0)
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    for arguments, words, code in [
        ((str(tmp_path),), f"{tmp_path} is a folder", 5),
        ((str(tmp_path / "binary"),), "is no text", 2),
        ((work, "--folder", str(tmp_path / "nowhere")), "is no folder", 2),
        ((work, "--folder", work), "is no folder", 2),
        ((work, "--folder", str(big)), "too large to be sent", 2),
        ((work, "--folder", str(secret)), f"{secret / 'key'}", 5),
        ((work, "--store", work), "is a file, and a store is a folder", 2),
        ((work, "--store", work + "/below"), "is a file, and a store is a folder", 2),
        ((work, "--store", "ftp://there"), "no kind of store", 2),
    ]:
        said = made.cli("run", *arguments, *RUN, code=code)
        assert words in said, said
    assert nothing_came_of_it(made)


def test_jobs_that_cannot_be_started_say_why(chain: Callable[..., Chain], tmp_path: Path) -> None:
    """All at once, since each takes a moment."""
    made = chain()
    (tmp_path / "empty").mkdir()
    runs = {
        made.detach(made.job(command, name=name, more=more, script__sh="true")): words
        for name, command, more, words in [
            ("missing", "no-such-program --fast", "", b"no-such-program: not found"),
            ("forbidden", "./script.sh", "", b"./script.sh: Permission denied"),
            ("setup", "true", "  setup: 'echo no wheels; exit 4'\n", b"no wheels"),
        ]
    }
    bare = made.detach(made.job("ls -A", name="bare"), "--folder", str(tmp_path / "empty"))
    for run, words in runs.items():
        assert made.over(run).outcome == "failed"
        shown = made.cli("show", run)
        assert "without getting further" in shown
        assert words.decode() in shown
        assert words in made.log(run)
        assert made.cli("watch", run, code=1).count("failed") > 1
    assert made.over(bare).outcome == "succeeded"
    assert made.log(bare) == b""
    names(made, bare)
    made.quiet()


def names(made: Chain, done: str) -> None:
    """Runs that are named wrongly, or that are over."""
    twin = f"{done[:-1]}x"
    made.store.create(f"runs/{twin}/journal/00000000000000000001.json", b"{}")
    before = made.ids()
    for command, words, code in [
        (("show", done[:-1]), "may be any of 2 runs", 3),
        (("stop", done[:-1]), "write more of the id", 3),
        (("logs", "nobody"), "there is no run 'nobody'", 3),
        (("show", ""), "there is no run ''", 3),
        (("show", "../" + done), "there is no run", 3),
        (("logs", done, "--leg", "9"), "has no leg 9", 3),
        (("logs", done, "--rank", "1"), "has no machine of rank 1", 3),
        (("stop", done), "has ended already: done", 0),
        (("stop", done), "has ended already: done", 0),
        (("resume", done), "cannot be resumed: done", 2),
        (("interrupt", done), "has no machines now", 2),
        (("watch", done), "done; 1 leg", 0),
    ]:
        assert words in made.cli(*command, code=code), command
    assert made.ids() == before


def test_stopping_twice_while_it_stops(chain: Callable[..., Chain]) -> None:
    made = chain()
    enough = made.folder / "enough"
    wait = f"until [ -e {enough} ]; do sleep 0.1; done"
    run = made.detach(made.job(f"trap '' TERM; echo up; {wait}"))
    made.says(run, b"up")
    for _ in range(2):
        assert "was asked to stop" in made.cli("stop", run, "--no-wait")
    assert "not over yet" in made.cli("resume", run, code=2)
    made.says(run, b"the job is to save and to exit")  # a job that was done before would be done
    enough.touch()
    assert made.over(run).outcome == "cancelled"
    events = [e for c in journal.read(made.store, run) for e in c.events]
    assert sum(isinstance(event, CancelAsked) for event in events) == 1
    made.quiet()


def test_a_store_of_a_newer_version(chain: Callable[..., Chain]) -> None:
    """Everything says so, the other runs are shown, and nothing is written."""
    made = chain()
    (made.folder / "store").mkdir()
    newer = "newer-01a1df0aec38-244150"
    commit = {"format": FORMAT + 1, "number": 1, "writer": "w", "events": []}
    commit["at"] = "2026-11-15T12:00:00Z"
    place = f"runs/{newer}/journal/00000000000000000001.json"
    made.store.create(f"live/{newer}", b"{}")
    made.store.create(place, json.dumps(commit).encode())
    before = {key: made.store.get(key) for key in made.store.list_after("")}
    for command in (
        ("ps",),
        ("ps", "--all"),
        ("show", newer),
        ("logs", newer),
        ("stop", newer),
        ("resume", newer),
        ("interrupt", newer),
        ("watch", newer),
        ("tick",),
        ("cost",),
    ):
        said = made.cli(*command, code=4)
        words = f"it has format {FORMAT + 1}, and this Tradewind knows up to {FORMAT}"
        assert words in said, command
    assert {key: made.store.get(key) for key in made.store.list_after("")} == before
    run = made.detach(made.job("echo fine"))
    assert made.over(run).outcome == "succeeded"
    assert run in made.cli("ps", "--all", code=4)
    eventually(lambda: not made.pids())
    assert {key: made.store.get(key) for key in before} == before


def test_a_reader_who_leaves_does_not_take_the_run_along(chain: Callable[..., Chain]) -> None:
    """`tradewind run … | head -4`: it continues in the background, as after Ctrl-C."""
    made = chain()
    work = made.job("echo up; sleep 5; echo done")
    process = made.popen("run", str(work), "--local", "--yes", stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(4):
        process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 0
    (run,) = made.ids()
    assert made.over(run).outcome == "succeeded"
    assert made.log(run) == b"up\ndone\n"
    made.quiet()
