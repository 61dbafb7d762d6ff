"""Where one workload belongs: each way with what it costs a month, how quickly it answers, and the
reason where it cannot be. Pure: prices and round trips are given.

The verdict is the cheapest way that keeps every constraint. `path` asks the questions that lead
there in the order in which they bind, for the flowchart: first what rules ways out, then, one way
after another, whether it is the cheapest that is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_hours

MONTH_S = 730 * 3600.0
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Unit:
    """What comes again and again: a request, or a piece of work of hours."""

    each: str
    often: str
    days: float
    """In which `often` counts."""


REQUESTS = Unit("a request", "requests a day", 1.0)
RUNS = Unit("a run", "runs a month", MONTH_S / DAY_S)
KEEPS = ("any", "cloud", "own")
"""Where data may be: anywhere; on machines that only you use; on machines that are yours."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    requests_day: float
    seconds: float
    """Of one accelerator for a request."""
    peak: float = 3.0
    """Requests in the fullest hour, by the mean."""
    latency_s: float | None = None
    keep: str = "any"
    offline: bool = False
    memory_gb: float = 0.0
    accelerator: str = ""
    unit: Unit = REQUESTS
    limit: str = ""
    """What is promised, where `latency_s` is not the word for it."""

    def __post_init__(self) -> None:
        for name, value, least in (
            (self.unit.often, self.requests_day * self.unit.days, 0.0),
            ("seconds", self.seconds, 0.0),
            ("peak", self.peak, 0.999),
        ):  # fmt: skip
            if not least < value < 1e12:
                raise InvalidValue(
                    f"{name} cannot be {value:g}", hint=f"legal: more than {least:g}"
                )
        if self.latency_s is not None and self.latency_s <= 0:
            raise InvalidValue(f"a latency of {self.latency_s:g} s cannot be")
        if self.keep not in KEEPS:
            raise InvalidValue(f"{self.keep!r} is not where data may be", hint=", ".join(KEEPS))

    @property
    def often(self) -> float:
        """In the unit's own count."""
        return self.requests_day * self.unit.days

    @property
    def requests_month(self) -> float:
        return self.requests_day * MONTH_S / DAY_S

    @property
    def busy(self) -> float:
        """Accelerators that are busy on average."""
        return self.requests_day * self.seconds / DAY_S

    @property
    def machines(self) -> int:
        """Accelerators for the fullest hour; no more than four fifths of each is used."""
        return max(math.ceil(self.busy * self.peak / 0.8), 1)


@dataclass(frozen=True, kw_only=True)
class Way:
    """One place to run it. Dollars; `always` is paid whether or not requests come."""

    kind: str
    words: str
    always_month: float = 0.0
    """Of one accelerator, or of all where `whole`."""
    usd_request: float = 0.0
    whole: bool = False
    at_once: int = 1
    """Runs, where one way has room for several."""
    seconds: float | None = None
    """Of its own for a request, where another machine computes."""
    rtt_s: float = 0.0
    cold_s: float = 0.0
    window_s: float = 0.0
    """How long it stays warm, and is paid, after a request."""
    memory_gb: float = math.inf
    leaves: str = "cloud"
    """Whose machines see the data: own, cloud (rented for you alone), any."""
    once: float = 0.0
    """Dollars to bring the data there."""
    source: str = ""
    doubt: str = ""
    online: bool = True
    reason: str = field(default="")
    """Why it cannot be, known beforehand."""

    def machines(self, asked: Asked) -> int:
        if self.seconds is None:
            return asked.machines
        busy = asked.requests_day * self.seconds / DAY_S / self.at_once
        return max(math.ceil(busy * asked.peak / 0.8), 1)

    def month(self, asked: Asked) -> float:
        many = 1 if self.whole else self.machines(asked)
        return self.always_month * many + self.usd_request * asked.requests_month * (
            1 + self._idle_share(asked)
        )

    def _idle_share(self, asked: Asked) -> float:
        """Of what a request computes: what the start and the waiting after it add."""
        return self.chance_cold(asked) * (self.cold_s + self.window_s) / asked.seconds

    def chance_cold(self, asked: Asked) -> float:
        """That none came within the window before: requests at random moments."""
        return math.exp(-asked.requests_day / DAY_S * self.window_s) if self.cold_s else 0.0

    def latency_s(self, asked: Asked) -> float:
        """Of a warm request."""
        return self.rtt_s + (asked.seconds if self.seconds is None else self.seconds)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    way: Way
    month: float
    latency_s: float
    why_not: str
    """Empty where it can be."""


@dataclass(frozen=True, kw_only=True)
class Step:
    question: str
    answer: str
    yes: bool
    to: str
    """Where yes leads."""


@dataclass(frozen=True, kw_only=True)
class Placed:
    asked: Asked
    verdicts: tuple[Verdict, ...]
    """Those that can be first, the cheapest first."""
    crossovers: tuple[str, ...]
    path: tuple[Step, ...]

    @property
    def best(self) -> Verdict | None:
        return self.verdicts[0] if self.verdicts and not self.verdicts[0].why_not else None


