"""The brain of a run, pure: `fold(commits)` is its state, `decide(state, …)` what to do.

The package can be called: `tradewind.runs()` are the runs of a store. That is a room above this
one, which is therefore looked up by name and only when somebody calls.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from tradewind.runs.decide import decide
from tradewind.runs.fold import fold
from tradewind.runs.state import RunState

__all__ = ["RunState", "decide", "fold"]


class _Callable(ModuleType):
    def __call__(self, store: Any = None, *, live: bool = False) -> Any:
        return import_module("tradewind.api.handle").runs(store, live=live)


sys.modules[__name__].__class__ = _Callable
