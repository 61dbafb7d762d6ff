"""The order of what is asked of a GPU, with a stand-in for its streams that writes it down.

That the copies are right when they run at the same time as training is measured on a real one, by
`tradewind bench checkpoint`; here is that the waits between the streams are asked for, and that
every way through the code fills the arena."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.torch.checkpoint.states import blank, same, tensors
from tradewind.torch.checkpoint import Checkpoints, Place, arena, aside, layout, stage

log: list[str] = []


class Event:
    def __init__(self, **_: Any) -> None:
        self.on = "nothing"

    def record(self, stream: Stream) -> None:
        self.on = stream.name
        log.append(f"{stream.name} records")

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: Event) -> float:
        return 1.0


class Stream:
    def __init__(self, name: Any = "side") -> None:
        self.name = name if name == "training" else "side"

    def wait_event(self, event: Event) -> None:
        log.append(f"{self.name} waits for {event.on}")

    def synchronize(self) -> None:
        pass


class Runtime:
    registered = 0

    def cudaHostRegister(self, address: int, size: int, _: int) -> int:  # noqa: N802
        assert address % (2 << 20) == 0
        Runtime.registered += size
        return 0

    def cudaHostUnregister(self, _: int) -> int:  # noqa: N802
        return 0


@contextmanager
def _within(stream: Stream) -> Iterator[None]:
    log.append(f"copies on {stream.name}")
    yield


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    log.clear()
    Runtime.registered = 0
    for name, value in {
        "Event": Event,
        "Stream": Stream,
        "stream": _within,
        "current_stream": lambda _=None: Stream("training"),
        "cudart": Runtime,
        "set_device": lambda _: None,
        "synchronize": lambda *_: None,
        "mem_get_info": lambda _: (0, 64 << 30),
        "memory_reserved": lambda _: 0,
        "max_memory_allocated": lambda _: 0,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    # All but single numbers are "on the device", in chunks that large tensors cross.
    monkeypatch.setattr(layout, "_device", lambda t: "cuda" if t.dim() else "cpu")
    monkeypatch.setattr(arena, "CHUNK", 4 << 20)
    monkeypatch.setattr(stage, "CHUNK", 4 << 20)
    made = stage.Stager.__init__

    def init(self: stage.Stager, _: Any) -> None:
        made(self, "cpu")
        self.cuda, self._stream = True, Stream()

    monkeypatch.setattr(stage.Stager, "__init__", init)


def saved(folder: Path, own: dict[str, torch.Tensor], **options: Any) -> None:
    checkpoints = Checkpoints(Place(folder))
    now = tensors(1)
    checkpoints.prepare(now, own)
    while not checkpoints.ready():
        pass
    assert Runtime.registered >= sum(t.numel() * t.dtype.itemsize for t in now.values())
    log.clear()
    assert checkpoints.save(1, now, own, b"", b"", **options)
    log.append("save returns")
    checkpoints.gate()
    log.append("gate returns")
    assert checkpoints.finish(60) is not None
    found = checkpoints.newest()
    assert found is not None
    there = blank(now)
    assert same(checkpoints.read(found, there).own, own)
    assert same(there, now)
    checkpoints.close()


def test_copies_wait_for_training_and_training_at_the_gate(tmp_path: Path) -> None:
    saved(tmp_path, {})
    assert log[0] == "training records"
    sides = [words for words in log if words.startswith(("side", "copies"))]
    assert sides[:3] == ["side waits for training", "side records", "copies on side"]
    returns = log.index("save returns")
    assert "training waits for side" not in log[:returns]
    assert "training waits for side" in log[returns : log.index("gate returns")]


def test_training_goes_on_where_the_device_has_room_for_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if nothing has left the device yet, and weights change meanwhile."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (32 << 30, 64 << 30))
    checkpoints = Checkpoints(Place(tmp_path))
    now, own = tensors(1), {"gradient": torch.randn(200_000)}
    checkpoints.prepare(now, own)
    held = checkpoints._saver._arena
    assert held is not None
    for step in (1, 2):
        was = {name: tensor.clone() for name, tensor in now.items()}
        gradient = own["gradient"].clone()
        held.ready.wait()
        held.ready.clear()
        assert checkpoints.save(step, now, own)
        checkpoints.gate()
        for tensor in [*now.values(), *own.values()]:
            if tensor.dim():
                tensor.zero_()
        held.ready.set()
        assert checkpoints.finish(60) is not None
        found = checkpoints.newest()
        assert found is not None
        assert found.step == step
        there = blank(now)
        assert same(checkpoints.read(found, there).own, {"gradient": gradient})
        assert same(there, was)
        now |= tensors(2)


def test_what_the_device_has_no_room_for_is_copied_from_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = max(t.numel() * t.dtype.itemsize for t in tensors(1).values())
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (large + (2 << 30), 10 << 30))
    saved(tmp_path, {"gradient": torch.randn(200_000)})
    assert "training waits for side" in log


@pytest.mark.parametrize("named", [{}, {"early": ["weight"]}])
def test_training_waits_at_once_for_what_changes_soon(
    tmp_path: Path, named: dict[str, Any]
) -> None:
    saved(tmp_path, {} if named else {"gradient": torch.randn(200_000)}, **named)
    assert "training waits for side" in log[: log.index("save returns")]


def test_a_device_is_given_few_copies_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next batch, which is copied too, would wait for all of them."""
    under_way, most = [0], [0]

    class Copy(Event):
        def record(self, stream: Stream) -> None:
            under_way[0] += stream.name == "side"
            most[0] = max(most[0], under_way[0])

        def query(self) -> bool:
            under_way[0] -= 1
            return True

    monkeypatch.setattr(torch.cuda, "Event", Copy)
    monkeypatch.setattr(stage, "_AT_ONCE", 64 << 10)
    saved(tmp_path, {})
    assert 2 < most[0] < 12


