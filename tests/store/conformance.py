"""What every store must do. A test module names its stores by a fixture `place`: an open store,
empty, and how another process reaches the same one (None: it cannot)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.store.servers import child_env
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, TooLarge
from tradewind.store import Store
from tradewind.store.base import MOST_READ, Dated, Pieced
from tradewind.store.probe import probe

ODD = [
    "plain",
    "with space/and more",
    "100%/done%2Fnot",
    "a+b&c=d",
    "q?x#y",
    "quote'\"<tag>",
    "ünïcode/日本/🚢",
    "~tilde/*star/[x]{y}|z^`",
    ".hidden/.file",
    "semi;colon,comma:at@dollar$!()",
    "x" * 200 + "/" + "y" * 200,
]
BAD = ["", "/a", "a/", "a//b", "..", "a/../b", ".", "a/./b", "a\nb", "a\0b", "a\\b", "dot."]
BAD += ["é" * 101, "a/" * 450 + "b", ".tradewind-new/x", "\ud800"]


@dataclass
class Place:
    store: Store
    other_process: bool = True
    env: Mapping[str, str] = field(default_factory=dict)
    many: int = 2_500  # keys to list: more than two pages
    large: int = 40  # MiB
    creators: int = 16  # at once
    races: int = 30


class Conformance:
    def test_reads_its_own_writes(self, place: Place) -> None:
        store = place.store
        with pytest.raises(NotFound, match="a/b"):
            store.get("a/b")
        assert store.create("a/b", b"one")
        assert store.get("a/b") == b"one"
        store.replace("a/b", b"two")
        assert store.get("a/b") == b"two"
        store.replace("a/c", b"")
        assert store.get("a/c") == b""
        assert store.get_many(["a/c", "a/b", "a/c"]) == [b"", b"two", b""]
        with pytest.raises(NotFound):
            store.get_many(["a/b", "a/none"])
        store.delete("a/b")
        store.delete("a/b")
        store.delete("never/there")
        with pytest.raises(NotFound):
            store.get("a/b")
        assert store.list_after("") == ["a/c"]

    def test_tells_when_something_was_written(self, place: Place) -> None:
        """By a clock of its own, which is this computer's here; one in memory has none."""
        if not isinstance(place.store, Dated):
            return
        before = time.time()
        place.store.create("dated", b"x")
        assert before - 60 < place.store.written_s("dated") < time.time() + 60
        with pytest.raises(NotFound):
            place.store.written_s("never")

    def test_create_never_overwrites(self, place: Place) -> None:
        assert place.store.create("k", b"first")
        assert not place.store.create("k", b"second")
        assert not place.store.create("k", b"first")  # equal bytes are no success either
        assert place.store.get("k") == b"first"
        place.store.delete("k")
        assert place.store.create("k", b"third")

    def test_a_folder_is_no_object(self, place: Place) -> None:
        place.store.replace("a/b/c", b"x")
        for folder in ("a", "a/b"):
            with pytest.raises(NotFound):
                place.store.get(folder)
        assert place.store.list_after("a/b/c/") == []
        assert place.store.list_after("none/") == []

    @pytest.mark.parametrize("key", ODD)
    def test_odd_keys(self, place: Place, key: str, tmp_path: Path) -> None:
        store = place.store
        assert store.create(key, b"1")
        assert not store.create(key, b"2")
        assert store.list_after("") == [key]
        assert store.list_after("", key) == []
        folder = key.rpartition("/")[0]
        assert store.list_after(folder + "/" if folder else "") == [key]
        store.download(key, tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == b"1"
        store.upload(key, tmp_path / "got")
        store.delete(key)
        assert store.list_after("") == []

    @pytest.mark.parametrize("key", BAD)
    def test_bad_keys(self, place: Place, key: str, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"x")
        store = place.store
        for call in (
            lambda: store.get(key),
            lambda: store.create(key, b""),
            lambda: store.replace(key, b""),
            lambda: store.delete(key),
            lambda: store.upload(key, path),
            lambda: store.download(key, path),
        ):
            with pytest.raises(InvalidValue, match="cannot be a key"):
                call()
        if key != "a/" and key:
            with pytest.raises(InvalidValue, match="cannot be a prefix"):
                store.list_after(key)
        assert path.read_bytes() == b"x"

    def test_order(self, place: Place) -> None:
        """`a-b` sorts before `a/b` sorts before `a0`, also where folders are real."""
        keys = [
            "a!/z",
            "a-b",
            "a/b",
            "a/b0",
            "a/b-/c",
            "a0",
            "a/c/d/e",
            "A",
            "ab/1",
            "é",
            "z",
            "🚢",
        ]
        for key in keys:
            place.store.replace(key, key.encode())
        wanted = sorted(keys)
        assert place.store.list_after("") == wanted
        for after in [*wanted, "a", "a/bb", "a/b/zz", "zzz"]:
            assert place.store.list_after("", after) == [k for k in wanted if k > after], after
            under = [k for k in wanted if k > after and k.startswith("a/")]
            assert place.store.list_after("a/", after) == under, after

    def test_folders(self, place: Place) -> None:
        store = place.store
        assert store.folders("") == store.folders("none/") == []
        for key in ("r/a/1", "r/a/x/2", "r/a-b/1", "r/a0/1/2/3", "r/file", "s/t"):
            assert store.create(key, b"")
        assert store.folders("") == ["r", "s"]
        assert store.folders("r/") == ["a", "a-b", "a0"]
        assert store.folders("r/a/") == ["x"]
        assert store.folders("s/") == []
        store.delete("r/a0/1/2/3")
        assert store.folders("r/") in (["a", "a-b"], ["a", "a-b", "a0"])
        with pytest.raises(InvalidValue, match="cannot be a prefix"):
            store.folders("r")

    def test_thousands_of_keys(self, place: Place) -> None:
        keys = [f"runs/r1/journal/{n:020d}.json" for n in range(1, place.many + 1)]
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda key: place.store.create(key, key.encode()), keys))
        place.store.replace("runs/r10/journal/x", b"")  # a neighbour, not below
        assert place.store.list_after("runs/r1/") == keys
        for at in (0, 998, 999, 1000, len(keys) - 2, len(keys) - 1):
            assert place.store.list_after("runs/r1/journal/", keys[at]) == keys[at + 1 :]
        some = random.Random(1).sample(keys, 300)
        assert place.store.get_many(some) == [key.encode() for key in some]

    def test_large_objects_are_streamed(self, place: Place, tmp_path: Path) -> None:
        source, back = tmp_path / "large", tmp_path / "deep" / "back"
        block = os.urandom(1 << 20)
        with source.open("wb") as stream:
            for n in range(place.large):
                stream.write(n.to_bytes(8, "big") + block[8:])
            stream.write(b"and a bit")
        place.store.upload("big/one", source)
        place.store.download("big/one", back)
        with source.open("rb") as a, back.open("rb") as b:
            while True:
                mine, theirs = a.read(1 << 20), b.read(1 << 20)
                assert mine == theirs
                if not mine:
                    break
        assert sorted(p.name for p in back.parent.iterdir()) == ["back"]
        source.write_bytes(b"")
        place.store.upload("big/one", source)
        place.store.download("big/one", back)
        assert back.read_bytes() == b""

    def test_no_read_takes_more_than_asked_for(self, place: Place, tmp_path: Path) -> None:
        store, there = place.store, tmp_path / "there"
        store.replace("a", b"x" * 1000)
        store.replace("b", b"y")
        there.write_bytes(b"old")
        assert store.get("a", most=1000) == b"x" * 1000
        assert store.get_many(["a", "b"], most=1000) == [b"x" * 1000, b"y"]
        for read in (
            lambda: store.get("a", most=999),
            lambda: store.get_many(["b", "a"], most=999),
            lambda: store.get_many(["a"], most=999),
            lambda: store.download("a", there, most=999),
        ):
            with pytest.raises(TooLarge, match=r"a in .* is too large: 1kB"):
                read()
        assert there.read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir() if "there" in path.name] == ["there"]
        store.download("a", there, most=1000)
        assert there.read_bytes() == b"x" * 1000
        with pytest.raises(NotFound):
            store.get("none", most=0)
        assert not store.create("b", b"")  # what is there is larger than ours, so not ours

    def test_a_read_has_a_bound_where_nobody_names_one(self, place: Place, tmp_path: Path) -> None:
        with (tmp_path / "huge").open("wb") as stream:
            stream.truncate(MOST_READ + 1)
        place.store.upload("huge", tmp_path / "huge")
        with pytest.raises(TooLarge, match="huge"):
            place.store.get("huge")
        with pytest.raises(TooLarge, match="huge"):
            place.store.get_many(["huge"])
        if isinstance(place.store, Pieced):
            assert place.store.size("huge") == MOST_READ + 1
        place.store.download("huge", tmp_path / "back")
        assert (tmp_path / "back").stat().st_size == MOST_READ + 1

    def test_large_objects_in_pieces(self, place: Place) -> None:
        store = place.store
        if not isinstance(store, Pieced):
            pytest.skip("not for large objects")
        parts = [os.urandom(5 << 20) for _ in range(4)] + [b"and a bit"]
        whole = b"".join(parts)
        store.upload_parts("big/parts", (memoryview(part) for part in parts), len(whole))
        assert store.get("big/parts") == whole
        assert store.size("big/parts") == len(whole)
        assert bytes(store.get_range("big/parts", 7 << 20, 1 << 20)) == whole[7 << 20 : 8 << 20]
        assert bytes(store.get_range("big/parts", len(whole) - 5, 5)) == whole[-5:]
        for ask in (lambda: store.size("big/none"), lambda: store.get_range("big/none", 0, 1)):
            with pytest.raises(NotFound, match="big/none"):
                ask()

        def broken() -> Iterator[bytes]:
            yield parts[0]
            raise KeyError("ours")

        with pytest.raises(KeyError, match="ours"):
            store.upload_parts("big/parts", broken(), len(whole))
        assert store.get("big/parts") == whole
        assert store.list_after("big/") == ["big/parts"]

    def test_what_cannot_be_copied_leaves_things_as_they_were(
        self, place: Place, tmp_path: Path
    ) -> None:
        there = tmp_path / "there"
        there.write_bytes(b"old")
        with pytest.raises(NotFound):
            place.store.download("none", there)
        with pytest.raises(NoAccess):
            place.store.upload("none", tmp_path / "missing")
        assert there.read_bytes() == b"old"
        assert place.store.list_after("") == []
        assert [p.name for p in tmp_path.iterdir() if "there" in p.name] == ["there"]

    def test_readers_see_old_or_new(self, place: Place) -> None:
        """Objects of one repeated byte, replaced over and over: a mixture would be a torn one."""
        bodies = [bytes([65 + n]) * (100_000 + 1000 * n) for n in range(5)]
        place.store.replace("k", bodies[0])
        done = threading.Event()

        def write() -> None:
            n = 0
            while not done.is_set():
                n += 1
                place.store.replace("k", bodies[n % 5])

        writer = threading.Thread(target=write)
        writer.start()
        seen: list[bytes] = []
        try:
            while len(seen) < 60 or len(set(seen)) < 3:
                got = place.store.get("k")
                assert got in bodies
                seen.append(got[:1])
        finally:
            done.set()
            writer.join()

    def test_one_of_many_threads_creates(self, place: Place) -> None:
        with ThreadPoolExecutor(place.creators) as pool:
            for turn in range(place.races):
                told = list(
                    pool.map(
                        lambda n, k=f"t/{turn}": place.store.create(k, b"%d" % n),
                        range(place.creators),
                    )
                )
                assert told.count(True) == 1
                assert place.store.get(f"t/{turn}") == b"%d" % told.index(True)

    def test_one_of_many_processes_creates(self, place: Place) -> None:
        if not place.other_process:
            pytest.skip("lives in one process")
        names, count = [f"p{n}" for n in range(6)], 3 * place.races
        racers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.store.racer", place.store.url, name, str(count)],
                env=child_env(place.env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in names
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        won: dict[int, str] = {}
        for name, racer in zip(names, racers, strict=True):
            out, _ = racer.communicate(timeout=120)
            assert racer.returncode == 0
            for line in out.split():
                assert int(line) not in won, "two were told that they created it"
                won[int(line)] = name
        assert sorted(won) == list(range(count))
        for number, name in won.items():
            assert place.store.get(f"race/{number:04d}") == name.encode()

    def test_the_probe_is_content(self, place: Place) -> None:
        checks = probe(place.store, "p1")
        assert [c for c in checks if not c.kept] == []
        assert len(checks) == 6
        assert place.store.list_after("") == []
