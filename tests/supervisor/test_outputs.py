"""A job's output files: brought into the store, put back on the next machine, and never trusted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from tests.supervisor.machines import RUN, MachineUnderTest, until
from tradewind.base import clock, signing
from tradewind.base.errors import BadFile, NoAccess, TooLarge
from tradewind.model import globs, places
from tradewind.model.event import LegDraining
from tradewind.model.job import Job as JobFacts
from tradewind.model.outputs import OutputFile
from tradewind.model.outputs import Outputs as Listed
from tradewind.store.local import LocalStore
from tradewind.supervisor import outputs
from tradewind.supervisor.outputs import Outputs, download, newest

Launch = Callable[..., MachineUnderTest]
DRAIN = LegDraining(leg=1, cause="moved", reason="there is a better way")


KEY = signing.given(b"seed", "l-1", RUN)
SIGNING = {"key": KEY}
OTHERS = signing.given(b"seed", "l-2", "another-run")


class Job:
    """A job's folder and what brings its files, without a supervisor."""

    def __init__(self, tmp_path: Path, leg: int = 1, *patterns: str) -> None:
        self.folder = tmp_path / f"work-{leg}"
        self.folder.mkdir()
        self.store = LocalStore(tmp_path / "store")
        self.said: list[str] = []
        self.outputs = Outputs(
            self.store, RUN, leg, 0, key=KEY,
            patterns=patterns or ("out", "log.csv"), folder=self.folder, remark=self.said.append,
        )  # fmt: skip

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def bring(self) -> dict[str, OutputFile]:
        self.outputs.finish(60)
        found = newest(self.store, RUN, 0, before=1000, key=KEY)
        return {each.path: each for each in found.files} if found else {}

    def text(self, file: OutputFile) -> str:
        return self.store.get(places.output_files(RUN, 0) + file.name).decode()

    def objects(self) -> list[str]:
        return self.store.list_after(places.output_files(RUN, 0))