def place(
    asked: Asked, ways: Sequence[Way], *, crossovers: Sequence[str] | None = None
) -> Placed:  # fmt: skip
    """`crossovers`: where costs do not follow the number of requests as ways say."""
    found = [
        Verdict(
            way=way, month=way.month(asked), latency_s=way.latency_s(asked),
            why_not=_why_not(asked, way),
        )
        for way in ways
    ]  # fmt: skip
    found.sort(key=lambda v: (bool(v.why_not), v.month))
    # Of each kind the best: of forty devices, one is the answer.
    found = list({v.way.kind: v for v in reversed(found)}.values())
    found.sort(key=lambda v: (bool(v.why_not), v.month))
    return Placed(
        asked=asked, verdicts=tuple(found),
        crossovers=tuple(_crossovers(asked, found) if crossovers is None else crossovers),
        path=tuple(_path(asked, found)),
    )  # fmt: skip


def _why_not(asked: Asked, way: Way) -> str:
    if way.reason:
        return way.reason
    if asked.offline and way.online:
        return "it must work without a network"
    if KEEPS.index(way.leaves) < KEEPS.index(asked.keep):
        whose = "yours" if asked.keep == "own" else "yours or rented for you alone"
        return f"data may only be on machines that are {whose}"
    if way.memory_gb < asked.memory_gb:
        return f"{way.memory_gb:g} GB of memory, {asked.memory_gb:g} are needed"
    if asked.latency_s is not None:
        latency = way.latency_s(asked)
        if latency > asked.latency_s and asked.unit is RUNS:
            return f"takes {format_hours(latency / 3600)}"
        if latency > asked.latency_s:
            return f"answers in {latency:.2f} s ({1000 * way.rtt_s:.0f} ms of it on the way)"
        cold = way.chance_cold(asked)
        if cold > 0.01 and latency + way.cold_s > asked.latency_s:
            return f"{cold:.0%} of requests would wait {way.cold_s:.0f} s for a cold start"
    return ""


def _crossovers(asked: Asked, found: Sequence[Verdict]) -> list[str]:
    """From which requests a day on another way is the cheaper one, of those that can be."""
    possible = [v.way for v in found if not v.why_not]
    texts = []
    for number, one in enumerate(possible):
        for other in possible[number + 1 :]:
            at = crossover(asked, one, other)
            if at is not None:
                first = _month(asked, one, at / 2) < _month(asked, other, at / 2)
                low, high = (one, other) if first else (other, one)
                texts.append(cheaper_below(asked.unit, low.kind, high.kind, at))
    return texts


def cheaper_below(unit: Unit, low: str, high: str, requests_day: float) -> str:
    many = requests_day * unit.days
    return f"{low} is cheaper below {many:,.{0 if many >= 10 else 1}f} {unit.often}, {high} above"


def _month(asked: Asked, way: Way, requests_day: float) -> float:
    return way.month(replace(asked, requests_day=max(requests_day, 1e-6)))


def crossover(asked: Asked, one: Way, other: Way) -> float | None:
    """The requests a day nearest to what is asked at which both cost the same; None where one is
    cheaper from one, of what the unit counts, to a billion."""
    grid = [10 ** (k / 40) / asked.unit.days for k in range(361)]
    gaps = [_month(asked, one, r) - _month(asked, other, r) for r in grid]
    found = []
    for k in range(360):
        if (gaps[k] < 0) != (gaps[k + 1] < 0):
            low, high = grid[k], grid[k + 1]
            for _ in range(50):
                middle = (low + high) / 2
                gap = _month(asked, one, middle) - _month(asked, other, middle)
                same = (gap < 0) == (gaps[k] < 0)
                low, high = (middle, high) if same else (low, middle)
            found.append(low)
    return min(found, key=lambda r: abs(math.log(r / asked.requests_day)), default=None)


def _path(asked: Asked, found: Sequence[Verdict]) -> list[Step]:
    best = next((v for v in found if not v.why_not), None)
    steps = [
        Step(question="Must it work without a network?", answer="yes" if asked.offline else "no",
             yes=asked.offline, to="only devices at the edge"),
        Step(question="Must its data stay on machines of yours?", answer=f"data: {asked.keep}",
             yes=asked.keep == "own", to="only machines of your own"),
    ]  # fmt: skip
    if asked.latency_s is not None or asked.limit:
        late = [v.way.kind for v in found if v.why_not.startswith(_LATE) or "cold" in v.why_not]
        steps.append(
            Step(question=f"Must it {_promise(asked)}?", yes=bool(late),
                 answer=f"rules out {', '.join(dict.fromkeys(late))}" if late else "all left do",
                 to="only what is quick enough" if asked.unit is RUNS or asked.limit
                 else "only what is near and warm")
        )  # fmt: skip
    left = sorted((v for v in found if not v.why_not), key=lambda v: _ORDER.index(v.way.kind))
    for verdict in left:
        cheapest = verdict is best
        rest = [v.month for v in found if not v.why_not and v is not verdict]
        against = f"${verdict.month:,.0f} a month" + (
            f", the others from ${min(rest):,.0f}" if rest else ", nothing else is left"
        )
        steps.append(
            Step(question=f"Is {verdict.way.kind} the cheapest that is left?", answer=against,
                 yes=cheapest, to=verdict.way.kind)
        )  # fmt: skip
        if cheapest:
            break
    return steps


def _promise(asked: Asked) -> str:
    if asked.limit:
        return asked.limit
    assert asked.latency_s is not None
    if asked.unit is RUNS:
        return f"be done within {format_hours(asked.latency_s / 3600)}"
    return f"answer within {asked.latency_s:g} s"


_LATE = ("answers in", "takes ", "too slow")
_ORDER = ("edge device", "CPU", "model API", "serverless GPU", "spot machine", "own machines",
          "cloud machine", "managed service")  # fmt: skip
