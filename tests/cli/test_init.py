from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tradewind import store
from tradewind.store.memory import MemoryStore
from tradewind.store.probe import probe


def test_without_a_url_the_home_is_tried(cli: Cli, home: Path) -> None:
    ran = cli("init", "--json")
    assert ran.code == 0
    assert ran.json["store"] == (home / "store").as_uri()
    assert all(check["kept"] for check in ran.json["checks"])
    assert len(ran.json["checks"]) == 6
    assert not (home / "store.url").exists()
    assert store.open().list_after("") == []


def test_a_store_is_remembered(cli: Cli, home: Path, tmp_path: Path) -> None:
    ran = cli("init", str(tmp_path / "runs"))
    assert ran.code == 0
    assert "one of 8 at once" in ran.out
    assert (home / "store.url").read_text().strip() == (tmp_path / "runs").as_uri()
    assert store.open().url == (tmp_path / "runs").as_uri()


def test_what_is_no_store(cli: Cli, home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for url, code in (("ftp://x", 2), ("s3://", 2), (str(tmp_path / "file"), 2)):
        assert cli("init", url).code == code, url
    assert not (home / "store.url").exists()


class Overwrites(MemoryStore):
    """A gateway that ignores If-None-Match."""

    def create(self, key: str, data: bytes) -> bool:
        self.replace(key, data)
        return True


class Late(MemoryStore):
    """Looks first and writes later, so that two can pass."""

    def create(self, key: str, data: bytes) -> bool:
        import time

        with self._lock:
            there = key in self._objects
        time.sleep(0.002)
        if not there:
            self.replace(key, data)
        return not there


class Agrees(MemoryStore):
    def create(self, key: str, data: bytes) -> bool:
        super().create(key, data)
        return True


class Stale(MemoryStore):
    def replace(self, key: str, data: bytes) -> None:
        pass


class Keeps(MemoryStore):
    def delete(self, key: str) -> None:
        pass


class Forgets(MemoryStore):
    def list_after(self, prefix: str, after: str = "") -> list[str]:
        return super().list_after(prefix)


@pytest.mark.parametrize(
    ("broken", "saw"),
    [
        (Overwrites, "overwrote the first"),
        (Late, "of 8 at once were told yes"),
        (Agrees, "told yes, though"),
        (Stale, "after replacing"),
        (Keeps, "after deleting"),
        (Forgets, "keys after"),
    ],
)
def test_a_store_that_breaks_its_promise_is_refused(
    broken: type[MemoryStore],
    saw: str,
    cli: Cli,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks = probe(broken(), "p")
    assert any(saw in check.saw for check in checks if not check.kept)
    monkeypatch.setattr(store, "open", lambda url: broken("x"))
    ran = cli("init", "memory://x")
    assert ran.code == 6
    assert "cannot hold runs" in ran.err
    assert "BAD" in ran.out
    assert not (home / "store.url").exists()