def test_only_what_is_named_and_only_what_has_changed(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.write("train.py", "x")
    job.write("out/deep/best.pt", "weights")
    job.write("log.csv", "1\n")
    first = job.bring()
    assert set(first) == {"out/deep/best.pt", "log.csv"}
    job.write("log.csv", "1\n2\n")
    second = job.bring()
    assert second["out/deep/best.pt"] == first["out/deep/best.pt"]
    assert second["log.csv"].name != first["log.csv"].name
    assert job.text(second["log.csv"]) == "1\n2\n"
    assert len(job.objects()) == 2  # what nobody finds any more is gone
    job.write("out/deep/best.pt", "weights").touch()  # the same again
    assert job.bring() == second
    (job.folder / "out/deep/best.pt").unlink()
    assert set(job.bring()) == {"log.csv"}
    assert not job.said


def test_links_pipes_and_odd_names_are_not_brought(tmp_path: Path) -> None:
    import os

    job = Job(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("key")
    job.write("out/a", "1")
    (job.folder / "out" / "link").symlink_to(secret)
    (job.folder / "out" / "folder").symlink_to(tmp_path)
    os.mkfifo(job.folder / "out" / "pipe")
    job.write("out/two\nlines", "2")
    assert set(job.bring()) == {"out/a"}
    assert any("not brought" in words for words in job.said)


def test_a_file_that_is_being_written_waits_for_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the store was once a whole file."""
    job = Job(tmp_path)
    path = job.write("out/a", "old")
    assert job.text(job.bring()["out/a"]) == "old"
    upload = job.store.replace

    def meanwhile(key: str, data: bytes) -> None:
        upload(key, data)
        if "/files/" in key:
            path.write_text("half of it and more")

    path.write_text("new")
    with monkeypatch.context() as patched:
        patched.setattr(job.store, "replace", meanwhile)
        assert job.text(job.bring()["out/a"]) == "old"
    assert job.text(job.bring()["out/a"]) == "half of it and more"
    assert len(job.objects()) == 1


def test_large_files_are_brought_without_holding_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "_IN_MEMORY", 10)
    job = Job(tmp_path)
    job.write("out/large", "x" * 5000)
    found = job.bring()["out/large"]
    assert (found.size, job.text(found)) == (5000, "x" * 5000)


def test_more_than_is_kept_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MOST_BYTES", 10)
    job = Job(tmp_path)
    job.write("out/small", "1234")
    job.write("out/large", "x" * 50)
    assert set(job.bring()) == {"out/small"}
    assert "out/large" in job.said[0]


def test_the_next_leg_goes_on_with_them(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.write("log.csv", "1\n")
    job.write("out/best.pt", "w")
    before = job.bring()
    second = Job(tmp_path, 2)
    second.outputs.put_back()
    with (second.folder / "log.csv").open("a") as log:
        log.write("2\n")
    after = second.bring()
    assert after["out/best.pt"] == before["out/best.pt"]  # not sent a second time
    assert second.text(after["log.csv"]) == "1\n2\n"
    assert second.said == ["2 output files of leg 1 put back"]
    # One that was replaced and lives on changes nothing for others.
    job.write("log.csv", "1\nlate\n")
    job.bring()
    assert second.text(newest(job.store, RUN, 0, before=9, key=KEY).files[0]) == "1\n2\n"  # type: ignore[union-attr]


def poison(store: LocalStore, leg: int = 1, key: str = KEY, **changed: Any) -> None:
    data = b"poison"
    file = {
        "path": "out/a", "size": len(data), "sha256": hashlib.sha256(data).hexdigest(),
        "name": "1-ab-1",
    } | changed  # fmt: skip
    store.replace(places.output_files(RUN, 0) + "1-ab-1", data)
    told = {"leg": leg, "rank": 0, "step": 1.0, "files": [file]}
    data = signing.signed(json.encode(told), key, signing.OUTPUTS)
    store.replace(places.outputs(RUN, 0, leg), data)


@pytest.mark.parametrize(
    "changed",
    [
        {"path": "../escaped"}, {"path": "/etc/passwd"}, {"path": "out/../../x"}, {"path": ""},
        {"path": "a//b"}, {"path": "x" * 600}, {"path": "a\u0000b"}, {"path": "out/./a"},
        {"size": -1}, {"size": 10**15}, {"size": 1e300}, {"sha256": "0"}, {"name": "../../x"},
        {"name": "a/b"}, {"more": 1}, {"path": 7},
    ],
    ids=str,
)  # fmt: skip
def test_a_list_that_is_not_ours_is_no_list(tmp_path: Path, changed: dict[str, Any]) -> None:
    job = Job(tmp_path, 2)
    poison(job.store, **changed)
    assert newest(job.store, RUN, 0, before=9, key=KEY) is None
    job.outputs.put_back()
    assert not list(job.folder.iterdir())
    assert not (tmp_path / "escaped").exists()


def test_what_the_workload_does_not_name_is_not_put_back(tmp_path: Path) -> None:
    job = Job(tmp_path, 2)
    job.write("train.py", "mine")
    poison(job.store, path="train.py")
    job.outputs.put_back()
    assert (job.folder / "train.py").read_text() == "mine"


def test_what_came_with_a_job_is_not_replaced(tmp_path: Path) -> None:
    """And what was brought of it before is kept until the job changes the file."""
    job = Job(tmp_path, 2)
    job.write("out/a", "mine")
    poison(job.store)
    job.outputs.put_back()
    assert (job.folder / "out/a").read_text() == "mine"
    job.write("out/b", "new")
    assert job.text(job.bring()["out/a"]) == "poison"
    job.write("out/a", "mine, and more")
    assert job.text(job.bring()["out/a"]) == "mine, and more"


@pytest.mark.parametrize("key", ["", OTHERS, signing.key_of(b"seed", "l-1")], ids=str)
def test_a_list_that_another_run_has_written_is_none(tmp_path: Path, key: str) -> None:
    """Every machine of a store may write there, and knows its own keys."""
    job = Job(tmp_path, 2, "out", "*.csv")
    poison(job.store, key=key)
    assert newest(job.store, RUN, 0, before=9, key=KEY) is None
    job.outputs.put_back()
    assert not list(job.folder.iterdir())
    assert newest(job.store, RUN, 0, before=9, key=KEY, unsigned=True) is not None


def test_a_first_leg_takes_nothing_and_a_later_one_nothing_of_its_own(tmp_path: Path) -> None:
    for leg in (1, 2):
        job = Job(tmp_path, leg)
        poison(job.store, leg=leg)
        job.outputs.put_back()
        assert not list(job.folder.iterdir())
        job.store.delete(places.outputs(RUN, 0, leg))


def test_a_download_stays_in_its_folder_and_is_what_was_listed(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.write("out/a", "whole")
    file = job.bring()["out/a"]
    there = tmp_path / "there"
    there.mkdir()
    download(job.store, RUN, 0, file, there)
    assert (there / "out/a").read_text() == "whole"
    key = places.output_files(RUN, 0) + file.name
    job.store.replace(key, b"wrong")
    with pytest.raises(BadFile, match="its hash differs"):
        download(job.store, RUN, 0, file, there)
    job.store.replace(key, b"x" * 5000)
    with pytest.raises(TooLarge):
        download(job.store, RUN, 0, file, there)
    assert (there / "out/a").read_text() == "whole"
    assert [path.name for path in (there / "out").iterdir()] == ["a"]
    outside = tmp_path / "outside"
    outside.mkdir()
    (there / "out" / "a").unlink()
    (there / "out").rmdir()
    (there / "out").symlink_to(outside)
    with pytest.raises(NoAccess, match="is a link"):
        download(job.store, RUN, 0, file, there)
    assert not list(outside.iterdir())


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_what_is_fetched_is_as_private_as_its_user_s_files(
    umask: int, mode: int, tmp_path: Path
) -> None:
    job = Job(tmp_path)
    job.write("out/a", "whole")
    file = job.bring()["out/a"]
    (tmp_path / "there").mkdir()
    before = os.umask(umask)
    try:
        download(job.store, RUN, 0, file, tmp_path / "there")
    finally:
        os.umask(before)
    assert (tmp_path / "there/out/a").stat().st_mode & 0o777 == mode


def test_a_list_of_another_rank_or_leg_is_none(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.write("log.csv", "1")
    job.bring()
    data = job.store.get(places.outputs(RUN, 0, 1))
    job.store.replace(places.outputs(RUN, 0, 2), data)
    job.store.replace(places.outputs(RUN, 0, 3), b"{")
    found = newest(job.store, RUN, 0, before=9, key=KEY)
    assert isinstance(found, Listed)
    assert found.leg == 1


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("**", True), ("*", True), ("*.py", True), ("**/*.py", True), ("js*", True),
        ("./*", True), ("lib/x.py", True), ("log*", True), ("**/*", True), ("*.s?", True),
        ("out", False), ("*.csv", False), ("log*.csv", False), ("out/**", False),
        ("**/*.pt", False), ("samples/*.png", False), ("losses*", False),
    ],
)  # fmt: skip
def test_patterns_that_name_what_a_job_imports_are_refused(pattern: str, code: bool) -> None:
    """At `plan` already: what is put back must not become code."""
    faults = list(JobFacts.faults({"command": "python train.py", "outputs": (pattern,)}))
    assert [fault.field for fault in faults] == (["outputs"] if code else [])


def plainly_fits(parts: list[str], wanted: list[str]) -> bool:
    """As it is said, in exponential time."""
    if not wanted:
        return True
    if wanted[0] == "**":
        return any(plainly_fits(parts[at:], wanted[1:]) for at in range(len(parts) + 1))
    return bool(parts) and parts[0] == wanted[0] and plainly_fits(parts[1:], wanted[1:])


def test_patterns_fit_as_they_are_said_to_and_in_time() -> None:
    draw = clock.generator(7)
    for _ in range(3000):
        parts = draw.choices("ab", k=draw.randint(1, 7))
        wanted = draw.choices(["a", "b", "**"], k=draw.randint(1, 5))
        found = globs.fits("/".join(parts), ["/".join(wanted)])
        assert found == plainly_fits(parts, wanted), (parts, wanted)
    # Nine in 30 folders took 81 seconds.
    assert not globs.fits("/".join("a" * 200), ["/".join(["**", "a"] * 99 + ["b"])])


# -- with a real supervisor ------------------------------------------------------------------------


def test_at_the_end_they_are_in_the_store_before_the_end_is_told(launch: Launch) -> None:
    machine = launch(
        "mkdir out; echo w > out/best.pt; echo no > other", outputs=["out"], machine=SIGNING
    )
    machine.does("finished")
    found = newest(machine.run.calm, RUN, 0, before=9, key=KEY)
    assert [each.path for each in found.files] == ["out/best.pt"]  # type: ignore[union-attr]


def test_a_job_that_saves_has_its_outputs_brought_while_it_runs(launch: Launch) -> None:
    told = '{"step": 12, "saved": 10}'
    machine = launch(
        f"echo 1 > log.csv; echo '{told}' > new; mv new $TRADEWIND_PROGRESS; echo go; sleep 1000",
        outputs=["log.csv"],
        machine=SIGNING,
    )
    machine.said("go")
    until(lambda: newest(machine.run.calm, RUN, 0, before=9, key=KEY), "the outputs")
    found = newest(machine.run.calm, RUN, 0, before=9, key=KEY)
    assert found is not None
    assert [each.path for each in found.files] == ["log.csv"]


def test_a_job_that_must_go_has_its_outputs_brought(launch: Launch) -> None:
    machine = launch(
        'trap "echo last >> log.csv; exit 3" TERM; echo first > log.csv; echo begun;'
        " while :; do sleep 0.05; done",
        outputs=["log.csv"],
        machine=SIGNING,
    )
    machine.said("begun")
    machine.run.record(DRAIN)
    machine.does("stopped")
    found = newest(machine.run.calm, RUN, 0, before=9, key=KEY)
    assert found is not None
    key = places.output_files(RUN, 0) + found.files[0].name
    assert machine.run.calm.get(key) == b"first\nlast\n"


def test_a_machine_finds_what_an_earlier_leg_has_brought(launch: Launch, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    data = b"from before\n"
    name = "0-ab-1"
    store.replace(places.output_files(RUN, 0) + name, data)
    file = OutputFile("log.csv", len(data), hashlib.sha256(data).hexdigest(), name)
    listed = signing.signed(json.encode(Listed(1, 0, 5.0, (file,))), KEY, signing.OUTPUTS)
    store.replace(places.outputs(RUN, 0, 1), listed)
    machine = launch(
        "cat log.csv; echo more >> log.csv", outputs=["log.csv"], machine=SIGNING | {"leg": 2}
    )
    machine.does("finished")
    assert "from before" in machine.log()
    found = newest(machine.run.calm, RUN, 0, before=9, key=KEY)
    assert found is not None
    key = places.output_files(RUN, 0) + found.files[0].name
    assert machine.run.calm.get(key) == b"from before\nmore\n"
