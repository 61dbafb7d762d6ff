"""What a good outcome is, for any market: reckoned in hindsight, from the script alone.

The best fixed way is the cheapest machine of all, bought at the beginning and again whenever it was
taken, as soon as there is any, that makes the deadline; where none does, the cheapest. It is one
that somebody who does not know the future could have held: with a deadline not a gamble, on spot
when its loss would have cost the deadline; without one not what is waited for until others would
have been done long before. A run has done well if it

- costs no more than FACTOR times as much, and a start;
- costs no more than its budget;
- is in time wherever on demand would have been, had it been held from the beginning.

Where the job hangs or fails, or nobody looks for a while, only the script's own `good` counts.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

from msgspec import Struct

from tradewind.base.units import format_hours, format_money
from tradewind.model.usage import GB
from tradewind.policy.base import UNMEASURED
from tradewind.sim.market.play import Played
from tradewind.sim.market.script import Offered, Script

FACTOR = 1.3
PATIENCE = 2.0
"""Without a deadline nobody is thought to wait for more than so many times the soonest."""
_SAVE_S = 60.0
"""With so much notice a job has saved."""


class Fixed(Struct, frozen=True):
    """One way, held to the end."""

    offered: Offered
    cost: float
    """Micro-dollars."""
    done_s: float
    gamble: bool = False
    """At some moment its loss would have cost the deadline."""


def fixed(script: Script, offered: Offered) -> Fixed:
    now, left_s, cost = 0.0, script.work_s / offered.really, 0.0
    bring = script.checkpoint * offered.gb_out / GB
    save = script.checkpoint * offered.gb_in / GB
    every_s = float(script.saves_s)
    begun, gamble = False, False
    while left_s > 0:
        while offered.is_gone(now):
            now = min(until for since, until in offered.gone if since <= now < until)
            if now == inf:
                return Fixed(offered, inf, inf, gamble)
        cost += bring if begun else 0.0
        begun = True
        ends = [at for at in offered.taken if at > now]
        works = now + offered.start_s
        done = works + left_s
        end = min([done, *ends])
        cost += _machines(offered, now, end)
        worked_s = max(end - works, 0.0)
        if end == done:
            saved_s = left_s
        elif offered.notice_s >= _SAVE_S:
            saved_s = worked_s
        else:
            saved_s = worked_s // every_s * every_s
        cost += save * (saved_s // every_s)
        gamble = gamble or not _has_a_net(script, offered, works, left_s)
        left_s -= saved_s
        now = end
        gamble = gamble or (left_s > 0 and not _has_a_net(script, offered, now, left_s))
    return Fixed(offered, cost, now, gamble)


def _has_a_net(script: Script, offered: Offered, now: float, left_s: float) -> bool:
    """Whether machines that nobody takes would make the deadline from here, were these lost, with
    what was done since their last save; as far as speeds are known."""
    if script.deadline_s is None or offered.market != "spot":
        return True
    safe = [each for each in script.offered if each.market != "spot"]
    left = left_s * offered.really
    between = min(script.saves_s * offered.really, left)
    doubt = UNMEASURED * script.work_s
    needs_s = (each.start_s + (left + between + doubt) / each.really for each in safe)
    return now + min(needs_s, default=0.0) <= script.deadline_s


def _machines(offered: Offered, since: float, until: float) -> float:
    """Spot costs what it costs; on demand, what it did when it was bought."""
    if offered.market != "spot":
        return offered.price(since) * offered.nodes * (until - since) / 3600
    moments = [since, *(float(at) for at, _ in offered.prices if since < at < until), until]
    return sum(
        offered.price(begun) * offered.nodes * (ended - begun) / 3600
        for begun, ended in pairwise(moments)
    )


def best(script: Script) -> Fixed:
    found = [fixed(script, each) for each in script.offered]
    soonest_s = min(each.done_s for each in found)
    limit = PATIENCE * soonest_s if script.deadline_s is None else script.deadline_s
    most = inf if script.budget is None else script.budget
    in_time = [each for each in found if each.done_s <= limit and each.cost <= most]
    sure = [each for each in in_time if not each.gamble]
    paid = [each for each in found if each.cost <= most]
    return min(
        sure or in_time or paid or found, key=lambda each: owed(script, each.cost, each.done_s)
    )


def cheapest(script: Script) -> Fixed:
    """Of all ways that make the deadline, gambles and those that are waited for for days too."""
    found = [fixed(script, each) for each in script.offered]
    limit = inf if script.deadline_s is None else script.deadline_s
    in_time = [each for each in found if each.done_s <= limit]
    return min(in_time or found, key=lambda each: owed(script, each.cost, each.done_s))


def owed(script: Script, cost: float, done_s: float) -> float:
    """With what its lateness costs its user."""
    if script.deadline_s is None or script.late is None or done_s == inf:
        return cost
    return cost + script.late * max(done_s - script.deadline_s, 0.0) / 3600


def broken(script: Script, played: Played) -> list[str]:
    """What is not as it should be; nothing, where all is."""
    wrong = [played.violation] if played.violation else []
    wrong += _own(script, played)
    if script.budget is not None and played.cost > script.budget:
        wrong.append(f"it cost {_usd(played.cost)}, of a budget of {_usd(script.budget)}")
    if script.hangs_s is not None or script.fails_s is not None or script.asleep:
        return wrong
    if played.outcome == "succeeded":
        wrong += _dear(script, played)
    wrong += _late(script, played)
    return wrong


def most(script: Script, found: Fixed | None = None) -> float:
    start = max(each.price(0) * each.nodes * each.start_s / 3600 for each in script.offered)
    found = found or best(script)
    return FACTOR * owed(script, found.cost, found.done_s) + start


def passed(script: Script, played: Played) -> dict[str, float]:
    """Of the bounds that hold for all markets those that it does not keep: how many times what is
    allowed it cost, or took. `any`: the best of all ways, gambles too."""
    found: dict[str, float] = {}
    if script.budget is not None:
        found["over"] = played.cost / script.budget if script.budget else inf
    if script.hangs_s is None and script.fails_s is None and not script.asleep:
        if played.outcome == "succeeded":
            cost = owed(script, played.cost, played.done_s)
            found["dear"] = cost / max(most(script), 1.0)
            found["any"] = cost / max(most(script, cheapest(script)), 1.0)
        if script.deadline_s is not None and _safely(script, played):
            found["late"] = played.done_s / script.deadline_s
    return {bound: times for bound, times in found.items() if times > 1}


def _dear(script: Script, played: Played) -> list[str]:
    found = best(script)
    if owed(script, played.cost, played.done_s) <= most(script):
        return []
    return [
        f"it cost {_usd(played.cost)}; {found.offered.name} alone would have cost"
        f" {_usd(found.cost)}, and {format_hours(found.done_s / 3600)}"
    ]


def _late(script: Script, played: Played) -> list[str]:
    each = _safely(script, played)
    if each is None:
        return []
    done = format_hours(played.done_s / 3600)
    return [f"it was not done in time ({done}), and {each.name} would have been"]


def _safely(script: Script, played: Played) -> Offered | None:
    """What would have been in time, with on-demand machines free all the time, where it was not."""
    limit = script.deadline_s
    if limit is None or script.budget is not None:
        return None  # what money is there for decides
    if played.outcome == "succeeded" and played.done_s <= limit:
        return None
    for each in script.offered:
        # Nobody knows a speed before it was measured.
        sure = not each.gone and each.market != "spot"
        if sure and fixed(script, each).done_s + UNMEASURED * script.work_s / each.really <= limit:
            return each
    return None


def _own(script: Script, played: Played) -> list[str]:
    good, wrong = script.good, []
    if good.outcome and played.outcome != good.outcome:
        wrong.append(f"it has {played.outcome or 'not ended'}, and should have {good.outcome}")
    if good.cost is not None and played.cost > good.cost:
        wrong.append(f"it cost {_usd(played.cost)}, and should cost {_usd(good.cost)} at most")
    if good.hours is not None and played.done_s > 3600 * good.hours:
        took = format_hours(played.done_s / 3600)
        wrong.append(f"it took {took}, and should take {format_hours(good.hours)} at most")
    if good.legs is not None and played.legs > good.legs:
        wrong.append(f"it took {played.legs} legs, and should take {good.legs} at most")
    return wrong


def _usd(micros: float) -> str:
    return format_money(round(micros), digits=2)
