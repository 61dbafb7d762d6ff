"""What a seed stands for: the work, where it may be done, and how often what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from tradewind.model.run import Facts, Spec, Way
from tradewind.model.usage import Rates
from tradewind.sim.world import START_S

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 -- the type only


SEED = b"the seed of a simulated store"
_RATES = Rates(writes=5_000_000, reads=400_000, gb_in=20_000, gb_out=10_000, gb_month=23_000)


class Chances(Struct, frozen=True):
    """Of one thing going wrong, each time that it could."""

    store_fails: float
    """A store's step fails: before it is done, after it is done, or it is done much later."""
    cloud_fails: float
    crash: float
    """A controller dies at a step, before or after it is done."""
    stall: float
    """A step takes its time, and others go on."""
    refuse: float
    """A launch is refused."""
    unknown: float
    """Nobody learns what became of a launch."""
    dud: float
    """A machine never comes up."""
    vanish: float
    """A machine is taken without notice; for spot, otherwise with one."""
    zombie: float
    """A machine is listed as ended, and lives."""
    cut_off: float
    """A machine cannot reach the store for a while."""
    hardware: float
    """A machine breaks its job, or something kills it there."""
    stubborn: float
    """A job takes longer to save than it may."""


class Scenario(Struct, frozen=True):
    spec: Spec
    true_rates: dict[str, float]
    """How fast the work really goes, of what was estimated, by type of machine."""
    fails_at: float | None
    """The step at which the job's own error is."""
    hangs_at: float | None
    """The step after which it does nothing any more."""
    controllers: int
    pass_s: int
    skews_s: tuple[int, ...]
    """By how much each controller's clock is wrong."""
    cloud_skew_s: int
    cancel_at_s: int | None
    resumes: bool
    """The user wants the run to go on, with more money and time, when it has ended badly."""
    month: tuple[int, int] | None
    """What its project allows the run to come to, and until when: then another month begins."""
    quiet_s: int
    """After this nothing goes wrong any more; in the end everything must be right."""
    chances: Chances
    careful: bool
    """Which policy: ours, which has the most to decide, or the plain one, which is quick."""
    liar: str
    """Whose machines lie: the run's own, another run's of the same store, or nobody's."""
    lie: int
    """What they like to say best."""

    @property
    def limited(self) -> bool:
        """In what it may use up, or until when: nobody may stop in the middle for too long."""
        spec = self.spec
        return bool(spec.budget or self.month or spec.max_duration_s or spec.hard)


def of(seed_rng: Random) -> Scenario:
    rng = seed_rng
    # Most are short, so that many can be tried; some are long enough to use up a budget.
    work = rng.choice((120, 240, 600)) if rng.random() < 0.96 else 4500
    tokens = rng.random() < 0.5
    facts = Facts(
        boot_timeout_s=rng.choice((300, 420)),
        notice_s=rng.choice((0, 30, 120)),
        billing_step_s=rng.choice((1, 1, 60, 3600)),
        billing_lead_s=60,
        tokens=tokens,
        listing_lag_s=rng.choice((0, 60, 150)),
    )
    nodes = 1 if rng.random() < 0.7 else 2
    ways = _ways(rng, facts, nodes)
    deadline, hard = None, False
    if rng.random() < 0.6:
        deadline = START_S + int(work * rng.choice((1.3, 2, 4))) + 600
        hard = rng.random() < 0.3
    budget = None
    if rng.random() < 0.4:
        hours = (work * rng.choice((0.2, 0.8, 1.5, 3.0)) + 1500) / 3600
        budget = int(rng.choice((ways[0], ways[-1])).price_all * hours)
    level = rng.choice((0.0, 0.3, 1.0, 1.0, 2.0))
    quiet_s = rng.choice((1200, 2400, 5400))
    hangs = rng.random() < 0.04
    month = None
    if rng.random() < 0.08:
        hours = (work * rng.choice((0.1, 0.5)) + 1500) / 3600
        least = min(way.price_all for way in ways)
        month = (int(least * hours), rng.randrange(quiet_s // 2, quiet_s))
    return Scenario(
        Spec(
            name="sim",
            work=float(work),
            ways=ways,
            deadline_s=deadline,
            hard=hard,
            budget=budget,
            tries=rng.choice((1, 3)),
            checkpoint_every_s=rng.choice((45, 120)),
            max_duration_s=int(work * rng.choice((0.5, 2, 4))) + 300
            if rng.random() < 0.08
            else None,
            idle_s=300 if hangs or rng.random() < 0.1 else None,
            idle_stop=hangs or rng.random() < 0.5,
        ),
        {kind: rng.choice((0.6, 0.95, 1.0, 1.0, 1.2)) for kind in ("small", "large")},
        work * rng.random() if rng.random() < 0.15 else None,
        work * rng.random() if hangs else None,
        1 if rng.random() < 0.5 else 2,
        rng.choice((15, 60, 120, 180)),
        tuple(rng.randrange(-240, 241) if rng.random() < 0.5 else 0 for _ in range(3)),
        rng.randrange(-600, 601) if rng.random() < 0.5 else 0,
        rng.randrange(60, 1200) if rng.random() < 0.1 else None,
        rng.random() < 0.2,
        month,
        quiet_s,
        Chances(
            store_fails=0.02 * level,
            cloud_fails=0.04 * level,
            crash=0.012 * level,
            stall=rng.choice((0.0, 0.05, 0.2)) * (level > 0),
            refuse=0.15 * level,
            unknown=0.12 * level,
            dud=1.0 if rng.random() < 0.01 else 0.06 * level,
            vanish=0.12 * level,
            zombie=0.05 * level,
            cut_off=0.06 * level,
            hardware=0.04 * level,
            stubborn=0.05 * level,
        ),
        rng.random() < 0.25,
        rng.choice(("own", "other", *[""] * 8)),
        rng.randrange(4),
    )


def _ways(rng: Random, facts: Facts, nodes: int) -> tuple[Way, ...]:
    """Two spot zones and the same on demand; now and then a faster and dearer kind."""
    price = rng.randrange(300_000, 12_000_000)

    def way(zone: str, market: str, kind: str, of_price: float, rate: float) -> Way:
        return Way(
            provider="cloud", region="r1", zone=zone, instance_type=kind, market=market,
            nodes=nodes, price=int(price * of_price), rate=rate, start_s=150.0, facts=facts,
            rates=_RATES,
        )  # fmt: skip

    ways = [way("r1-a", "on_demand", "small", 1.0, 1.0)]
    if rng.random() < 0.8:
        ways.append(way("r1-a", "spot", "small", 0.35, 1.0))
        ways.append(way("r1-b", "spot", "small", 0.4, 1.0))
    if rng.random() < 0.3:
        ways.append(way("r1-c", "on_demand", "large", 1.7, 1.6))
    return tuple(ways)