def test_what_training_takes_of_the_memory_for_clones_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save is still whole then, and training waits at the gate."""
    states = ["inactive"]

    class Pool:
        def snapshot(self) -> list[dict[str, Any]]:
            return [{"blocks": [{"state": state} for state in states]}]

    monkeypatch.setattr(aside, "_pool", Pool)
    monkeypatch.setattr(torch.cuda, "use_mem_pool", lambda *_: nullcontext())
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (32 << 30, 64 << 30))
    checkpoints = Checkpoints(Place(tmp_path))
    now = tensors(1)
    assert checkpoints.save(1, now)
    assert checkpoints.finish(60) is not None
    held = checkpoints.held()
    assert held > 0
    checkpoints.look()
    assert checkpoints.give_back() == 0
    states.append("active_allocated")
    checkpoints.look()
    assert checkpoints.give_back() == 0, "nobody could have the rest of it then"
    states.pop()
    assert checkpoints.give_back() == held
    assert checkpoints.held() == 0
    log.clear()
    assert checkpoints.save(2, now)
    checkpoints.gate()
    assert "training waits for side" in log
    assert checkpoints.finish(60) is not None
    found = checkpoints.newest()
    assert found is not None
    assert found.step == 2
    there = blank(now)
    checkpoints.read(found, there)
    assert same(there, now)


def test_before_the_memory_is_pinned(tmp_path: Path) -> None:
    checkpoints = Checkpoints(Place(tmp_path))
    now = tensors(1)
    checkpoints.prepare(now)
    held = checkpoints._saver._arena
    assert held is not None
    held.ready.wait()
    held.ready.clear()
    assert checkpoints.save(1, now)
    assert "copies on side" not in log
    held.ready.set()
    checkpoints.gate()
    assert "copies on side" in log
    assert checkpoints.finish(60) is not None
    found = checkpoints.newest()
    assert found is not None
    there = blank(now)
    checkpoints.read(found, there)
    assert same(there, now)
