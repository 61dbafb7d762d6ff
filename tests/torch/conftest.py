from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.torch.lives import Nursery, Training


@pytest.fixture(autouse=True)
def few_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a training's own process, the test's file and what it imports are the user's: not the
    hundreds of files of tests that are imported beside it, which a session would all look at."""
    from tradewind.torch.sessions import users

    everything = users.modules
    imported = [v for v in vars(request.module).values() if isinstance(v, ModuleType)]
    mine = {"__main__", request.module.__name__, *(each.__name__ for each in imported)}
    monkeypatch.setattr(
        users, "modules", lambda: [each for each in everything() if each.__name__ in mine]
    )


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def training(nursery: Nursery, tmp_path: Path) -> Callable[[str], Training]:
    return lambda name: Training(nursery, tmp_path / name)


@pytest.fixture
def spread(nursery: Nursery, tmp_path: Path) -> Callable[[str], Training]:
    """Of the script spread.py."""
    return lambda name: Training(nursery, tmp_path / name, "tests.torch.spread")
