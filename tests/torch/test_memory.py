"""Memory that is short, really: of processes that may have no more than so much."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.torch.lives import Life, Training, differ
from tradewind.base.errors import TradewindError
from tradewind.torch.strategies.memory import Memory, is_short

pytestmark = pytest.mark.slow

Make = Callable[[str], Training]

# Each sample takes 256 MiB for a moment; there are 1000, so that two go through at once, of eight,
# and there is room for what else a process does.
WIDE = ("--wide", str(64 << 20), "--dropout", "0.1")
SHORT = ("--short-mib", "1000")


def micro(life: Life) -> int:
    found = re.search(r"micro (\d+)$", life.log(), re.M)
    assert found, life.log()
    return int(found[1])


def layout(micro_batch: int) -> tuple[str, str]:
    return "--layout", json.dumps({"micro_batch": micro_batch})


@pytest.mark.parametrize("world", [1, 2])
def test_the_step_is_made_again_with_fewer_at_once(spread: Make, world: int) -> None:
    """As if it had been so from the start, dropout included; on both ranks, though one is short."""
    small, short = spread("small"), spread("short")
    options = (*WIDE, "--steps", "6", "--batch", str(8 * world))
    small.start(*options, *layout(2), world=world).done()
    life = short.start(*options, *SHORT, world=world).done()
    assert "out of memory with 8 samples at once: continuing with 2, and as many in a" in life.log()
    assert micro(life) == 2
    assert differ(small, short) == []


def test_it_is_remembered_by_the_next_life(spread: Make) -> None:
    short = spread("short")
    short.start(*WIDE, *SHORT, "--steps", "10").done()
    after = short.start(*WIDE, *SHORT, "--steps", "12").done()
    assert after.begun() == 10
    assert "out of memory" not in after.log()
    assert micro(after) == 2


def test_where_ranks_wait_for_each_other_the_next_start_answers(spread: Make) -> None:
    short = spread("short")
    options = (*WIDE, "--steps", "8", "--every-steps", "2", "--layout", '{"sharding": "zero3"}')
    first = short.start(*options, *SHORT, "--short-at", "4", world=2)
    first.has_saved(2)
    first.kill_after_exit(0)
    assert "start it again: it continues with 2 at once" in first.log()
    last = short.start(*options, *SHORT, world=2).done()
    assert last.begun() >= 2
    assert micro(last) == 2


def test_what_says_that_memory_is_short() -> None:
    assert is_short(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    assert is_short(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"))
    assert is_short(MemoryError())
    assert not is_short(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_short(ValueError("out of memory"))


def test_one_sample_that_does_not_fit(tmp_path: Path) -> None:
    memory = Memory(1, tmp_path, 1)
    with pytest.raises(TradewindError, match="one sample at a time does not fit") as caught:
        memory.smaller(8, "CUDA out of memory")
    assert "recompute: full" in str(caught.value)


@pytest.mark.parametrize("content", ["", "{}", '{"micro_batch": "x"}', "[]", '{"micro_batch": -4}'])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "micro_batch.json").write_text(content)
    memory = Memory(8, tmp_path, 1)
    memory.recall()
    known: Any = memory.state_dict()
    assert known == {"micro_batch": 1 if "-4" in content else 8}
