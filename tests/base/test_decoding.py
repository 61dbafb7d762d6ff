"""Whatever bytes a store, a machine or a disk gives: a value, nothing, or one of our own errors."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json

import tradewind
from tests.lifecycle.builders import SAMPLES, a_beat, sample, simulated
from tradewind.api import wishes
from tradewind.base import decoding
from tradewind.base.errors import BadFile, InvalidValue, TradewindError
from tradewind.journal import journal
from tradewind.lifecycle import fold
from tradewind.model.event import Commit
from tradewind.model.outputs import Outputs
from tradewind.model.run import Heartbeat
from tradewind.providers.aws import footprint
from tradewind.report.curves import Curves
from tradewind.store.memory import MemoryStore
from tradewind.supervisor import meeting, outputs, progress
from tradewind.torch.checkpoint import manifest

ROOT = Path(tradewind.__file__).parent
NASTY = [
    b"",
    b"\xff\xfe",
    b'{"a":"\xff"}',
    b'"\\ud800"',
    b"[" * 200_000,
    b'{"x":' * 50_000,
    b"9" * 50_000,
    b"-1e999999",
    b'{"format":' + b"9" * 5_000 + b"}",
    b"null",
    b"\0" * 4096,
]


def _journal(data: bytes) -> object:
    store = MemoryStore()
    store.create("runs/r/journal/" + "1".zfill(20) + ".json", data)
    return journal.read(store, "r")[0]


def _pointer(data: bytes) -> object:
    store = MemoryStore()
    store.create("runs/r/legs/000001/address", data)
    return meeting.find(store, "r", 1, "")


def _metrics(data: bytes) -> object:
    curves = Curves()
    curves.take(1, data.split(b"\n"))
    return curves.curves()


READERS: dict[str, Callable[[bytes], object]] = {
    "heartbeat": decoding.decoder(Heartbeat),
    "commit": _journal,
    "address": _pointer,
    "manifest": lambda data: manifest.decode(data, "a manifest"),
    "rehearsal": wishes.decoded,
    "metrics": _metrics,
    "outputs": outputs._decode,
    "setup": footprint.decoded,
}
NOTHING = type(None)
OUTCOMES: dict[str, tuple[type, ...]] = {
    "heartbeat": (Heartbeat, NOTHING),
    "commit": (Commit, BadFile),
    "address": (meeting.Address, NOTHING),
    "manifest": (manifest.Manifest, BadFile, InvalidValue),
    "rehearsal": (wishes.ChaosWish, wishes.TraceWish, NOTHING),
    "metrics": (tuple,),
    "outputs": (Outputs, NOTHING),
    "setup": (footprint.Footprint, BadFile),
}
"""A value of its kind, or what it says instead."""


def outcome(reader: str, data: bytes) -> object:
    try:
        return READERS[reader](data)
    except TradewindError as error:
        return error


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("data", NASTY, ids=range(len(NASTY)))
def test_the_nastiest_bytes(reader: str, data: bytes) -> None:
    assert isinstance(outcome(reader, data), OUTCOMES[reader])


@pytest.mark.parametrize("reader", READERS)
@given(data=st.data())
@settings(max_examples=60)
def test_any_bytes(reader: str, data: st.DataObject) -> None:
    """At random, and as a true one with something cut out, put in, or changed."""
    true = _true(reader)
    garbage = data.draw(st.binary(max_size=60))
    at = data.draw(st.integers(0, len(true)))
    for changed in (garbage, true[:at], true[:at] + garbage + true[at:]):
        assert isinstance(outcome(reader, changed), OUTCOMES[reader])


def _true(reader: str) -> bytes:
    if reader == "heartbeat":
        return json.encode(a_beat())
    if reader == "commit":
        return json.encode(sample(SAMPLES[0])[0])
    if reader == "manifest":
        return manifest.Manifest(7, 1, 1, "000001/7-1", {}).encode()
    if reader == "rehearsal":
        return json.encode(wishes.ChaosWish(mean_life_s=10.0))
    return b'{"step":1,"loss":2.5,"at":1800000000}\n{"step":2,"loss":NaN}'


def test_a_job_that_says_nonsense_of_its_progress(tmp_path: Path) -> None:
    last = progress.Progress(5.0, 3.0, 1.0)
    path = tmp_path / "progress.json"
    for data in NASTY:
        if data.startswith(b"{"):
            continue  # fields that nobody knows are none
        path.write_bytes(data)
        assert progress.read(path, last) == last
    for nonsense in ('{"step":-1}', '{"saved":1e300}', '{"step":1e16}'):
        path.write_text(nonsense)
        assert progress.read(path, last) == last
    path.write_text('{"step":9,"rate":-1}')
    assert progress.read(path, last) == progress.Progress(9.0, 3.0, None)
    assert progress.of_checkpoint("runs/r/checkpoints/000001/" + "9" * 20 + ".json").saved == 1e15
    assert progress.of_checkpoint("runs/r/checkpoints/000001/²³.json").saved == 0.0


_VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [-1, 0, 1, 2**63, 10**30, 1e300, "", "x", None, [], {}, True]
)


@settings(max_examples=400)
@given(seed=st.integers(0, 30), data=st.data())
def test_a_journal_in_which_something_was_changed_folds_or_says_so(
    seed: int, data: st.DataObject
) -> None:
    """By whoever may write the store: a value, an event left out, one that comes twice."""
    commits = [json.decode(json.encode(commit)) for commit in simulated(seed)]
    commit = data.draw(st.sampled_from(commits))
    events = commit["events"]
    how = data.draw(st.sampled_from(["value", "value", "value", "drop", "twice"]))
    if how == "drop":
        events.pop(data.draw(st.integers(0, len(events) - 1)))
    elif how == "twice":
        events.append(data.draw(st.sampled_from(events)))
    else:
        places = list(_leaves(events))
        where, key = data.draw(st.sampled_from(places))
        where[key] = data.draw(_VALUES)
    store = MemoryStore()
    for number, each in enumerate(commits, 1):
        store.create(f"runs/r/journal/{number:020d}.json", json.encode(each))
    with suppress(BadFile):
        assert fold(journal.read(store, "r")).number == len(commits)


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list) and inner:
            yield from _leaves(inner)
        yield value, key


FOREIGN = ("journal", "controller", "supervisor", "api", "report", "upkeep")
"""The rooms that read what others have written into a store."""


def test_whoever_reads_what_others_wrote_expects_anything() -> None:
    """Each decoding stands where all that it may raise is caught, or goes through `decoder`."""
    careless = []
    for path in sorted(ROOT.rglob("*.py")):
        if path.name in ("bootstrap.py", "kit.py"):
            continue  # they read what their launcher wrote, and what is shipped with Tradewind
        if path.relative_to(ROOT).parts[0] in FOREIGN:
            careless += [f"{path.relative_to(ROOT)}:{line}" for line in _careless(path)]
    assert careless == []


def _careless(path: Path) -> Iterator[int]:
    tree = ast.parse(path.read_text())
    safe = {
        id(inner)
        for node in ast.walk(tree)
        if _catches(node)
        for part in node.body  # type: ignore[attr-defined]
        for inner in ast.walk(part)
    }
    raw = r"(msgspec\.)?json\.(decode|loads)"
    if "Decoder(" in path.read_text():  # which decodes under a name of its own
        raw += r"|_?decode"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or id(node) in safe:
            continue
        if re.fullmatch(raw, ast.unparse(node.func)):
            yield node.lineno


def _catches(node: ast.AST) -> bool:
    if isinstance(node, ast.Try):
        return any(
            h.type is not None and "UNREADABLE" in ast.unparse(h.type) for h in node.handlers
        )
    return isinstance(node, ast.With) and "UNREADABLE" in ast.unparse(node.items[0].context_expr)


def test_commits_are_read_as_they_were_written() -> None:
    for name in SAMPLES:
        for commit in sample(name):
            assert json.decode(json.encode(commit), type=Commit) == commit


def test_one_thread_learns_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    within, most, real = [], [], json.Decoder

    def slow(kind: type) -> object:
        within.append(1)
        most.append(len(within))
        time.sleep(0.01)
        within.pop()
        return real(kind)

    monkeypatch.setattr(json, "Decoder", slow)
    with ThreadPoolExecutor(8) as pool:
        read = [each.decode(b"[1]") for each in pool.map(decoding.learn, [list[int]] * 8)]
    assert read == [[1]] * 8
    assert max(most) == 1
