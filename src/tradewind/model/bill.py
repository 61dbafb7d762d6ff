"""What a machine costs: the one place where time becomes money."""

from __future__ import annotations

from tradewind.model.run import Facts, Machine, Way


def paid_s(seconds: int, facts: Facts) -> int:
    """How much of a machine's time is paid: a step that was begun whole, and never less than the
    least."""
    step_s = facts.billing_step_s
    return -(-max(seconds, facts.billing_least_s, 1) // step_s) * step_s


def bill(price_hour: int, seconds: int, facts: Facts) -> int:
    """Micro-dollars for a machine that was up for so long; a fraction of one is paid whole."""
    return -(-price_hour * paid_s(seconds, facts) // 3600)


def charged(way: Way, machine: Machine, seconds: int) -> int:
    """Micro-dollars for a machine that was bought so, and was up for so long: at the prices that
    its provider tells, each for as long as it held, and its disk and its address. Each is rounded
    up by itself, as each is a line of its own in its provider's bill."""
    disk = bill(way.disk_price, seconds, way.facts)
    if machine.off_s is not None:
        seconds = min(max(machine.off_s - machine.launched_s, 0), seconds)
    beside = disk + bill(way.address_price, seconds, way.facts)
    if not machine.prices:
        bare = way.price - way.disk_price - way.address_price
        return bill(bare, seconds, way.facts) + beside
    begin, end = machine.launched_s, machine.launched_s + paid_s(seconds, way.facts)
    starts = [begin, *(max(at_s, begin) for at_s, _ in machine.prices[1:]), end]
    total = sum(
        price * max(min(until_s, end) - min(since_s, end), 0)
        for (_, price), since_s, until_s in zip(
            machine.prices, starts[:-1], starts[1:], strict=True
        )
    )
    return -(-total // 3600) + beside


THRESHOLDS = (50, 80, 100)
"""Percent of a budget, at which something is said."""
