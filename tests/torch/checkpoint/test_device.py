"""The order of what is asked of a GPU, with a stand-in for its streams that writes it down.

That the copies are right when they run at the same time as training is measured on a real one, by
`tradewind bench checkpoint`; here is that the waits between the streams are asked for, and that
every way through the code fills the arena."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.torch.checkpoint.states import blank, same, tensors
from tradewind.torch.checkpoint import Checkpoints, Place, arena, layout, stage

log: list[str] = []


class Event:
    def __init__(self, **_: Any) -> None:
        self.on = "nothing"

    def record(self, stream: Stream) -> None:
        self.on = stream.name
        log.append(f"{stream.name} records")

    def synchronize(self) -> None:
        pass

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
    assert log[:3] == ["training records", "side waits for training", "side records"]
    assert log[3] == "copies on side"
    returns = log.index("save returns")
    assert "training waits for side" not in log[:returns]
    assert log[returns + 1] == "training waits for side"


@pytest.mark.parametrize("named", [{}, {"early": ["weight"]}])
def test_training_waits_at_once_for_what_changes_soon(
    tmp_path: Path, named: dict[str, Any]
) -> None:
    saved(tmp_path, {} if named else {"gradient": torch.randn(200_000)}, **named)
    assert "training waits for side" in log[: log.index("save returns")]


def test_more_copies_than_a_stream_takes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_QUEUE", 1)
    saved(tmp_path, {})
    assert log[-1] == "gate returns"
    assert "training waits for side" in log[log.index("save returns") :]


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
