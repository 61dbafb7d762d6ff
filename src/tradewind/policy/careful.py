"""What real runs ask: our policy, with a margin for what a run does not know for certain.

Speeds are estimates until they are measured, a lost machine is noticed late, and a budget may not
allow what a deadline asks for. The margin is taken off the time that is left; where nothing makes
even that, the deadline itself is what counts.

Our policy is told of capacity, and may wait for it. A run sees none by waiting: to try to launch is
to look, and costs nothing where it is refused. So where the policy would wait, what was not refused
lately is tried.
"""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.policy import expected, late, moving, plain, safety
from tradewind.policy.base import Choice, Known, Option


def choose(known: Known) -> Choice:
    if known.time_s is None or not any(safety.is_safe(option) for option in known.options):
        return plain.choose(known)
    if late.is_lost(known):
        return late.cheapest(known)
    careful = with_margin(known)
    choice = expected.choose(careful)
    if choice.option is None:
        choice = _tried(careful) or choice
    if choice.option is not None and not late.payable(known, choice.option):
        return plain.choose(known)  # the cheapest that makes it for the money, else for the time
    held = known.holding
    if choice.option != held and not safety.affordable(careful, choice.option):
        # The margin is gone. That is no reason to be late, nor to leave machines that make it.
        if held is not None and safety.is_safe(known.options[held]) and _makes_it(known, held):
            return Choice(held, "what is held makes the deadline, and nothing else does surely")
        found = safety.safest(known)
        return found if found.option is not None else _without_a_net(known)
    return choice


def with_margin(known: Known) -> Known:
    """The same, with less time for what is not known for certain."""
    work_s = [known.work / option.rate for option in known.options if safety.is_safe(option)]
    if known.time_s is None or not work_s:
        return known
    return replace(known, time_s=known.time_s - known.doubt * min(work_s) - known.notice_s)


def _without_a_net(known: Known) -> Choice:
    """On demand is sold out. To hold nothing brings nobody nearer to the deadline."""
    usable = [
        n
        for n, option in enumerate(known.options)
        if n == known.holding or (option.up is not False and _not_refused(option))
    ]
    if not usable:
        return Choice(None, "no machine is available")
    best = safety.soonest(known, usable)
    option = known.options[best]
    name = option.way.words if option.way else option.place
    return Choice(best, f"{name}: no on-demand machine that makes the deadline is available")


def _tried(known: Known) -> Choice | None:
    """The cheapest spot machines that nobody has refused lately, if there is time to fail. Dearer
    ones than what is waited for only if they would be taken, were they there."""
    options = known.options
    spot = [n for n, option in enumerate(options) if not safety.is_safe(option)]
    spot.sort(key=lambda n: moving.each(known, options[n]))
    found = (
        n
        for n in spot
        if options[n].up is not False
        and _not_refused(options[n])
        and safety.affordable(known, n)
        and expected.keeps_up(known, n)
        and (_as_cheap(known, options[n], options[spot[0]]) or _taken(known, n))
    )
    best = next(found, None)
    if best is None:
        return None
    option = known.options[best]
    name = option.way.words if option.way else option.place
    time = safety.time_words(known)
    return Choice(best, f"{name} is tried: waiting for spot would be cheapest, with {time}")


def _not_refused(option: Option) -> bool:
    return option.refused_s is None or option.refused_s >= plain.REFUSED_S


def _as_cheap(known: Known, option: Option, least: Option) -> bool:
    return moving.each(known, option) <= moving.each(known, least) / plain.BETTER


def _taken(known: Known, n: int) -> bool:
    """Whether that way would be, had it capacity for sure."""
    option = known.options[n]
    before = option.history
    if option.up is None and option.up_s:
        before = (*before, (None, option.up_s))
    seen = replace(option, up=True, up_s=0.0, history=before)
    there = replace(known, options=(*known.options[:n], seen, *known.options[n + 1 :]))
    return expected.choose(there).option == n


def _makes_it(known: Known, choice: int) -> bool:
    assert known.time_s is not None
    option = known.options[choice]
    return option.start_s + known.work / option.rate <= known.time_s
