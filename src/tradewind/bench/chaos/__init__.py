"""Real processes, really killed: what becomes of runs, of their logs, and what is left over."""

from tradewind.bench.chaos.measure import Wish, is_whole, measure

__all__ = ["Wish", "is_whole", "measure"]
