"""What a process asks of a bucket is counted as S3 charges for it: held against a door's own books
before a real S3 server, request by request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cloud.s3 import Books, booked
from tests.store import servers
from tests.store.flaky import flaky
from tradewind.base import clock
from tradewind.base.errors import NotFound, SourceFailed
from tradewind.model.usage import Usage
from tradewind.store import meter
from tradewind.store.meter import Meter, total
from tradewind.store.objects import ObjectStore

pytestmark = pytest.mark.slow

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with servers.s3(tmp_path_factory.mktemp("s3")) as env:
        yield dict(env)


class Metered:
    def __init__(self, store: ObjectStore, books: Books) -> None:
        self.store, self.books = store, books

    def agree(self) -> Usage:
        """The meter's count, which is the door's."""
        (row,) = self.books.asked.values()
        mine = self.store.meter.total
        counted = (mine.writes, mine.reads, mine.bytes_in, mine.bytes_out)
        assert counted == (row.writes, row.reads, row.bytes_in, row.bytes_out), self.books.log
        return mine


@pytest.fixture
def metered(server: dict[str, str], tmp_path: Path) -> Iterator[Metered]:
    books = Books()
    with booked(books, port_of(server)) as port:
        yield Metered(opened(server, port, tmp_path), books)


def port_of(server: dict[str, str]) -> int:
    return int(server["AWS_ENDPOINT_URL"].rpartition(":")[2])


def opened(server: dict[str, str], port: int, folder: Path) -> ObjectStore:
    more = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", meter.VARIABLE: str(folder / "used")}
    return ObjectStore(f"s3://runs/{folder.name}", env=server | more, sleep=lambda _: None)


def test_small_objects(metered: Metered) -> None:
    store = metered.store
    store.replace("a", b"12345")
    assert store.create("b", b"123")
    assert not store.create("b", b"1234")  # refused, and then looked at
    store.get("a")
    store.size("a")
    store.written_s("a")
    store.get_range("a", 1, 3)
    assert metered.agree() == Usage(writes=3, reads=5, bytes_in=12, bytes_out=11)
    store.delete("a")
    store.delete("a")
    assert metered.agree().writes == 3  # which is free


def test_what_is_not_there(metered: Metered) -> None:
    store = metered.store
    for ask in (store.get, store.size):
        with pytest.raises(NotFound):
            ask("nothing")
    store.replace("short", b"1")
    with pytest.raises(SourceFailed):
        store.get_range("short", 5, 5)
    with pytest.raises(NotFound):
        store.download("nothing", Path("unused"))
    assert metered.agree() == Usage(writes=1, reads=4, bytes_in=1)


@pytest.mark.parametrize("size", [0, 1000, 8 * MIB, 8 * MIB + 1, 20 * MIB])
def test_uploads(metered: Metered, tmp_path: Path, size: int) -> None:
    store, path = metered.store, tmp_path / "file"
    path.write_bytes(b"x" * size)
    store.upload("file", path)
    metered.agree()
    step = 3_000_000
    data = path.read_bytes()
    store.upload_parts("pieces", (data[n : n + step] for n in range(0, size, step)), size)
    metered.agree()
    store.download("pieces", tmp_path / "back")
    assert (tmp_path / "back").stat().st_size == size
    told = metered.agree()
    assert (told.bytes_in, told.bytes_out) == (2 * size, size)


def test_an_upload_is_counted_as_it_goes(metered: Metered) -> None:
    """Its machine may be taken before it ends."""
    seen = []

    def parts() -> Iterator[bytes]:
        for _ in range(4):
            seen.append(metered.store.meter.total)
            yield b"x" * 5 * MIB

    metered.store.upload_parts("a", parts(), 20 * MIB)
    assert [usage.bytes_in // MIB for usage in seen] == [0, 5, 10, 15]
    assert [usage.writes for usage in seen] == [1, 1, 2, 2]
    assert metered.agree().writes == 5


@pytest.mark.parametrize("keys", [0, 1, 1000, 1001, 2001])
def test_listings(metered: Metered, keys: int) -> None:
    store = metered.store
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.replace(f"many/{n:05d}", b""), range(keys)))
    assert len(store.list_after("many/")) == keys
    assert metered.agree().writes == keys + max(1, -(-keys // 1000))
    store.list_after("many/", "many/00999")
    store.folders("")
    store.folders("many/")
    metered.agree()


def test_what_was_stored_for_a_while(metered: Metered, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever removes it, if it wrote it or has seen it listed."""
    store, began = metered.store, clock.epoch()
    later = [0.0]
    monkeypatch.setattr(clock, "epoch", lambda: began + later[0])
    store.replace("a", b"x" * 1000)
    later[0] = 60.0
    store.replace("a", b"x" * 500)
    assert (store.meter.total.gone, store.meter.total.byte_s) == (1000, 60_000)
    later[0] = 100.0
    store.delete("a")
    store.delete("a")
    assert (store.meter.total.gone, store.meter.total.byte_s) == (1500, 80_000)
    store.create("b", b"x" * 100)
    store.delete("b")  # of which nobody has heard since
    assert store.meter.total.gone == 1500
    store.create("c", b"x" * 100)
    store.list_after("")
    later[0] = 1_000.0
    store.delete("c")
    assert store.meter.total.gone == 1600
    # Since S3 has it, by its own clock: in whole seconds.
    assert 80_000 + 85_000 <= store.meter.total.byte_s <= 80_000 + 101_000
    metered.agree()


