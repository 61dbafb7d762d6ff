"""Which code is the user's own: neither installed, nor Python's, nor ours."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import FrameType, ModuleType

_OURS = str(Path(__file__).resolve().parents[2])


@cache
def _apart() -> tuple[str, ...]:
    keys = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({str(Path(sysconfig.get_path(key)).resolve()) for key in keys} | {_OURS})


@cache
def is_users(file: str) -> bool:
    """Also what was typed, which has no file."""
    if file.startswith("<"):
        return not file.startswith("<frozen") and "torch" not in file
    path = str(Path(file).resolve())
    return "site-packages" not in path and not path.startswith(_apart())


def frames() -> Iterator[FrameType]:
    """Of the user's own that lead here, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def modules() -> list[ModuleType]:
    there = sys.modules
    return [there[name] for name in _names(len(there)) if name in there]


@lru_cache(1)
def _names(_: int) -> list[str]:
    """Of thousands these few, for as long as no more are imported."""
    found = []
    for name, module in sys.modules.copy().items():
        file = getattr(module, "__file__", None)
        if name == "__main__" or (isinstance(file, str) and is_users(file)):
            found.append(name)
    return found


@cache
def is_users_class(kind: type) -> bool:
    if kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(file, str) and is_users(file)
