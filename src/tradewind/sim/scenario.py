"""What a seed stands for: the work, where it may be done, and how often what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tradewind.model.run import Facts, Spec, Way
from tradewind.model.usage import GB, Rates
from tradewind.model.windows import DAY_S, Schedule, Window
from tradewind.sim.world import START_S

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 -- the type only


SEED = b"the seed of a simulated store"
_RATES = Rates(writes=5_000_000, reads=400_000, gb_month=23_000)
_GB_IN, _GB_OUT = 20_000, 90_000
"""What traffic costs a machine that is far from the store."""


_WINDOWS = 0.12
"""So many runs have windows, or may not begin at once."""


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
    no_pass: float
    """Whoever asks for a pass is refused."""


class Place(Struct, frozen=True):
    """A cloud of a scenario: how it behaves, and its own troubles."""

    name: str
    letter: str
    """What its machines' ids begin with."""
    facts: Facts
    skew_s: int = 0
    """By how much its clock is wrong."""
    outage: tuple[int, int] = (0, 0)
    """From when to when it answers nobody, in seconds from the start."""
    guesses: bool = True
    """Whether it says when what is queued will begin."""
    pass_s: int = 0
    """Its machines are nobody to the store: so long each pass lasts that they are lent."""


class Scenario(Struct, frozen=True):
    run_id: str
    spec: Spec
    places: tuple[Place, ...]
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
    cancel_at_s: int | None
    resumes: bool
    """The user wants the run to go on, with more money and time, when it has ended badly."""
    month: tuple[int, int] | None
    """What its project allows the run to come to, and until when: then another month begins."""
    quiet_s: int
    """After this nothing goes wrong any more; in the end everything must be right."""
    chances: Chances
    policy: str
    """Which one: careful, ours, which has the most to decide; plain, the quick one; restless, which
    chooses anything: whatever a policy does, nothing that must hold depends on it."""
    liar: str
    """Whose machines lie: the run's own, another run's of the same store, or nobody's."""
    lie: int
    """What they like to say best."""

    @property
    def limited_money(self) -> bool:
        return bool(self.spec.budget or self.month)

    @property
    def limited(self) -> bool:
        """In what it may use up, or until when: nobody may stop in the middle for too long."""
        spec = self.spec
        return bool(spec.budget or self.month or spec.max_duration_s or spec.hard)


