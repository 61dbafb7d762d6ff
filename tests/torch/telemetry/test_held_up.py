"""Real trainings that something holds up, and what their own figures say of it.

Nothing here counts seconds: a training goes on until its figures say what they should."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.torch.lives import Life, Nursery
from tradewind.model.figures import Figures
from tradewind.telemetry import files
from tradewind.telemetry.diagnose import Diagnosis, diagnose

pytestmark = pytest.mark.slow

SCRIPT = "tests.torch.telemetry.held_up"


class HeldUp:
    def __init__(self, life: Life) -> None:
        self._life, self._folder = life, life.folder / "checkpoints" / "telemetry"

    def figures(self) -> tuple[Figures, ...]:
        return files.read(self._folder, time.time())

    def says(
        self, kind: str, share: float = 0.0, steps: int = 10
    ) -> tuple[Diagnosis, tuple[Figures, ...]]:
        """Its diagnosis of this kind, of at least so many steps of each rank."""
        found: list[tuple[Diagnosis, tuple[Figures, ...]]] = []

        def look() -> bool:
            told = self.figures()
            known = len(told) == len(self._life.pids) and all(e.steps >= steps for e in told)
            found[:] = [(each, told) for each in diagnose(told) if known and each.kind == kind]
            return any(each.share > share for each, _ in found)

        eventually(look, within_s=120)
        return found[0]


Begun = Callable[..., AbstractContextManager[HeldUp]]


@pytest.fixture
def held_up(nursery: Nursery, tmp_path: Path) -> Begun:
    @contextmanager
    def begun(what: str, world: int = 1) -> Iterator[HeldUp]:
        life = Life(nursery, tmp_path, 0, (what,), world, {}, module=SCRIPT)
        yield HeldUp(life)
        (tmp_path / "enough").touch()
        assert life.codes() == [0] * world, "\n".join(map(life.log, range(world)))

    return begun


def test_a_slow_dataset(held_up: Begun) -> None:
    with held_up("data") as training:
        found, (told,) = training.says("input-bound", share=0.5)
        assert "no loader workers" in found.evidence
        assert told.data == found.share
        assert told.tokens_rate
        assert told.samples_rate
        assert told.tokens_rate == pytest.approx(32 * told.samples_rate, rel=0.01)
        assert told.loss is not None
        assert told.grad_norm is not None
        assert told.step_s is not None
        assert told.step_s > 0.04  # four samples of 10 ms
        assert told.slowest_s is not None
        assert told.slowest_s >= told.step_s
        assert told.memory > 1 << 26
        assert told.comm is None
    eventually(lambda: training.figures()[0].over)
    assert [each.kind for each in diagnose(training.figures())] == ["over"]


def test_a_large_reduction(held_up: Begun) -> None:
    with held_up("collective", world=2) as training:
        found, told = training.says("communication-bound")
        assert "collectives of 2 ranks" in found.evidence
        assert [each.comm_by for each in told] == ["stacks", "stacks"]
        assert all(each.comm is not None and each.comm >= found.share for each in told)


def test_large_gradients_of_a_small_computation(held_up: Begun) -> None:
    """Reduced inside the backward pass, where no Python is: PyTorch's own timers know."""
    with held_up("ddp", world=2) as training:

        def known() -> bool:
            told = training.figures()
            return len(told) == 2 and all("ddp" in e.comm_by and (e.comm or 0) > 0 for e in told)

        eventually(known, within_s=120)
        assert {each.rank for each in training.figures()} == {0, 1}


def test_a_rank_that_takes_longer(held_up: Begun) -> None:
    with held_up("late", world=2) as training:
        found, told = training.says("straggling")
        assert found.rank == 1
        assert "the other waits" in found.evidence
        assert (told[0].comm or 0.0) > (told[1].comm or 0.0)


def test_a_checkpoint_after_each_step(held_up: Begun) -> None:
    with held_up("saving") as training:
        found, (told,) = training.says("checkpoint-bound")
        assert found.share == told.saving
        eventually(lambda: training.figures()[0].saved > 0)
