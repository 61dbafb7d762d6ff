"""In the store of a run: a folder, and a bucket of a real S3 server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store import servers
from tests.torch.checkpoint.states import blank, same, tensors
from tradewind import store as stores
from tradewind.model import places
from tradewind.store import Store
from tradewind.torch.checkpoint import Checkpoints, Place

RUN = "runs/r/"


def steps(store: Store) -> list[str]:
    return [key[len(RUN + "checkpoints/") :] for key in store.list_after(RUN + "checkpoints/")]


def key(leg: int, step: int) -> str:
    return f"{leg:06d}/{step:020d}.json"


def saved(place: Place, *which: int, keep: int = 3) -> None:
    checkpoints = Checkpoints(place, keep=keep)
    for step in which:
        assert checkpoints.save(step, tensors(step), wait=True)
    checkpoints.close()


def newest(place: Place) -> int | None:
    found = Checkpoints(place, warn=len).newest()
    return found.step if found else None


class TestARun:
    def test_supervisors_see_its_manifests(self, tmp_path: Path) -> None:
        place = Place(store=tmp_path, prefix=RUN, leg=2)
        saved(place, 5)
        (only,) = place.store.list_after(places.checkpoints("r"))
        assert only == places.checkpoint("r", 2, 5) == place.manifest(5)
        assert place.store.list_after(places.shards("r"))
        env = {"TRADEWIND_STORE": str(tmp_path), "TRADEWIND_RUN": "r", "TRADEWIND_LEG": "3"}
        again = Place.of_run(env={**env, "TRADEWIND_RESUME": only})
        assert again is not None
        assert newest(again) == 5
        assert Place.of_run(env={}) is None

    def test_a_leg_goes_on_from_what_was_agreed(self, tmp_path: Path) -> None:
        saved(Place(store=tmp_path, prefix=RUN, leg=1), 10, 20)
        first, second = places.checkpoint("r", 1, 10), places.checkpoint("r", 1, 20)
        for leg, resume, step in ((2, first, 10), (2, second, 20), (2, "", None), (1, "", 20)):
            place = Place(store=tmp_path, prefix=RUN, leg=leg, resume=resume)
            assert newest(place) == step
        # Its own are newer than that, however few steps they count.
        saved(Place(store=tmp_path, prefix=RUN, leg=2, resume=first), 11)
        assert newest(Place(store=tmp_path, prefix=RUN, leg=2, resume=first)) == 11
        # One that was replaced does not see them.
        assert newest(Place(store=tmp_path, prefix=RUN, leg=1, resume="")) == 20

    def test_two_stay_at_least_and_all_once_it_is_replaced(self, tmp_path: Path) -> None:
        place = Place(store=tmp_path, prefix=RUN, leg=1)
        saved(place, 1, 2, 3, keep=1)
        assert steps(place.store) == [key(1, 2), key(1, 3)]
        place.store.create(places.resume("r", 2), b"")
        saved(place, 4, 5, keep=1)
        assert steps(place.store) == [key(1, n) for n in (2, 3, 4, 5)]
        saved(Place(store=tmp_path, prefix=RUN, leg=2), 6, keep=2)
        assert steps(place.store) == [key(1, 5), key(2, 6)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.S3Server]:
    server = servers.S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    try:
        servers.make_bucket(server.env)
        yield server
    finally:
        server.stop()


@pytest.mark.slow
class TestABucket:
    def bucket(self, server: servers.S3Server, name: str) -> Store:
        return stores.open(f"s3://runs/{name}", env=server.env)

    def test_from_here_if_it_is_here_else_from_there(
        self, server: servers.S3Server, tmp_path: Path
    ) -> None:
        store = self.bucket(server, "both")
        place = Place(tmp_path, store, RUN, leg=1)
        saved(place, 1, 2, 3, keep=2)
        assert steps(store) == [key(1, 2), key(1, 3)]
        folders = sorted(each.name[:20] for each in (tmp_path / RUN / "shards/000001").iterdir())
        assert folders == [f"{2:020d}", f"{3:020d}"]
        found = Checkpoints(place).newest()
        assert found is not None
        assert found.folder is None  # here is not all of it
        local = tmp_path / RUN / "shards" / found.name / "__0_0.distcp"
        data = bytearray(local.read_bytes())
        data[5_000_000] ^= 1  # one piece is taken from the bucket, where it is whole
        local.write_bytes(data)
        for where in (tmp_path, tmp_path / "another machine", None):
            checkpoints = Checkpoints(Place(where, store, RUN, leg=1))
            there = blank(tensors(3))
            found = checkpoints.newest()
            assert found is not None
            assert checkpoints.read(found, there).found.step == 3
            assert same(there, tensors(3))

    def test_no_faster_than_it_may(self, server: servers.S3Server) -> None:
        store = self.bucket(server, "slowly")
        size = sum(t.numel() * t.dtype.itemsize for t in tensors(1).values())
        checkpoints = Checkpoints(Place(store=store, prefix=RUN), upload_rate=size)
        assert checkpoints.save(1, tensors(1), wait=True)
        done = checkpoints.poll()
        assert done is not None
        assert done.total_s > 0.5
        assert checkpoints.would_take_s() > 0.5

    def test_a_bucket_that_does_not_answer_holds_up_nothing(
        self, server: servers.S3Server, tmp_path: Path
    ) -> None:
        store = self.bucket(server, "frozen")
        warned: list[str] = []
        checkpoints = Checkpoints(Place(tmp_path, store, RUN, leg=1), warn=warned.append)
        assert checkpoints.save(1, tensors(1), wait=True)
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            assert checkpoints.save(2, tensors(2), deadline_s=1.0)
            checkpoints.gate()
            done = checkpoints.finish(60)
            assert done is not None
            assert done.step == 1
            assert "did not answer in time" in warned[0]
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        while not checkpoints.save(3, tensors(3), wait=True):
            assert "hangs" in warned[-1], warned
        checkpoints.close()
        assert steps(store) == [key(1, 1), key(1, 3)]
