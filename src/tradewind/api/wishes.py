"""How a run's machines on this computer are to be interrupted.

It stands beside them, in `$TRADEWIND_HOME/local/interruptions/<run-id>.json`, because whoever looks
after the run may be another process than the one that submitted it. A trace is kept whole: the file
it came from may be gone by then. The run's store has it too, for whoever reports of the run later.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, json

from tradewind.base import clock
from tradewind.base.decoding import decoder
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.ownfiles import home, replace
from tradewind.model.plausible import Count, Span
from tradewind.providers.local.trace import Trace

if TYPE_CHECKING:
    from tradewind.model.run import Spec
    from tradewind.providers.local.interruptions import Interruptions

_Length = Annotated[float, Meta(ge=0, le=1e11)]
NOTICE_S = 10.0
FROM_WORK_S = 30.0
"""Longer than a computer takes to import PyTorch, as a rule: a job that has told of no progress by
then may be one that never does."""


class ChaosWish(Struct, frozen=True, kw_only=True, tag="chaos"):
    """Spot machines live for so long on average."""

    mean_life_s: Annotated[float, Meta(ge=1e-3, le=1e11)]
    notice_s: _Length = NOTICE_S
    seed: Count = 0
    from_work_s: _Length = FROM_WORK_S
    """How long a machine's life waits for its job to work."""
    everywhere: bool = False
    """Machines on demand too, because there are no others."""

    def made(self) -> Interruptions:
        from tradewind.providers.local.interruptions import Chaos

        return Chaos(self.mean_life_s, self.notice_s, self.seed, self.from_work_s, self.everywhere)


class TraceWish(Struct, frozen=True, kw_only=True, tag="trace"):
    """Spot machines are there when they really were."""

    traces: dict[str, Trace]
    """By zone."""
    began_s: Span
    speed: Annotated[float, Meta(ge=1e-6, le=1e6)] = 1.0
    notice_s: _Length = NOTICE_S
    least_s: _Length = 0.0
    measured: bool = True
    """Else somebody made it up."""

    def made(self) -> Interruptions:
        from tradewind.providers.local.interruptions import Replay

        return Replay(
            self.traces,
            self.began_s,
            offset_s=0.0,
            speed=self.speed,
            notice_s=self.notice_s,
            least_s=self.least_s,
        )


Wish = ChaosWish | TraceWish
_decode: Any = decoder(Wish)


class PerRun:
    """Interruptions as each run has asked for them; none, for the others."""

    def __init__(self) -> None:
        self._last = threading.local()  # runs are bought for on threads of their own

    @property
    def notice_s(self) -> float:
        return getattr(self._last, "notice_s", 0.0)

    @property
    def from_work_s(self) -> float:
        return getattr(self._last, "from_work_s", 0.0)

    def takes_all(self, run_id: str) -> bool:
        wish = wish_of(run_id)
        return wish is not None and wish.made().takes_all(run_id)

    def lives(self, zone: str, machine_ids: Sequence[str], now: float) -> tuple[float | None, ...]:
        run_id = machine_ids[0].removeprefix("local-").rsplit("-", 2)[0]  # local-<run>-<leg>-<rank>
        wish = wish_of(run_id)
        if wish is None:
            return tuple(None for _ in machine_ids)
        made = wish.made()
        self._last.notice_s, self._last.from_work_s = made.notice_s, made.from_work_s
        return made.lives(zone, machine_ids, now)


def folder() -> Path:
    return home() / "local" / "interruptions"


def wish_of(run_id: str) -> Wish | None:
    try:
        return decoded(_place(run_id).read_bytes())
    except OSError:
        return None


def decoded(data: bytes) -> Wish | None:
    """None: it cannot be read."""
    wish: Wish | None = _decode(data)
    return wish


def keep(run_id: str, wish: Wish) -> None:
    replace(_place(run_id), json.encode(wish))


def drop(run_id: str) -> None:
    _place(run_id).unlink(missing_ok=True)


def _place(run_id: str) -> Path:
    return folder() / f"{run_id}.json"


def chaos(mean_life_s: float, spec: Spec) -> ChaosWish:
    """Of a run without spot machines, those on demand are interrupted: it was asked for."""
    wish = ChaosWish(
        mean_life_s=mean_life_s, everywhere=all(way.market != "spot" for way in spec.ways)
    )
    wish.made()  # which refuses what cannot be
    return wish


def traced(text: str, spec: Spec) -> TraceWish:
    """`text` is FILE or FILE:SERIES,SERIES…; a series is named by its id or by its zone. It goes at
    the run's own speed."""
    file, series = _parted(text)
    zones = dict.fromkeys(way.zone for way in spec.ways if way.market == "spot")
    if not zones:
        raise InvalidValue(
            "the plan has no spot machines: a trace would change nothing",
            hint="let the workload's limits.markets have spot",
        )
    found = _series(file, series)
    wish = TraceWish(traces=_dealt(zones, found), began_s=clock.now().timestamp(), speed=spec.speed)
    wish.made()
    return wish


def _parted(text: str) -> tuple[Path, list[str]]:
    """A file's name may have colons itself."""
    if Path(text).is_file():
        return Path(text), []
    file, _, names = text.rpartition(":")
    if not file or not Path(file).is_file():
        raise NotFound(
            f"there is no file {file or text} with traces",
            hint="write FILE, or FILE:SERIES,SERIES with ids or zones of its rows",
        )
    return Path(file), [name.strip() for name in names.split(",") if name.strip()]


def _series(file: Path, names: Sequence[str]) -> list[Trace]:
    from tradewind.base.errors import BadFile
    from tradewind.providers.local import trace

    if names:
        return [trace.read(file, name) for name in names]
    found = list(trace.read_all(file))
    if not found:
        raise BadFile(f"{file} has no traces", hint="docs/local.md says what is in such a file")
    return found


def _dealt(zones: Iterable[str], series: Sequence[Trace]) -> dict[str, Trace]:
    """A series for each zone: its own where there is one, else the others in turn. The zones of a
    plan are seldom those of a measurement, and every one of them shall have its troubles."""
    own = {each.zone: each for each in reversed(series)}
    rest = [each for each in series if each.zone not in zones] or list(series)
    dealt: dict[str, Trace] = {}
    turn = 0
    for zone in zones:
        if zone in own:
            dealt[zone] = own[zone]
        else:
            dealt[zone] = rest[turn % len(rest)]
            turn += 1
    return dealt
