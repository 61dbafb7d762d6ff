"""Each output exactly once, whatever is killed, moved or believed lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tradewind import batch
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.batch import lanes as lane_module
from tradewind.batch.items import Items
from tradewind.batch.lanes import begun, existing
from tradewind.batch.work import Work
from tradewind.model import places
from tradewind.store.memory import MemoryStore

COUNT = 400
ROOT = Path(__file__).parents[2]


class Killed(BaseException):
    """The process is gone: nothing after it runs."""


class Dying(MemoryStore):
    """A store whose client dies before or after its nth creation."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.after = 10**9, False

    def create(self, key: str, data: bytes) -> bool:
        self.left -= 1
        if self.left < 0 and not self.after:
            raise Killed
        made = super().create(key, data)
        if self.left < 0:
            raise Killed
        return made


def prompts(folder: Path, count: int = COUNT) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"p{i}"}) + "\n" for i in range(count)))
    return path


def work_on(path: Path, store: MemoryStore, rank: int = 0, nodes: int = 1) -> Work:
    items = Items(path)
    return Work(items, begun(store, "batch/", len(items), items.sha256), {}, rank=rank, nodes=nodes)


def answer(items: list[batch.Item], by: str) -> list[str]:
    return [f"{item.value['prompt']} by {by}" for item in items]


