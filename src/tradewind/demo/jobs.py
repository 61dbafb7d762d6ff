"""The examples that the demo needs: beside us in an installed package, else in the checkout."""

from __future__ import annotations

import shutil
from pathlib import Path

from tradewind.base.errors import NotFound

_HERE = Path(__file__).parent
_PLACES = (_HERE / "examples", _HERE.parents[2] / "examples")


def example(name: str) -> Path:
    for place in _PLACES:
        if (place / name).is_dir():
            return place / name
    raise NotFound(
        f"the example {name} is not in this installation",
        hint="run it from a checkout: make demo",
    )


def copied(name: str, to: Path) -> Path:
    """Only what git has: somebody may have trained there."""
    junk = shutil.ignore_patterns("checkpoints", "__pycache__", "*.pyc", ".tradewind*")
    return Path(shutil.copytree(example(name), to, ignore=junk))
