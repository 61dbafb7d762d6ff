"""Random generators at the top of the user's files: `rng = numpy.random.default_rng(0)`.

They are as much the training's as those of Python, NumPy and PyTorch, and have names to be kept by.
So have those of environments.
"""

from __future__ import annotations

from typing import Any

from tradewind.torch.feeds import seeding
from tradewind.torch.sessions import environments, users


def _found() -> dict[str, Any]:
    kinds = seeding.kinds()
    return {
        f"{module.__name__}.{name}": value
        for module in users.modules()
        for name, value in list(vars(module).items())
        if isinstance(value, kinds)
    }


def captured() -> dict[str, Any]:
    own = {name: seeding.state_of(each) for name, each in _found().items()}
    return {**environments.captured(), **own}


def restored(states: dict[str, Any]) -> None:
    environments.restored(states)
    there = _found()
    for name, state in states.items():
        if name in there:
            seeding.put_state(there[name], state)
