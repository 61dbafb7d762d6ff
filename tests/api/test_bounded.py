"""What others wrote costs no more time and memory than its length is worth, whatever its numbers
say: machines may write below the folders of all runs of their store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec import json

from tests.controller.test_purse import BUDGETS, purse, recorded, submitted
from tradewind.api import reporting, wishes
from tradewind.base import clock
from tradewind.base.errors import BadFile
from tradewind.controller.purse import AskMonth
from tradewind.model import bounds, places
from tradewind.store.memory import MemoryStore
from tradewind.torch.checkpoint.manifest import Manifest, decode, of_rank
from tradewind.torch.checkpoint.pieces import PIECE

RUN = "job-20261115-120000-abcd"
BOUNDED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
"""


def within_limits(code: str) -> str:
    """What a process of little memory and time prints."""
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout.strip()


def test_a_manifest_of_a_billion_ranks() -> None:
    """147 bytes that took two gigabytes, and were opened by whoever cleared old checkpoints."""
    assert within_limits(
        "from tradewind.base.errors import BadFile\n"
        "from tradewind.torch.checkpoint.manifest import Manifest, decode\n"
        "data = Manifest(1, 1, 10**12, 'x', {'index.json': (0, ())}).encode()\n"
        "try:\n    decode(data, 'the manifest')\n"
        "except BadFile as error:\n    print(error.message)\n"
    ) == ("the manifest is damaged: it does not name all of its files")


@pytest.mark.parametrize("size", [33 << 20, 6 << 30])
def test_an_index_larger_than_any(size: int) -> None:
    def manifest(index: int) -> bytes:
        sums = (0,) * -(-index // PIECE)
        files = {".metadata": (0, ()), of_rank(0): (0, ()), "index.json": (index, sums)}
        return Manifest(1, 1, 1, "x", files).encode()

    assert decode(manifest(1 << 20), "it").world == 1
    with pytest.raises(BadFile, match="larger than any"):
        decode(manifest(size), "it")


def test_a_tensor_of_twenty_thousand_dimensions() -> None:
    from tradewind.torch.checkpoint.files import Files
    from tradewind.torch.checkpoint.place import Place

    class Read(Files):
        def whole(self, name: str) -> bytes:
            shape = [1] * dimensions
            entry = ["tensor", "w", "float32", shape, shape, shape, 0, 0, 0]
            return json.encode({"files": [{"name": "__0_0.distcp", "entries": [entry]}]})

    for dimensions in (2, bounds.DIMENSIONS, 20_000):
        place = Place(None, MemoryStore(), "runs/x/")
        with Read(place, Manifest(1, 1, 1, "x"), direct=False) as it:
            if dimensions <= bounds.DIMENSIONS:
                assert it.index()["files"]
            else:
                with pytest.raises(BadFile, match="not an index"):
                    it.index()


class Counted(bytes):
    """Bytes that tell how many were copied to join them with others."""

    copied = 0

    def __radd__(self, other: bytes) -> Counted:
        Counted.copied += len(other)
        return Counted(bytes(other) + bytes(self))

    def __add__(self, other: bytes) -> Counted:  # type: ignore[override]
        Counted.copied += len(self)
        return Counted(bytes(self) + bytes(other))

    def split(self, *asked: Any) -> list[bytes]:
        return [Counted(each) for each in bytes(self).split(*asked)]


def test_a_line_of_metrics_that_never_ends_is_read_in_time_that_its_length_is_worth() -> None:
    class Unending(MemoryStore):
        def list_after(self, prefix: str, after: str = "") -> list[str]:
            at = range(0, pieces << 16, 1 << 16)
            return [f"{places.metrics(RUN, 1, 0)}{each:020d}.log" for each in at]

        def get_many(self, keys: Sequence[str], *, most: int = 0) -> list[bytes]:
            return [Counted(b"x" * (1 << 16)) for _ in keys]

    copies = []
    for pieces in (64, 256):  # noqa: B007 -- it is asked above
        Counted.copied = 0
        for _, _ in reporting._metrics(Unending(), RUN):
            pass
        copies.append(Counted.copied)
    assert copies[1] < 8 * copies[0]  # twice as long four times: sixteen where it is quadratic


REHEARSAL: dict[str, Any] = {
    "type": "trace",
    "traces": {
        "here": {"trace_id": "t", "zone": "here", "nodes": 1, "counts": [1, 0], "ends_s": [1, 2]}
    },
    "began_s": 0.0,
    "speed": 1.0,
}


def changed(**trace: Any) -> dict[str, Any]:
    return REHEARSAL | {"traces": {"here": REHEARSAL["traces"]["here"] | trace}}


@pytest.mark.parametrize(
    "wrong",
    [
        changed(ends_s=[1e-9, 2e-9]),
        changed(ends_s=[0, 0]),
        changed(ends_s=[-1, -2]),
        changed(ends_s=[5, 2]),
        changed(ends_s=[]),
        changed(ends_s=[], counts=[]),
        changed(counts=[10**30, 1]),
        changed(nodes=0),
        REHEARSAL | {"speed": 0},
        REHEARSAL | {"speed": 1e300},
        REHEARSAL | {"began_s": 1e300},
        {"type": "chaos", "mean_life_s": 0},
        {"type": "chaos", "mean_life_s": 1e-300},
    ],
)
def test_how_a_run_was_interrupted_is_bounded(wrong: dict[str, Any]) -> None:
    assert wishes.decoded(json.encode(REHEARSAL)) is not None
    assert wishes.decoded(json.encode(wrong)) is None


def test_a_quick_trace_that_goes_round_and_round_ends() -> None:
    wish = wishes.decoded(json.encode(changed(counts=[1, 1]) | {"speed": 1e6}))
    assert isinstance(wish, wishes.TraceWish)
    assert reporting._spans(wish.traces["here"], wish, 1, 0.0, 1e9)


def test_folders_that_are_no_runs_are_looked_into_twice_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    recorded(store, "mine", submitted("mine"))
    for number in range(20):
        store.create(f"runs/job-20261115-120000-{number:04x}/logs/x", b"")
    listed: list[str] = []
    real: Callable[..., list[str]] = store.list_after

    def counted(prefix: str, after: str = "") -> list[str]:
        listed.append(prefix)
        return real(prefix, after)

    monkeypatch.setattr(store, "list_after", counted)
    now = [0.0]
    monkeypatch.setattr(clock, "stopwatch", lambda: now[0])
    looks, asked = purse(store, BUDGETS), []
    for _ in range(4):
        listed.clear()
        looks.month(AskMonth("mine", submitted("mine").spec, False))
        asked.append(len([each for each in listed if "job-2026" in each]))
        now[0] += 3600
    assert asked[0] >= 20
    assert asked[2:] == [0, 0]
