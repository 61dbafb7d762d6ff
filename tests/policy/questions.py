"""Questions that a policy may be asked, and what was answered before moving had a price.

`python -m tests.policy.questions` records the answers anew: only where a choice is to change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tradewind.policy import careful, expected, plain, safety
from tradewind.policy.base import Known, Option, Policy, Spell

ANSWERS = Path(__file__).with_name("answers.json")
POLICIES: dict[str, Policy] = {
    "plain": plain.choose,
    "expected": expected.choose,
    "careful": careful.choose,
    "safest": safety.safest,
}
MANY = 60
HOUR_S = 3600.0


def questions() -> Iterator[Known]:
    """Nothing in them costs anything to move."""
    for seed in range(MANY):
        yield _question(Random(seed))


def answers() -> dict[str, list[list[object]]]:
    return {
        name: [_told(policy, known) for known in questions()] for name, policy in POLICIES.items()
    }


def _told(policy: Policy, known: Known) -> list[object]:
    choice = policy(known)
    return [choice.option, choice.reason]


def _question(rng: Random) -> Known:
    options = [_option(rng, f"c{n}/z") for n in range(rng.randrange(1, 5))]
    held = rng.randrange(len(options)) if rng.random() < 0.6 else None
    if held is not None:
        first = options.pop(held)
        again_s = first.start_s
        options.insert(0, _held(first, again_s))
    work = rng.uniform(0.5, 12) * HOUR_S
    time_s = rng.choice((None, work * rng.uniform(0.9, 3.0)))
    return Known(
        work,
        tuple(options),
        time_s,
        rng.choice((None, None, rng.randrange(5, 200) * 1_000_000)),
        0 if held is not None else None,
        held_s=rng.uniform(0, 4) * HOUR_S if held is not None else 0.0,
        tick_s=rng.choice((120.0, 600.0)),
        all_work=12 * HOUR_S,
        all_s=0.0 if time_s is None else max(24 * HOUR_S, time_s),
        doubt=rng.choice((0.0, 0.02, 0.1)),
        notice_s=rng.choice((0.0, 320.0)),
    )


def _option(rng: Random, place: str) -> Option:
    spot = rng.random() < 0.6
    up = rng.choice((None, True, False)) if spot else None
    return Option(
        place,
        "spot" if spot else "on_demand",
        rng.randrange(500_000, 2_000_000) if spot else rng.randrange(1_500_000, 4_000_000),
        rng.choice((0.8, 1.0, 1.0, 1.3)),
        rng.choice((300.0, 600.0)),
        refused_s=rng.choice((None, None, 60.0, 3000.0)),
        up=up,
        up_s=0.0 if up is None else rng.uniform(60, 20_000),
        history=_history(rng) if spot else (),
    )


def _held(option: Option, again_s: float) -> Option:
    from msgspec.structs import replace

    up = True if option.market == "spot" else None
    return replace(option, start_s=0.0, again_s=again_s, refused_s=None, up=up)


def _history(rng: Random) -> tuple[Spell, ...]:
    return tuple(
        (rng.choice((True, False, None)), rng.uniform(60, 20_000)) for _ in range(rng.randrange(3))
    )


if __name__ == "__main__":
    ANSWERS.write_text(json.dumps(answers(), indent=0, ensure_ascii=False) + "\n")
