from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.torch.lives import Nursery, Training


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