def test_what_lies_there(metered: Metered) -> None:
    store = metered.store
    store.replace("runs/1/a", b"12345")
    store.create("runs/1/b/c", b"12")
    store.create("runs/2/a", b"1234567")
    found = store.weigh("runs/1/")
    assert sorted(size for size, _ in found) == [2, 5]
    assert all(abs(at - clock.epoch()) < 60 for _, at in found)
    assert store.weigh("runs/9/") == []
    metered.agree()


def test_what_the_server_fails_is_free(server: dict[str, str], tmp_path: Path) -> None:
    """However often it is tried again by itself."""
    books = Books()
    with flaky(port_of(server), 0.3, seed=3) as bad, booked(books, bad) as port:
        metered = Metered(opened(server, port, tmp_path), books)
        store = metered.store
        for n in range(30):
            store.replace(f"{n}", b"123")
            store.create(f"new/{n}", b"12")
            store.get(f"{n}")
        store.upload_parts("large", [b"x" * MIB] * 20, 20 * MIB)
        store.list_after("new/")
        (row,) = books.asked.values()
        assert row.free > 20
        metered.agree()


def test_no_bucket_is_free(server: dict[str, str]) -> None:
    store = ObjectStore("s3://nowhere/a", env=server)
    for ask in (store.get, store.size):
        with pytest.raises(NotFound):
            ask("a")
    assert store.meter.total.writes == 0


# -- what is kept on the machine -------------------------------------------------------------------


def test_all_processes_of_a_machine(tmp_path: Path) -> None:
    assert total(tmp_path, "runs") is None
    one, two, other = Meter("runs", tmp_path), Meter("runs", tmp_path), Meter("data", tmp_path)
    one.add(writes=2, bytes_in=7)
    one.add(reads=1, bytes_out=5, byte_s=1 << 70)
    two.add(writes=1)
    other.add(writes=100)
    assert total(tmp_path, "runs") == Usage(
        writes=3, reads=1, bytes_in=7, bytes_out=5, byte_s=1 << 70
    )
    assert total(tmp_path, "data") == Usage(writes=100)


def test_a_fork_begins_anew(tmp_path: Path) -> None:
    env = {meter.VARIABLE: str(tmp_path)}
    mine = meter.of("runs", env)
    mine.add(writes=5)
    child = os.fork()
    if not child:
        try:
            meter.of("runs", env).add(writes=1)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    mine.add(reads=1)
    assert total(tmp_path, "runs") == Usage(writes=6, reads=1)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_killed_process_is_counted(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from tradewind.store.meter import Meter\n"
        "meter = Meter('runs', Path(sys.argv[1]))\n"
        "for _ in range(9): meter.add(writes=1)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert total(tmp_path, "runs") == Usage(writes=9)


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    mine = Meter("runs", tmp_path / "file")
    mine.add(writes=1)
    assert mine.total == Usage(writes=1)
    (tmp_path / "runs.p-1.used").write_bytes(b"torn")
    assert total(tmp_path, "runs") is None


def test_buckets() -> None:
    assert meter.bucket_of("s3://runs/team") == "runs"
    assert meter.bucket_of("s3://my.bucket") == "my.bucket"
    assert meter.bucket_of("gs://runs/x") == "gs:runs"
    assert meter.bucket_of("file:///tmp/x") == meter.bucket_of("az://runs/x") == ""


ADDS = """
import sys, time
from tradewind.store import meter
mine = meter.of("runs", {"TRADEWIND_HOME": sys.argv[1]})
mine.add(writes=1, bytes_out=10)
print("added", flush=True)
time.sleep(float(sys.argv[2]))
"""


def test_a_users_processes_go_on_with_each_others_records(tmp_path: Path) -> None:
    """Of those that are gone, however that was; of those that live, each has its own."""

    def process(sleeps_s: float) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", ADDS, str(tmp_path), str(sleeps_s)]
        made = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert made.stdout is not None
        assert made.stdout.readline() == "added\n"
        return made

    for _ in range(2):
        process(0).communicate()
    killed = process(600)
    other = process(600)
    killed.kill()
    killed.communicate()
    last = process(0)
    last.communicate()
    other.kill()
    other.communicate()
    assert len(list((tmp_path / "used").iterdir())) == 2
    assert meter.total(tmp_path / "used", "runs") == Usage(writes=5, bytes_out=50)
    assert meter.total(tmp_path / "used", "run") is None
