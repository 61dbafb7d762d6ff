"""What a script keeps in its own variables, in every way that people keep something: each is seen
to start again."""

from __future__ import annotations

import argparse
import itertools
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler, Subset, TensorDataset

from tests.torch import remembered
from tradewind.torch.sessions import script
from tradewind.torch.sessions.script import Script, Watch

Step = Callable[[int], Any]


class Options(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:  # which raises what hasattr does not expect
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Slots:
    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0


class Environment:
    def __init__(self) -> None:
        self.place = 0.0


class Shared:
    steps = 0


class Queue(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self._rows, self._next = torch.zeros(4, 2), 0
        self.ready = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.ready = True
        self._rows[self._next] = x[0]
        self._next = (self._next + 1) % 4
        return x


class Lookahead(torch.optim.SGD):
    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, lr=0.1)
        self.slow = [torch.zeros(2)]
        self._counter = 0


class Noise:
    def __init__(self) -> None:
        self.strength = 0.0


class Data(Dataset[Any]):
    def __init__(self) -> None:
        self.transform = Noise()

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(2)


class Growing(Sampler[list[int]]):
    def __init__(self) -> None:
        self.size = 2

    def __iter__(self) -> Iterator[list[int]]:
        return iter([[0, 1]])


def rates() -> Iterator[float]:
    rate = 1.0
    while True:
        yield rate
        rate /= 2


def warmed() -> Callable[[], int]:
    count = 0

    def warm() -> int:
        nonlocal count
        count += 1
        return count

    return warm


def life(
    make: Callable[[], tuple[Any, Step]],
    state: dict[str, Any] | None,
    *,
    steps: int = 5,
    drawn: bool = False,
    **held: Any,
) -> tuple[dict[str, Any], list[str]]:
    """A loop of the user's, and what is said where it goes on; `make` gives its variable."""
    said: list[str] = []
    mine, step = make()
    models, optimizers = held.get("models", {}), held.get("optimizers", {})
    known = [*models.values(), *optimizers.values(), held.get("data"), None, said]
    script = Script(known, models, optimizers, held.get("data"))
    watch = Watch(script, said.append, strict=False)
    if state is not None:
        watch.goes_on(state)
    watch.begins([steps] if drawn else None)
    for number in range(steps):
        step(number)
        if watch.due():
            watch.made({"step": number + 1, "index": number + 1})
    state = watch.state({"step": steps, "index": steps})
    assert mine is not said
    return state, said


def a_cycle() -> tuple[Any, Step]:
    tasks = itertools.cycle(["a", "b", "c"])
    return tasks, lambda _: next(tasks)


def a_list_iterator() -> tuple[Any, Step]:
    rest = iter(list(range(100)))
    return rest, lambda _: next(rest)


def a_count() -> tuple[Any, Step]:
    numbers = itertools.count()
    return numbers, lambda _: next(numbers)


def a_generator() -> tuple[Any, Step]:
    given = rates()
    return given, lambda _: next(given)


def a_closure() -> tuple[Any, Step]:
    warm = warmed()
    return warm, lambda _: warm()


def options() -> tuple[Any, Step]:
    args = argparse.Namespace(iteration=0, lr=0.1)
    return args, lambda number: setattr(args, "iteration", number + 1)


def more_options() -> tuple[Any, Step]:
    args = SimpleNamespace(inner=Options(iteration=0))
    return args, lambda number: setattr(args.inner, "iteration", number + 1)


def slots() -> tuple[Any, Step]:
    mine = Slots()
    return mine, lambda number: setattr(mine, "number", number + 1)


def a_numpy_number() -> tuple[Any, Step]:
    mine = SimpleNamespace(best=np.float64(9.0))
    return mine, lambda number: setattr(mine, "best", np.float32(1 / (1 + number)))


def nothing_at_first() -> tuple[Any, Step]:
    mine = SimpleNamespace(baseline=None)
    return mine, lambda number: setattr(mine, "baseline", 1 / (1 + number))


def a_ring() -> tuple[Any, Step]:
    ring = [0.0] * 4
    return ring, lambda number: ring.__setitem__(number % 4, 1.0 + number)


def velocities() -> tuple[Any, Step]:
    mine = [torch.zeros(2), torch.zeros(3)]
    return mine, lambda number: mine.__setitem__(0, mine[0] + number + 1)


def a_hidden_state() -> tuple[Any, Step]:
    mine = SimpleNamespace(hidden=(torch.zeros(2), torch.zeros(2)))
    return mine, lambda number: setattr(
        mine, "hidden", tuple(each + 1 + number for each in mine.hidden)
    )


def environments() -> tuple[Any, Step]:
    mine = [Environment(), Environment()]
    return mine, lambda number: setattr(mine[1], "place", 1.0 + number)


def counts() -> tuple[Any, Step]:
    mine = Counter[int]()
    return mine, lambda number: mine.update([number % 2])


def averages() -> tuple[Any, Step]:
    mine: dict[str, float] = defaultdict(float)
    return mine, lambda number: mine.__setitem__("loss", 1.0 + number)


def by_parameter() -> tuple[Any, Step]:
    parameter = torch.nn.Parameter(torch.zeros(2))
    mine = {parameter: torch.zeros(2)}

    def step(number: int) -> None:
        parameter.data += 1
        mine[parameter] = mine[parameter] + 1 + number

    return mine, step


def a_full_window() -> tuple[Any, Step]:
    mine = deque([0.0, 0.0], maxlen=2)
    return mine, lambda number: mine.append(1.0 + number)


KEPT = {
    a_cycle: "place in mine",
    a_list_iterator: "place in mine was 95 and is 100",
    a_count: "place in mine",
    a_generator: "place in mine",
    a_closure: "mine.count was 5 and is 0",
    options: "mine.iteration was 5 and is 0",
    more_options: "mine.inner['iteration'] was 5 and is 0",
    slots: "mine.number was 5 and is 0",
    a_numpy_number: "mine.best was 0.2 and is 9",
    nothing_at_first: "mine.baseline was 0.2 and is None",
    a_ring: "mine is another",
    velocities: "mine is another",
    a_hidden_state: "mine.hidden is another",
    environments: "mine[1].place was 5 and is 0",
    counts: "len(mine) was 2 and is 0",
    averages: "len(mine) was 1 and is 0",
    a_full_window: "mine is another",
    by_parameter: "mine[#0] is another",
}


@pytest.mark.parametrize("make", KEPT)
def test_it_is_seen_to_start_again(make: Callable[[], tuple[Any, Step]]) -> None:
    state, said = life(make, None)
    assert said == []
    _, said = life(make, state)
    assert KEPT[make] in " ".join(said)


@pytest.mark.parametrize("make", KEPT)
def test_what_was_put_back_is_not_told(make: Callable[[], tuple[Any, Step]]) -> None:
    state, _ = life(make, None)

    def back() -> tuple[Any, Step]:
        mine, step = make()
        for number in range(5):
            step(number)
        return mine, step

    assert life(back, state)[1] == []


def nothing() -> tuple[Any, Step]:
    return object(), lambda _: None


def test_files_functions_and_classes() -> None:
    """Of the user's: a counter at the top of another file, an attribute of a function, of a class,
    a default that grows."""

    def make() -> tuple[Any, Step]:
        remembered.ticks = Shared.steps = remembered.tick.calls = 0
        (seen,) = remembered.noted.__defaults__ or ()
        seen.clear()

        def step(_: int) -> None:
            remembered.tick()
            remembered.noted(1)
            Shared.steps += 1

        return object(), step

    state, _ = life(make, None)
    _, said = life(make, state)
    for words in ("remembered.ticks was 5 and is 0", "tick_once.calls was 5", "Shared.steps was 5"):
        assert words in said[0]
    assert "noted(0)) was 5 and is 0" in said[0]


def test_models_and_optimizers_beside_their_state() -> None:
    """What begins with an underscore too, and what is set in the first step and never again."""

    state: dict[str, Any] | None = None

    def once() -> list[str]:
        nonlocal state
        queue = Queue()
        optimizer = Lookahead([nn.Parameter(torch.zeros(2))])

        def step(number: int) -> None:
            queue(torch.full((1, 2), 1.0 + number))
            optimizer._counter += 1
            optimizer.slow[0] += 1.0

        held: dict[str, Any] = {"models": {"model": queue}, "optimizers": {"optimizer": optimizer}}
        state, said = life(lambda: (object(), step), state, **held)
        return said

    assert once() == []
    said = once()[0]
    for words in (
        "model.ready was 1 and is 0",
        "model._next was 1 and is 0",
        "model._rows is another",
        "optimizer._counter was 5 and is 0",
        "optimizer.slow is another",
    ):
        assert words in said


@pytest.mark.parametrize("what", ["transform", "sampler"])
def test_data_deep_below(what: str) -> None:
    def once(state: dict[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
        if what == "transform":
            data: Any = DataLoader(Subset(Data(), range(8)))

            def step(_: int) -> None:
                data.dataset.dataset.transform.strength += 0.5
        else:
            data = DataLoader(TensorDataset(torch.zeros(8)), batch_sampler=Growing())

            def step(_: int) -> None:
                data.batch_sampler.size += 1

        return life(lambda: (object(), step), state, data=data)

    state, _ = once(None)
    _, said = once(state)
    known = {"transform": "dataset.transform.strength was 2.5 and is 0", "sampler": "size was 7"}
    assert known[what] in said[0]


def test_what_is_drawn_before_the_loop_and_would_be_drawn_again() -> None:
    """Once in each epoch, for instance. A step that it begins at is none of it."""
    generator = random.Random(1)

    def make() -> tuple[Any, Step]:
        drawn = SimpleNamespace(mix=generator.random(), begins_at=begins_at, resumed=begins_at > 0)
        return drawn, lambda _: None

    begins_at = 0
    state, _ = life(make, None)
    begins_at = 5
    assert life(make, state)[1] == []
    _, said = life(make, state, drawn=True)
    assert "mine.mix was" in said[0]
    assert "begins_at" not in said[0]
    assert "resumed" not in said[0]


def test_it_is_told_in_each_life_that_comes_after() -> None:
    """Also where it did not change in the one before."""
    changes = True

    def make() -> tuple[Any, Step]:
        mine = SimpleNamespace(best=9.0)
        return mine, lambda _: setattr(mine, "best", 1.0) if changes else None

    state, _ = life(make, None)
    changes = False
    state, said = life(make, state)
    assert "mine.best was 1 and is 9" in said[0]
    changes = True
    state, said = life(make, state)
    assert said == []
    assert "mine.best" in state["last"]


def test_it_begins_once() -> None:
    """A loop over epochs begins again for each; what changes between them is no restart."""
    said: list[str] = []
    epoch = 0
    for state in (None, {"last": {"epoch": 1.0}, "first": {}, "counters": {}, "times": []}):
        watch = Watch(Script([], {}, {}, None), said.append, strict=False)
        if state is not None:
            watch.goes_on(state)
            epoch = 1
            watch.begins()
        epoch = 2
        watch.begins()
    assert epoch == 2
    assert said == []


def test_averages_come_first_and_clocks_last() -> None:
    """Of the six that are named."""
    names = [
        "ema_loss",
        "best",
        "steps",
        "losses.avg",
        "losses.val",
        "losses.sum",
        "batch_time.sum",
    ]
    some = [*names, "tic", "agent.seen", "agent.moves", "agent.epsilon", "history"]
    before: dict[str, Any] = dict.fromkeys(some, 1.0)
    told = script._in_words(sorted(some), before, dict.fromkeys(some, 0.0))
    order = [words.split()[0] for words in told]
    assert order[:4] == ["best", "ema_loss", "agent.epsilon", "history"]
    assert set(order[-5:]) == {"losses.avg", "losses.val", "losses.sum", "batch_time.sum", "tic"}
