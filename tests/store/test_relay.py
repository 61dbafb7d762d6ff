"""A store that is reached by a socket of who started a machine, and what machines may do there."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec import json

from tests.store.conformance import Conformance, Place
from tradewind import store as stores
from tradewind.base.errors import BadFile, InvalidValue, NoAccess, NotFound, SourceFailed
from tradewind.base.signing import SEED
from tradewind.store.base import MOST_READ, Store, check_key, check_prefix
from tradewind.store.relay import Relay
from tradewind.store.relayed import RelayedStore, Ticket, url_of

RUN, LAUNCH = "run-1", "run-1-1"
OWN = f"runs/{RUN}/shards/"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    made = stores.open(tmp_path / "store")
    made.create(SEED, bytes(32))
    return made


@pytest.fixture
def relay(kept: Store) -> Iterator[Relay]:
    made = Relay(kept)
    yield made
    made.close()


def ticket(relay: Relay, folder: Path, **changes: str) -> str:
    """As a machine is given it: the URL that it opens."""
    sockets = folder / "sockets"
    sockets.mkdir(exist_ok=True)
    (sockets / "1").unlink(missing_ok=True)
    (sockets / "1").symlink_to(relay.socket())
    told = {"run_id": RUN, "launch_id": LAUNCH, "token": relay.token(RUN, LAUNCH), **changes}
    path = folder / "ticket.json"
    path.write_bytes(json.encode(Ticket(sockets=str(sockets), **told)))
    return url_of(str(path))


class Within:
    """A store of what lies below a folder of another: a machine may write only there."""

    def __init__(self, store: RelayedStore) -> None:
        self._store, self.url = store, store.url

    def get(self, key: str, *, most: int = MOST_READ) -> bytes:
        return self._store.get(_at(key), most=most)

    def get_many(self, keys: Sequence[str], *, most: int = MOST_READ) -> list[bytes]:
        return self._store.get_many([_at(key) for key in keys], most=most)

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        start = OWN + after if after else ""
        found = self._store.list_after(OWN + check_prefix(prefix), start)
        return [key.removeprefix(OWN) for key in found]

    def folders(self, prefix: str) -> list[str]:
        return self._store.folders(OWN + check_prefix(prefix))

    def create(self, key: str, data: bytes) -> bool:
        return self._store.create(_at(key), data)

    def replace(self, key: str, data: bytes) -> None:
        self._store.replace(_at(key), data)

    def delete(self, key: str) -> None:
        self._store.delete(_at(key))

    def upload(self, key: str, path: Path) -> None:
        self._store.upload(_at(key), path)

    def download(self, key: str, path: Path, *, most: int | None = None) -> None:
        self._store.download(_at(key), path, most=most)

    def upload_parts(self, key: str, parts: Iterable[bytes], size: int) -> None:
        self._store.upload_parts(_at(key), parts, size)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._store.get_range(_at(key), start, length)

    def size(self, key: str) -> int:
        return self._store.size(_at(key))

    def written_s(self, key: str) -> float:
        return self._store.written_s(_at(key))


def _at(key: str) -> str:
    return OWN + check_key(key)


@pytest.mark.slow
class TestRelayed(Conformance):
    @pytest.fixture
    def place(self, relay: Relay, tmp_path: Path) -> Place:
        opened = stores.open(ticket(relay, tmp_path))
        assert isinstance(opened, RelayedStore)
        return Place(Within(opened), other_process=False, many=1100, races=5)


def test_a_machine_has_its_own_run_and_nothing_else(
    relay: Relay, kept: Store, tmp_path: Path
) -> None:
    kept.create("runs/run-1/journal/1.json", b"{}")
    kept.create("runs/run-2/journal/1.json", b"{}")
    kept.create("runs/run-1x/journal/1.json", b"{}")
    machine = stores.open(ticket(relay, tmp_path))
    assert machine.get("runs/run-1/journal/1.json") == b"{}"
    for key in (SEED, "runs/run-2/journal/1.json", "runs/run-1x/journal/1.json", "live/run-1"):
        with pytest.raises(NoAccess, match="no right"):
            machine.get(key)
        with pytest.raises(NoAccess, match="no right"):
            machine.replace(key, b"x")
        with pytest.raises(NoAccess, match="no right"):
            machine.create(key, b"x")
        with pytest.raises(NoAccess, match="no right"):
            machine.delete(key)
    for key in ("runs/run-1/journal/2.json", "runs/run-1/job/bundle.tar.gz"):
        with pytest.raises(NoAccess, match="no right"):
            machine.create(key, b"x")
    machine.replace("runs/run-1/machines/m/heartbeat.json", b"x")
    with pytest.raises(NoAccess, match="no right"):
        machine.delete("runs/run-1/machines/m/heartbeat.json")
    for prefix in ("", "runs/", "runs/run-2/", "keys/"):
        with pytest.raises(NoAccess, match="no right"):
            machine.list_after(prefix)
        with pytest.raises(NoAccess, match="no right"):
            machine.folders(prefix)
    assert kept.list_after("runs/run-2/") == ["runs/run-2/journal/1.json"]


@pytest.mark.parametrize(
    "changes",
    [{"token": "0" * 64}, {"run_id": "run-2"}, {"launch_id": "run-1-2"}, {"run_id": "../x"}],
)
def test_a_token_is_for_one_launch_of_one_run(
    relay: Relay, tmp_path: Path, changes: dict[str, str]
) -> None:
    machine = stores.open(ticket(relay, tmp_path, **changes))
    with pytest.raises(NoAccess, match="does not know who asks"):
        machine.list_after("runs/run-1/")


def test_no_other_user_may_open_its_socket(relay: Relay) -> None:
    path = relay.socket()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_newest_that_answers_is_asked_and_dead_ones_are_removed(
    relay: Relay, kept: Store, tmp_path: Path
) -> None:
    url = ticket(relay, tmp_path)
    sockets = tmp_path / "sockets"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(sockets / "2"))  # nobody listens any more
    os.utime(sockets / "1", (1, 1), follow_symlinks=False)
    machine = stores.open(url)
    machine.replace(f"{OWN}a", b"x")
    assert kept.get(f"{OWN}a") == b"x"
    assert not (sockets / "2").exists()


def test_one_whose_other_end_is_gone_is_passed_over(relay: Relay, tmp_path: Path) -> None:
    url = ticket(relay, tmp_path)
    sockets = tmp_path / "sockets"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(sockets / "2"))
        mute.listen()

        def hang_up() -> None:
            mute.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        stores.open(url).replace(f"{OWN}a", b"x")
        thread.join()


def test_where_nobody_answers_it_is_tried_for_a_while(relay: Relay, tmp_path: Path) -> None:
    url = ticket(relay, tmp_path)
    link = tmp_path / "sockets" / "1"
    link.unlink()
    slept: list[float] = []
    away = RelayedStore(url, sleep=slept.append)
    with pytest.raises(SourceFailed, match="no controller is connected"):
        away.replace(f"{OWN}a", b"x")
    assert len(slept) == 5

    def comes_back(_: float) -> None:
        link.unlink(missing_ok=True)
        link.symlink_to(relay.socket())

    again = RelayedStore(url, sleep=comes_back)
    assert again.create(f"{OWN}a", b"x")
    assert again.get(f"{OWN}a") == b"x"


def test_a_create_whose_answer_was_lost_is_looked_up(
    relay: Relay, kept: Store, tmp_path: Path
) -> None:
    url = ticket(relay, tmp_path)
    sockets = tmp_path / "sockets"
    (sockets / "1").unlink()
    with socket.socket(socket.AF_UNIX) as between:
        between.bind(str(sockets / "0"))
        between.listen()

        def loses_the_answer() -> None:
            asks, _ = between.accept()
            with asks, socket.socket(socket.AF_UNIX) as there:
                there.connect(str(relay.socket()))
                asked = b""
                while not asked.endswith(b"mine"):  # it may come in any pieces
                    asked += asks.recv(1 << 16)
                there.sendall(asked)
                there.recv(1 << 16)  # it was done, and nobody is told

        thread = threading.Thread(target=loses_the_answer)
        thread.start()

        def comes_back(_: float) -> None:
            thread.join()
            (sockets / "1").symlink_to(relay.socket())
            (sockets / "0").unlink()

        assert RelayedStore(url, sleep=comes_back).create(f"{OWN}a", b"mine")
    assert kept.get(f"{OWN}a") == b"mine"
    assert not stores.open(url).create(f"{OWN}a", b"mine")


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(NoAccess):
        stores.open(f"relay://{tmp_path}/none")
    (tmp_path / "bad").write_bytes(b"{}")
    with pytest.raises(BadFile):
        stores.open(f"relay://{tmp_path}/bad")


def test_a_store_that_has_no_seed_lets_nobody_in(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Relay(stores.open(tmp_path / "new")).token(RUN, LAUNCH)


def test_odd_requests_are_refused(relay: Relay, tmp_path: Path) -> None:
    machine = stores.open(ticket(relay, tmp_path))
    assert isinstance(machine, RelayedStore)
    with pytest.raises(InvalidValue, match="no object"):
        machine._asked("GET", "/elsewhere", lambda answer: answer.read(), "x")
    with pytest.raises(InvalidValue, match="cannot be a key"):
        machine._asked("GET", f"/o/runs/{RUN}/../../x", lambda answer: answer.read(), "x")
