from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.store.conformance import Conformance, Place
from tests.store.servers import child_env
from tradewind import store
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, TooLarge
from tradewind.store.base import RESERVED
from tradewind.store.local import LocalStore


class TestMemory(Conformance):
    @pytest.fixture
    def place(self) -> Place:
        return Place(store.open("memory://"), other_process=False)


class TestLocal(Conformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return Place(store.open(tmp_path / "a folder" / "store"))


def test_memory_is_shared_by_name() -> None:
    one, two = store.open("memory://shared-name"), store.open("memory://shared-name")
    assert one.create("k", b"1")
    assert not two.create("k", b"2")
    assert store.open("memory://").create("k", b"3")


def test_urls(tmp_path: Path) -> None:
    folder = tmp_path / "with space %20"
    opened = store.open(folder)
    opened.replace("k", b"v")
    assert store.open(opened.url).get("k") == b"v"
    assert store.open(f"file://localhost{tmp_path}/x").url == (tmp_path / "x").as_uri()
    for bad in (
        "",
        "ftp://x",
        "file://host/x",
        "file://",
        "s3://",
        "s3:///x",
        "s3://b/../c",
        "s3://b?x=1",
    ):
        with pytest.raises(InvalidValue):
            store.open(bad)


def test_opening_and_reading_make_no_folder(tmp_path: Path) -> None:
    opened = store.open(tmp_path / "none")
    assert opened.list_after("") == []
    assert not (tmp_path / "none").exists()


def test_the_default(tmp_path: Path) -> None:
    env = {"TRADEWIND_HOME": str(tmp_path)}
    assert store.default_url(env) == (tmp_path / "store").as_uri()
    store.remember("s3://bucket/x", env)
    assert store.default_url(env) == "s3://bucket/x"
    assert store.default_url(env | {"TRADEWIND_STORE": "memory://y"}) == "memory://y"
    (tmp_path / "store.url").write_text("a\nb\n")
    with pytest.raises(Exception, match="not one URL"):
        store.default_url(env)


def test_a_key_is_no_other_key_s_folder(tmp_path: Path) -> None:
    opened = store.open(tmp_path)
    opened.replace("a/b", b"")
    for key in ("a", "a/b/c"):
        with pytest.raises(InvalidValue, match="another key's folder"):
            opened.create(key, b"")
        with pytest.raises(InvalidValue, match="another key's folder"):
            opened.replace(key, b"")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(NoAccess, match=r"is a file|cannot be created"):
        store.open(tmp_path).create("a", b"")


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((NoAccess, InvalidValue), match=r"is a file|cannot be created"):
        store.open(tmp_path / "file").create("a", b"")


def test_leftovers_of_the_dead_are_swept_and_those_of_the_living_not(tmp_path: Path) -> None:
    opened = store.open(tmp_path)
    opened.create("a", b"1")
    new = tmp_path / RESERVED
    assert list(new.iterdir()) == []
    (new / "dead").write_bytes(b"half")
    with (new / "alive").open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert store.open(tmp_path).list_after("") == ["a"]
        assert [p.name for p in new.iterdir()] == ["alive"]


def test_a_writer_survives_being_swept_before_it_holds_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = LocalStore(tmp_path)
    real = fcntl.flock
    swept: list[bool] = []

    def flock(stream: int, how: int) -> None:
        if not swept:
            swept.append(True)
            for path in (tmp_path / RESERVED).iterdir():
                path.unlink()
        real(stream, how)

    monkeypatch.setattr("tradewind.store.local.fcntl.flock", flock)
    assert opened.create("k", b"v")
    assert opened.get("k") == b"v"
    assert list((tmp_path / RESERVED).iterdir()) == []


WRITER = """
import sys
from pathlib import Path
from tradewind import store
opened = store.open(sys.argv[1])
large = Path(sys.argv[2])
print("ready", flush=True)
n = 0
while True:
    n += 1
    opened.replace("heartbeat", b"%d:" % n + bytes([n % 256]) * 50_000)
    opened.create(f"journal/{n:020d}", b"%d:" % n + bytes([n % 256]) * 5_000)
    if n % 5 == 0:
        opened.upload("large", large)
    print(n, flush=True)
"""


def test_kill_9_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """Real processes, killed at random moments of their writing."""
    rng = random.Random(7)
    large = tmp_path / "large"
    large.write_bytes(b"L" * 3_000_000)
    for turn in range(12):
        folder = tmp_path / f"store{turn}"
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(large)],
            stdout=subprocess.PIPE,
            text=True,
            env=child_env({}),
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.01, 0.15))
        writer.kill()
        told = writer.stdout.read().split("\n")
        writer.wait()
        writer.stdout.close()
        said = int(told[-2]) if len(told) > 1 else 0  # the last that it finished
        opened = store.open(folder)
        keys = opened.list_after("journal/")
        assert len(keys) in (said, said + 1)
        for number, key in enumerate(keys, start=1):
            assert opened.get(key) == b"%d:" % number + bytes([number % 256]) * 5_000
        if said:
            count, body = opened.get("heartbeat").split(b":", 1)
            assert int(count) in (said, said + 1)
            assert body == bytes([int(count) % 256]) * 50_000
        if "large" in opened.list_after(""):
            assert opened.get("large") == large.read_bytes()
        assert list((folder / RESERVED).iterdir() if (folder / RESERVED).exists() else []) == []
        # And the next writer goes on.
        assert opened.create(f"journal/{len(keys) + 1:020d}", b"")


def test_what_is_larger_than_the_memory_is_not_read(tmp_path: Path) -> None:
    """A file without content, as long as a file can be: it could be neither held nor copied."""
    opened = store.open(tmp_path / "store")
    opened.replace("k", b"")
    with (tmp_path / "store" / "k").open("wb") as stream:
        stream.truncate(1 << 42)
    for read in (
        lambda: opened.get("k"),
        lambda: opened.get_many(["k"], most=1 << 20),
        lambda: opened.download("k", tmp_path / "out", most=1 << 30),
    ):
        with pytest.raises(TooLarge, match=r"4\.4TB"):
            read()
    assert not (tmp_path / "out").exists()


def test_a_pipe_in_the_folder_is_no_object(tmp_path: Path) -> None:
    """Whoever opened it would wait for its writer for ever."""
    opened = store.open(tmp_path / "store")
    opened.replace("k", b"")
    os.mkfifo(tmp_path / "store" / "pipe")
    for read in (
        lambda: opened.get("pipe"),
        lambda: opened.download("pipe", tmp_path / "out"),
        lambda: LocalStore(tmp_path / "store").get_range("pipe", 0, 1),
    ):
        with pytest.raises(NotFound, match="pipe"):
            read()
    os.mkfifo(tmp_path / "store" / RESERVED / "pipe")
    assert store.open(tmp_path / "store").get("k") == b""