def of(seed_rng: Random) -> Scenario:
    rng = seed_rng
    # Most are short, so that many can be tried; some are long enough to use up a budget.
    work = rng.choice((120, 240, 600)) if rng.random() < 0.96 else 4500
    quiet_s = rng.choice((1200, 2400, 5400))
    places = [_place(rng, "near", "m", quiet_s)]
    policy = rng.choice(("careful", *["plain"] * 3)) if rng.random() < 0.85 else "restless"
    if policy == "restless" or rng.random() < 0.35:
        places.append(_place(rng, "far", "f", quiet_s))
    nodes = 1 if rng.random() < 0.7 else 2
    every_s, size = rng.choice((45, 120)), rng.choice((0, 0, GB, 20 * GB))
    ways = _ways(rng, places, nodes, every_s, size)
    deadline, hard = None, False
    if rng.random() < 0.6:
        deadline = START_S + int(work * rng.choice((1.3, 2, 4))) + 600
        hard = rng.random() < 0.3
    budget = None
    if rng.random() < 0.4:
        hours = (work * rng.choice((0.2, 0.8, 1.5, 3.0)) + 1500) / 3600
        budget = int(rng.choice((ways[0], ways[-1])).price_all * hours)
    level = rng.choice((0.0, 0.3, 1.0, 1.0, 2.0))
    if not level:
        places = [replace(place, outage=(0, 0)) for place in places]
    hangs = rng.random() < 0.04
    month = None
    if rng.random() < 0.08:
        hours = (work * rng.choice((0.1, 0.5)) + 1500) / 3600
        least = min(way.price_all for way in ways)
        month = (int(least * hours), rng.randrange(quiet_s // 2, quiet_s))
    made = Scenario(
        "run-1",
        Spec(
            name="sim",
            work=float(work),
            ways=ways,
            deadline_s=deadline,
            hard=hard,
            budget=budget,
            tries=rng.choice((1, 3)),
            checkpoint_every_s=every_s,
            checkpoint_bytes=size,
            max_duration_s=int(work * rng.choice((0.5, 2, 4))) + 300
            if rng.random() < 0.08
            else None,
            idle_s=300 if hangs or rng.random() < 0.1 else None,
            idle_stop=hangs or rng.random() < 0.5,
        ),
        tuple(places),
        {kind: rng.choice((0.6, 0.95, 1.0, 1.0, 1.2)) for kind in ("small", "large")},
        work * rng.random() if rng.random() < 0.15 else None,
        work * rng.random() if hangs else None,
        1 if rng.random() < 0.5 else 2,
        rng.choice((15, 60, 120, 180)),
        tuple(rng.randrange(-240, 241) if rng.random() < 0.5 else 0 for _ in range(3)),
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
            no_pass=rng.choice((0.0, 0.3, 1.0)) * (level > 0),
        ),
        policy,
        rng.choice(("own", "other", *[""] * 8)),
        rng.randrange(4),
    )
    # Last, so that seeds without windows stay the runs that they were.
    if rng.random() >= _WINDOWS:
        return made
    return replace(made, spec=replace(made.spec, schedule=_schedule(rng)))


def _schedule(rng: Random) -> Schedule:
    """The same windows again and again, as a day's may be in a world of an hour or two."""
    open_s, period_s = rng.choice(((900, 1800), (1500, 2400), (3000, 3600)))
    zone = rng.choice((0, 3600, -12600))
    begins = range(rng.randrange(0, period_s, 60), DAY_S, period_s)
    windows = tuple(
        Window(start_s=start, end_s=(start + open_s) % DAY_S, offsets=((0, zone),))
        for start in begins
    )
    early = START_S + rng.randrange(0, 1200) if rng.random() < 0.3 else None
    return Schedule(not_before_s=early, windows=windows if rng.random() < 0.9 else ())


def another(rng: Random, first: Scenario) -> Scenario:
    """A second run in the same world: of the same places, and with a will of its own."""
    work = float(rng.choice((120, 240)))
    budget = None
    if rng.random() < 0.3:
        hours = (work * rng.choice((0.8, 3.0)) + 1500) / 3600
        budget = int(first.spec.ways[0].price_all * hours)
    spec = replace(
        first.spec, work=work, budget=budget, deadline_s=None, hard=False, max_duration_s=None,
        idle_s=None,
    )  # fmt: skip
    return replace(
        first,
        run_id="run-2",
        spec=spec,
        fails_at=None,
        hangs_at=None,
        cancel_at_s=rng.randrange(60, 1200) if rng.random() < 0.1 else None,
        resumes=False,
        month=None,
        liar="",
    )


def _place(rng: Random, name: str, letter: str, quiet_s: int) -> Place:
    queues = rng.random() < (0.15 if name == "near" else 0.4)
    facts = Facts(
        boot_timeout_s=rng.choice((300, 420)),
        notice_s=rng.choice((0, 30, 120)),
        billing_step_s=rng.choice((1, 1, 60, 3600)),
        billing_lead_s=60,
        tokens=rng.random() < 0.5,
        listing_lag_s=rng.choice((0, 60, 150)),
        gang=rng.random() < 0.7,
        queues=queues,
        ends=rng.choice(("itself", "itself", "itself", "never")),
    )
    outage = (0, 0)
    if rng.random() < 0.15:
        begins = rng.randrange(quiet_s)
        outage = (begins, min(begins + rng.randrange(60, 900), quiet_s))
    skew_s = rng.randrange(-600, 601) if rng.random() < 0.5 else 0
    # Places that queue draw nothing for it, so that seeds stay the runs that they were.
    pass_s = (1200 if skew_s > 300 else 0) if queues else rng.choice((0, 0, 0, 1200, 3600))
    return Place(name, letter, facts, skew_s, outage, rng.random() < 0.5, pass_s)


def _ways(rng: Random, places: list[Place], nodes: int, every_s: int, size: int) -> tuple[Way, ...]:
    """In each place two spot zones and the same on demand; now and then a faster, dearer kind."""
    price = rng.randrange(300_000, 12_000_000)
    ways: list[Way] = []
    for place in places:

        def way(
            zone: str, market: str, kind: str, of_price: float, rate: float, at: Place = place
        ) -> Way:
            return Way(
                provider=at.name, region="r1", zone=zone, instance_type=kind, market=market,
                nodes=nodes, price=int(price * of_price), rate=rate, start_s=150.0,
                facts=at.facts, rates=_RATES, pass_s=at.pass_s,
            )  # fmt: skip

        def far(made: Way) -> Way:
            """The store is in the first place; from others, what is moved is paid for."""
            return replace(
                made,
                rates=replace(_RATES, gb_in=_GB_IN, gb_out=_GB_OUT),
                bring=-(-size * _GB_OUT // GB),
                save=-(-size * _GB_IN * 3600 // (GB * every_s)),
            )

        of = 1.0 if place is places[0] else rng.choice((0.5, 0.9, 1.2))
        ways.append(way("r1-a", "on_demand", "small", of, 1.0))
        if rng.random() < 0.8:
            ways.append(way("r1-a", "spot", "small", 0.35 * of, 1.0))
            ways.append(way("r1-b", "spot", "small", 0.4 * of, 1.0))
        if rng.random() < 0.3:
            ways.append(way("r1-c", "on_demand", "large", 1.7 * of, 1.6))
        if place is not places[0]:
            ways = [far(each) if each.provider == place.name else each for each in ways]
    return tuple(ways)
