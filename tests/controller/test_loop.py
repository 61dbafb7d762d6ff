from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.controller.fakes import World
from tradewind.base import clock
from tradewind.base.errors import SourceFailed
from tradewind.controller import persist
from tradewind.controller.loop import LEASE, Loop
from tradewind.controller.memory import Memory
from tradewind.lifecycle.state import Refusal
from tradewind.store.base import MOST_READ
from tradewind.store.memory import MemoryStore


def remembered(memory: Memory) -> object:
    return {
        name: (run.state, run.since, run.unlisted, {m: p.silent_s for m, p in run.pulses.items()})
        for name, run in memory.runs.items()
    }


def test_a_memory_comes_back_as_it_was(tmp_path: Path) -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.whole_pass(controller)
    world.beat("m1")
    world.whole_pass(controller)
    state = controller.memory.runs["run-1"].state
    state.ratios["1 small in cloud/r1-a"] = 0.5
    state.refusals["no_quota x"] = Refusal("x", "no_quota", 3)
    assert state.spec is not None
    state.spec = replace(state.spec, job={"command": "x", "env": {"A": "of-nobody-here"}})
    path = persist.place(tmp_path, "memory://x")
    persist.save(path, controller.memory, "memory://x", 5000.0)
    assert b"of-nobody-here" not in path.read_bytes()
    state.spec = replace(state.spec, job={})
    loaded = persist.load(path, "memory://x", 5001.0)
    assert remembered(loaded) == remembered(controller.memory)
    assert loaded.runs["run-1"].state.leg is not None


@pytest.mark.parametrize("spoil", ["clock", "store", "garbage", "missing", "older"])
def test_a_memory_that_cannot_be_trusted_is_none(tmp_path: Path, spoil: str) -> None:
    world = World()
    controller = world.controller()
    world.submit(controller)
    world.whole_pass(controller)
    path = persist.place(tmp_path, "memory://x")
    persist.save(path, controller.memory, "memory://x", 5000.0)
    assert persist.load(path, "memory://x", 5000.0).runs
    url, now = "memory://x", 5000.0
    if spoil == "clock":
        now = 4999.0
    elif spoil == "store":
        url = "memory://y"
    elif spoil == "garbage":
        path.write_bytes(path.read_bytes()[:-7])
    elif spoil == "missing":
        path.unlink()
    else:
        whole = json.decode(path.read_bytes())
        path.write_bytes(json.encode(whole | {"version": "0.0.0"}))
    assert not persist.load(path, url, now).runs


def test_a_pass_is_done_though_its_memory_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "controllers").write_bytes(b"a file where a folder should be")
    loop = Loop(MemoryStore(), {}, tmp_path, pass_s=0.01)
    assert loop.tick() == []
    assert loop.unkept is not None
    told: list[str] = []
    turns = iter(range(1))
    loop.watch(
        lambda: next(turns, None) is not None,
        tell=lambda troubles: told.extend(error.message for _, error in troubles),
    )
    assert told == [loop.unkept.message]
    (tmp_path / "controllers").unlink()
    assert loop.tick() == []
    assert loop.unkept is None


def loops(tmp_path: Path, store: MemoryStore, many: int, pass_s: float = 0.01) -> list[Loop]:
    return [Loop(store, {}, tmp_path / str(n), pass_s=pass_s) for n in range(many)]


def passes(loop: Loop, monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """The passes that were made in so many turns, with a clock of its own."""
    made: list[int] = []
    turns = iter(range(most))
    now = [0.0]
    monkeypatch.setattr(clock, "stopwatch", lambda: now[0])
    monkeypatch.setattr(clock, "sleep", lambda s: now.__setitem__(0, now[0] + s))

    def tick() -> list[object]:
        made.append(1)
        return []

    monkeypatch.setattr(loop, "tick", tick)
    loop.watch(lambda: next(turns, None) is not None)
    return made


def test_whoever_is_alone_makes_every_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    (loop,) = loops(tmp_path, store, 1)
    assert len(passes(loop, monkeypatch, 5)) == 5
    assert store.list_after("controllers/") == []  # it leaves no sign behind


def test_a_dead_ones_sign_is_waited_for_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    store.replace(LEASE, b'{"writer":"dead","count":3,"pass_s":1.0}')
    (loop,) = loops(tmp_path, store, 1, pass_s=1.0)
    assert len(passes(loop, monkeypatch, 10)) == 7


def test_a_sign_that_nobody_can_read_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    store.replace(LEASE, b"{]")
    (loop,) = loops(tmp_path, store, 1)
    assert len(passes(loop, monkeypatch, 3)) == 3


def test_a_store_that_fails_ends_no_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(MemoryStore):
        def get(self, key: str, *, most: int = MOST_READ) -> bytes:
            raise SourceFailed("no answer")

        def list_after(self, prefix: str, after: str = "") -> list[str]:
            raise SourceFailed("no answer")

    loop = Loop(Failing(), {}, tmp_path, pass_s=0.01)
    told: list[str] = []
    turns = iter(range(3))
    monkeypatch.setattr(clock, "sleep", lambda s: None)
    loop.watch(
        lambda: next(turns, None) is not None,
        tell=lambda troubles: told.extend(error.message for _, error in troubles),
    )
    assert told == ["no answer"] * 3
