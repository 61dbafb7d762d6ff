"""The brain of a run, pure: `fold(commits)` is its state, `decide(state, …)` what to do."""

from tradewind.runs.decide import decide
from tradewind.runs.fold import fold
from tradewind.runs.state import RunState

__all__ = ["RunState", "decide", "fold"]
