"""The doctor finds what is wrong, and survives it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lifecycle.builders import SPEC, a_request
from tests.providers.local_machines import a_home, command
from tradewind import store as stores
from tradewind.base import clock
from tradewind.base.errors import NoAccess, SourceFailed
from tradewind.controller.loop import LEASE
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import Submitted
from tradewind.model.finding import Finding
from tradewind.model.run import Listing, Machine
from tradewind.providers.local.provider import LocalProvider
from tradewind.store.memory import MemoryStore
from tradewind.upkeep import checks
from tradewind.upkeep.doctor import examine

OLD = "count-019000000000-abcdef"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRADEWIND_NOW", raising=False)
    return tmp_path / "home"


def looked(url: str | None = None) -> list[Finding]:
    return examine(url, lambda store: {})


def bad(found: Sequence[Finding]) -> list[tuple[str, str]]:
    for finding in found:
        assert finding.level == "ok" or finding.why
    return [(f.about, f.level) for f in found if f.level not in ("ok", "missing")]


def run_in(store: stores.Store, run_id: str, *, live: bool = True) -> None:
    if live:
        store.create(places.live(run_id), b"{}")
    event = Submitted(run_id=run_id, spec=SPEC)
    journal.append(store, run_id, 1, writer="w", at=clock.now(), events=[event])


def test_all_is_well_and_nothing_is_left(home: Path) -> None:
    found = looked()
    assert bad(found) == []
    assert {f.about for f in found} >= {"store", "clocks", "computer", "budgets", "runs", "orphans"}
    assert stores.open().list_after("") == []
    assert [f.measured["round_trip_s"] > 0 for f in found if "round_trip_s" in f.measured] == [True]


def test_a_store_that_cannot_be_opened_or_written(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for url in (str(tmp_path / "file"), "/proc/nothing", "ftp://x"):
        assert ("store", "broken") in bad(looked(url))


def test_a_home_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "file" / "home"))
    assert ("computer", "broken") in bad(looked(str(tmp_path / "store")))


def test_a_budgets_file_that_cannot_be_read(home: Path) -> None:
    home.mkdir()
    (home / "budgets.yaml").write_text("projects: {a: {month: many}}\n")
    assert bad(looked()) == [("budgets", "broken")]


def test_runs_that_nobody_looks_after(home: Path) -> None:
    store = stores.open()
    run_in(store, clock.new_id("count"))
    assert bad(looked()) == [("runs", "warning")]
    store.replace(LEASE, b'{"writer":"w","count":1,"pass_s":1.0}')
    assert bad(looked()) == []
    old = clock.epoch() - 3600
    os.utime(home / "store" / LEASE, (old, old))
    assert bad(looked()) == [("runs", "warning")]


def test_a_journal_of_a_newer_version(home: Path) -> None:
    store = stores.open()
    run_id = clock.new_id("count")
    run_in(store, run_id, live=False)
    key = f"runs/{run_id}/journal/{1:020d}.json"
    data = store.get(key)
    newer = data.replace(b'"format":%d' % journal.FORMAT, b'"format":99')
    assert newer != data
    store.replace(key, newer)
    assert bad(looked()) == [("runs", "broken")]


def test_what_was_begun_and_never_submitted(home: Path) -> None:
    store = stores.open()
    store.create(places.live(clock.new_id("count")), b"{}")  # right now: somebody is at it
    assert bad(looked()) == []
    store.create(places.bundle(OLD), b"x")
    assert bad(looked()) == [("orphans", "warning")]


def test_a_machine_that_no_journal_claims(home: Path) -> None:
    store = stores.open()
    with a_home(home):
        provider = LocalProvider(home, store.url, command=command(), own_only=True)
        [machine] = provider.launch(a_request(), 1)
        found = examine(None, lambda store: {"local": provider})
        [stray] = [f for f in found if f.level not in ("ok", "missing")]
        assert machine.machine_id in stray.what
        assert stray.todo == "look again in five minutes"


class Elsewhere(MemoryStore):
    """Whose clock is not ours."""

    ahead_s = 0.0

    def written_s(self, key: str) -> float:
        self.get(key)
        return clock.epoch() + self.ahead_s


@pytest.mark.parametrize(
    ("ahead_s", "level"), [(0.0, "ok"), (-60.0, "warning"), (60.0, "warning"), (3600.0, "broken")]
)
def test_clocks_that_do_not_agree(ahead_s: float, level: str) -> None:
    store = Elsewhere()
    store.ahead_s = ahead_s
    [finding] = checks.clock_checks(store, {})
    assert finding.level == level
    assert finding.measured["skew_s"] == pytest.approx(-ahead_s, abs=5)
    assert store.list_after("") == []
    at_s = int(clock.epoch() + ahead_s)
    [finding] = checks.clock_checks(MemoryStore(), {"cloud": Listing(at_s=at_s, machines=())})
    assert finding.level == level


def test_a_clock_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15")
    assert ("clocks", "warning") in bad(looked())


class Hanging(MemoryStore):
    """Reads, and refuses everything else."""

    def create(self, key: str, data: bytes) -> bool:
        raise NoAccess("read only")


class Lying(MemoryStore):
    """Overwrites where it should create."""

    def create(self, key: str, data: bytes) -> bool:
        self.replace(key, data)
        return True


def test_stores_that_break_promises() -> None:
    [finding] = checks.store_checks(Hanging())
    assert finding.level == "broken"
    assert "not written" in finding.what
    found = list(checks.store_checks(Lying()))
    assert any("creates only what is absent" in f.what and f.level == "broken" for f in found)


class Mute:
    """A provider that does not answer."""

    def list_machines(self) -> Listing:
        raise SourceFailed("no answer")

    def launch(self, request: object, after: int, key: str = "") -> list[Machine]:
        raise AssertionError

    def terminate(self, machine_ids: Sequence[str]) -> None:
        raise AssertionError


def test_a_provider_that_does_not_answer() -> None:
    found = examine(None, lambda store: {"cloud": Mute()})
    assert bad(found) == [("runs", "broken")]


def test_who_we_are_to_a_bucket() -> None:
    env = {"AWS_ACCESS_KEY_ID": "x"}
    for troubles, level in (
        ([], "ok"),
        (["NoAccess"], "broken"),
        (["SourceFailed"], "warning"),
    ):
        [finding] = checks.credential_checks("s3://b", troubles, env)
        assert finding.measured["variables"] == ["AWS_ACCESS_KEY_ID"]
        assert finding.level == level
    assert list(checks.credential_checks("file:///x", [], {})) == []


def test_a_bucket_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert bad(looked("s3://b/x")) == [
        ("store", "broken"),
        ("credentials", "warning"),
        ("runs", "warning"),
    ]


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0o700, ""),
        (0o2770, ""),
        (0o755, "can be read by every user"),
        (0o1777, "can be written by every user"),
    ],
)
def test_who_else_may_read_a_store(tmp_path: Path, mode: int, words: str) -> None:
    outside = Path("/tmp") / f"tradewind-doctor-{os.getpid()}"  # where everybody may come
    outside.mkdir(0o700)
    try:
        outside.chmod(mode)
        found = list(checks.folder_checks(outside.as_uri()))
        assert [words in each.what for each in found] == ([True] if words else [])
        assert all(f"chmod o-rwx {outside}" == each.todo for each in found)
        outside.chmod(0o700)
        (outside / "below").mkdir()
        (outside / "below").chmod(0o777)
        assert list(checks.folder_checks((outside / "below").as_uri())) == []
    finally:
        shutil.rmtree(outside)


def test_a_home_that_others_may_read(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Path("/tmp") / f"tradewind-doctor-{os.getpid()}"
    outside.mkdir(0o700)
    monkeypatch.setenv("TRADEWIND_HOME", str(outside))
    try:
        assert bad(list(checks.computer_checks())) == []
        outside.chmod(0o755)
        found = list(checks.computer_checks())
        assert bad(found) == [("computer", "warning")]
        assert found[-1].todo == f"chmod 700 {outside}"
    finally:
        shutil.rmtree(outside)