def check_whole(store: MemoryStore, count: int = COUNT) -> list[dict[str, Any]]:
    from tradewind.batch.joined import _lines

    found = [json.loads(line) for line in _lines(existing(store, "batch/"))]
    assert [each["index"] for each in found] == list(range(count))
    assert all(each["output"].startswith(f"p{each['index']} by") for each in found)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_every_item_has_one_output_through_kills_and_other_numbers_of_machines(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr("tradewind.batch.work.EVERY_S", 0.0)
    path, store = prompts(tmp_path), Dying()
    for leg in range(200):
        nodes = draw.choice([1, 2, 3])
        store.left, store.after = draw.randrange(1, 12), draw.random() < 0.5
        try:
            for rank in range(nodes):
                work = work_on(path, store, rank, nodes)
                for items in work.batches(draw.choice([1, 7, 30])):
                    work.put(items, answer(items, f"leg {leg}"))
                work.finish()
            break
        except Killed:
            continue
    else:
        pytest.fail("it never came to an end")
    found = check_whole(store)
    assert len({each["output"].split("by")[1] for each in found}) > 1, "some leg was killed"


def test_a_machine_that_was_believed_lost_adds_nothing(tmp_path: Path) -> None:
    path, store = prompts(tmp_path), MemoryStore()
    old, new = work_on(path, store), work_on(path, store)
    steps = [(work, work.batches(13), name) for work, name in ((old, "old"), (new, "new"))]
    draw = random.Random(1)
    alive = list(steps)
    while alive:
        work, batches, name = draw.choice(alive)
        items = next(batches, None)
        if items is None:
            alive = [each for each in alive if each[0] is not work]
            continue
        work.put(items, answer(items, name))
        if draw.random() < 0.5:
            work.commit()
    old.finish()
    new.finish()
    found = check_whole(store)
    assert {each["output"].split()[-1] for each in found} == {"old", "new"}


def test_outputs_may_come_in_any_order_and_gaps_wait(tmp_path: Path) -> None:
    path, store = prompts(tmp_path, 60), MemoryStore()
    work = work_on(path, store)
    given = [item for items in work.batches(10) for item in items]
    random.Random(3).shuffle(given)
    late = next(item for item in given if item.index == 5)
    for item in given:
        if item is not late:
            work.put([item], answer([item], "x"))
    work.commit()
    assert work.done == 5
    with pytest.raises(InvalidValue, match="55 items"):
        work.finish()
    work.put([late], answer([late], "x"))
    work.finish()
    check_whole(store, 60)


def test_a_job_that_is_asked_to_save_keeps_what_it_has_and_stops(tmp_path: Path) -> None:
    path, store = prompts(tmp_path), MemoryStore()
    items = Items(path)
    told = tmp_path / "save"
    progress = tmp_path / "progress"
    lanes = begun(store, "batch/", len(items), items.sha256)
    env = {"TRADEWIND_SAVE": str(told), "TRADEWIND_PROGRESS": str(progress)}
    work = Work(items, lanes, env, rank=0, nodes=1)
    for number, each in enumerate(work.batches(10)):
        work.put(each, answer(each, "x"))
        if number == 3:
            told.write_text("{}")
    assert work.stopped
    work.finish()
    assert work.done == 40
    assert json.loads(progress.read_text())["saved"] == 40
    told.unlink()
    again = work_on(path, store)
    assert again.done == 40
    assert next(again.batches(1))[0].index == 40


def test_sigterm_stops_the_loop_and_nothing_else(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    work = work_on(prompts(tmp_path), MemoryStore())
    for number, each in enumerate(work.batches(10)):
        work.put(each, answer(each, "x"))
        if number == 2:  # a child is ended by it
            heard, up = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(up, b"x")
                time.sleep(60)
                os._exit(1)
            os.read(heard, 1)
            os.kill(child, signal.SIGTERM)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        if number == 3:
            os.kill(os.getpid(), signal.SIGTERM)
    assert (work.stopped, work.done) == (True, 40)
    assert signal.getsignal(signal.SIGTERM) is before


CHILD = """
import os, signal, sys
import tradewind.batch as batch
work = batch.open(sys.argv[1])
left = int(sys.argv[2])
for items in work.batches(9):
    work.put(items, [item.value["prompt"] + " by x" for item in items])
    work.commit()
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
work.finish()
"""


def test_a_real_process_that_is_killed_again_and_again(tmp_path: Path) -> None:
    path = prompts(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    env = {name: value for name, value in env.items() if not name.startswith("TRADEWIND_")}
    codes = []
    for left in (1, 20, 7, 0):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(path), str(left)], cwd=tmp_path, env=env, check=False
        )
        codes.append(done.returncode)
    assert codes == [-signal.SIGKILL] * 3 + [0]
    from tradewind import store as stores

    made = batch.collect(tmp_path / "answers.jsonl", store=stores.open(tmp_path / "outputs"))
    assert (made.items, made.missing) == (COUNT, 0)
    lines = [json.loads(line) for line in made.path.read_text().splitlines()]
    assert [line["index"] for line in lines] == list(range(COUNT))


def test_who_collects_a_run_s_answers_has_read_them(tmp_path: Path) -> None:
    store = MemoryStore()
    begun(store, places.batch("chat-1"), 10, "0" * 64)
    made = batch.collect(tmp_path / "answers.jsonl", store=store, run="chat-1")
    assert (made.items, made.missing) == (10, 10)
    assert store.get(places.read("chat-1")) == b"{}"


def test_other_items_are_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    work_on(prompts(tmp_path), store)
    with pytest.raises(InvalidValue, match="another file"):
        work_on(prompts(tmp_path, 10), store)


def test_bad_files_and_outputs_are_named(tmp_path: Path) -> None:
    empty = tmp_path / "none.jsonl"
    empty.write_text("\n\n")
    with pytest.raises(BadFile, match="no items"):
        Items(empty)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"a": 1}\n{oops\n')
    with pytest.raises(BadFile, match="item 1 is not JSON"):
        Items(broken).read(0, 2)
    with pytest.raises(NotFound, match="no outputs"):
        batch.collect(tmp_path / "x", store=MemoryStore())
    work = work_on(prompts(tmp_path), MemoryStore())
    items = next(work.batches(2))
    with pytest.raises(InvalidValue, match="2 items, and 1 outputs"):
        work.put(items, ["one"])
    with pytest.raises(InvalidValue, match="cannot be kept"):
        work.put(items, [object(), object()])


def test_lanes_cover_every_item_once() -> None:
    for count in (1, 49, 50, 99, 1000, 3201, 1_000_003):
        spec = lane_module.Spec(count, "", max(min(64, count // 50), 1))
        ranges = [spec.range(lane) for lane in range(spec.lanes)]
        assert ranges[0][0] == 0
        assert ranges[-1][1] == count
        assert all(a[1] == b[0] for a, b in pairwise(ranges))
