"""The life of a run, pure: `fold(commits)` is its state, `decide(state, …)` what to do next."""

from tradewind.lifecycle.decide import decide
from tradewind.lifecycle.fold import fold
from tradewind.lifecycle.state import RunState

__all__ = ["RunState", "decide", "fold"]
