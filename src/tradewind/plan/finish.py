"""What it takes to finish: hours of each market, checkpoints, interruptions, chances. Pure.

    on-demand   startup + work, slowed by checkpoints and by what rare failures undo
    spot        held `L` hours at a time with gaps between: each stay pays a restart, and the work
                since the last checkpoint unless a notice left time to save
    both        of the hours until the deadline, as many on spot as leave the work done in time:
                x on-demand and y on spot with  r·x + p·y = W  and  x + y/a = T; a restart is
                paid for where x is more than nought

The on-demand hours are those to be expected over the estimate's whole band. `r` and `p` are the
work done in an hour that is paid for, `a` the share of the time in which spot can be had, T the
time until the deadline and W the work.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from tradewind.policy import spot

if TYPE_CHECKING:
    from tradewind.plan.goods import Column, Flags

BOOT_S = 180.0  # until a rented machine runs our first line
OWN_BOOT_S = 5.0
SETUP_S = 120.0  # the job's own setup, where it has one and does not say how long it takes
SNAPSHOT_RATE = 10e9  # bytes/s of a machine's state out of its accelerators, while they wait
STORE_RATE = 1e9  # bytes/s between a machine and a store nearby
FAR_RATE = 0.25e9  # and one far away
SAFE = 0.95  # of the time until the deadline that a plan on spot alone may take
LONGEST_INTERVAL_S = 4 * 3600.0
# A normal curve in three points: standard deviations from its middle, and their weight.
_SPEEDS = ((-(3**0.5), 1 / 6), (0.0, 2 / 3), (3**0.5, 1 / 6))
_OF_ALL = ("state_bytes", "every_s", "deadline_s")  # one value for all candidates
_LAST_SECONDS = 10.0  # of a notice that are not counted on


@dataclass(slots=True)
class Situation:
    """One entry a candidate."""

    work_s: Column
    width: Column  # half of the 80 % band of `work_s`, in the logarithm
    fits: Column  # how likely
    machines: Column
    devices: Column
    startup_s: Column  # boot, setup and data
    again_s: Column  # the same later on, when the data has been copied nearby
    state_bytes: float
    notice_s: Column
    seen: Column  # of spot of late: 1 it could be had, -1 it could not, 0 nobody looked
    every_s: float | None  # between checkpoints, where it is decided
    deadline_s: float  # infinite where there is none

    def take(self, at: Flags) -> Situation:
        chosen = {f.name: getattr(self, f.name)[at] for f in fields(self) if f.name not in _OF_ALL}
        return replace(self, **chosen)


@dataclass(slots=True)
class Course:
    """Hours; of each machine where they are paid for."""

    hours: Column
    on_demand: Column
    spot: Column
    interruptions: Column
    every_s: Column
    chance: Column

    def put(self, at: Flags, other: Course) -> None:
        for f in fields(self):
            getattr(self, f.name)[at] = getattr(other, f.name)


def on_demand(s: Situation) -> Course:
    import numpy as np

    save, upload = _save(s)
    failure = spot.ON_DEMAND_FAILURE_H * 3600 / s.devices
    every = _interval(s, save, upload, failure)
    worked = s.work_s / _rate_on_demand(s, save, upload)
    hours = (s.startup_s + worked) / 3600
    return Course(
        hours=hours,
        on_demand=hours,
        spot=np.zeros(len(hours)),
        interruptions=worked / failure,
        every_s=every,
        chance=s.fits * in_time(s.deadline_s - s.startup_s, worked, s.width),
    )


def on_spot(s: Situation, *, fall_back: bool) -> Course:
    """`fall_back`: on-demand machines of the same type may be taken to keep the deadline."""
    import numpy as np

    save, upload = _save(s)
    stay = spot.held_hours(s.machines) * 3600
    gap = spot.gap_hours(s.machines) * 3600
    every = _interval(s, save, upload, stay)
    noticed = save + upload <= s.notice_s - _LAST_SECONDS
    lost = np.where(noticed, 15.0, np.minimum(every / 2, stay / 2))
    restart = s.again_s + upload
    spoilt = np.minimum((restart + lost) / stay, 0.95)
    paid = (1 - spoilt) / (1 + save / every)  # work in an hour that is paid for
    there = stay / (stay + gap)
    rate = _rate_on_demand(s, save, upload)
    unknown = (1 - there) * gap
    wait = np.where(s.seen > 0, 0.0, np.where(s.seen < 0, gap, unknown))
    room = s.deadline_s - s.startup_s - wait
    held = s.work_s / paid
    alone = held / there
    base = s.startup_s + wait
    if fall_back and np.isfinite(s.deadline_s):

        def split(work: Column) -> tuple[Column, Column]:
            """Seconds on demand, and on spot, that do so much work in time."""
            on_spot = work / paid
            tight = on_spot / there > SAFE * room
            less = np.maximum(SAFE * room - restart, 0)
            share = np.maximum(rate - there * paid, 1e-9)
            x = np.clip((work - there * paid * less) / share, 0, work / rate)
            x = np.where(tight, x, 0)
            y = np.where(tight, np.maximum(work - rate * x, 0) / paid, on_spot)
            return np.where(x > 0, x + restart, 0), y

        x, held = split(s.work_s)
        hours = base + x + held / there
        # Should it be slower than thought, more has to be done on demand: what is paid for is the
        # mean over the band.
        parts = [split(s.work_s * np.exp(off * s.width / 1.2816)) for off, _ in _SPEEDS]
        weights = [weight for _, weight in _SPEEDS]
        x = np.average([part[0] for part in parts], axis=0, weights=weights)
        held = np.average([part[1] for part in parts], axis=0, weights=weights)
        # Whatever happens on spot, on-demand from here on would have done it.
        sure = in_time(s.deadline_s - base - restart, s.work_s / rate, s.width)
    else:
        x = np.zeros(len(held))
        hours = base + alone
        luck = 0.5 / np.sqrt(1 + held / stay)  # the fewer stays, the less they even out
        sure = in_time(room, alone, np.hypot(s.width, 1.2816 * luck))
    return Course(
        hours=hours / 3600,
        on_demand=x / 3600,
        spot=(held + s.startup_s) / 3600,
        interruptions=held / stay,
        every_s=every,
        chance=s.fits * sure,
    )


def in_time(room: Column, needed: Column, width: Column) -> Column:
    """The chance that what takes `needed`, right within a band of `width`, takes no longer."""
    import numpy as np

    spread = np.maximum(width / 1.2816, 1e-6)  # the 80 % band of a normal curve
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.log(np.maximum(room, 1e-9) / needed) / spread
    off = np.clip(np.nan_to_num(off, nan=-50, posinf=50, neginf=-50), -50, 50)
    found: Column = 0.5 * (1 + np.tanh(0.7978845608 * (off + 0.044715 * off**3)))
    return found


def _save(s: Situation) -> tuple[Column, Column]:
    """Seconds that training stands still for a checkpoint, and that its upload takes."""
    upload: Column = s.state_bytes / s.machines / STORE_RATE
    return stall_s(s.state_bytes, s.machines), upload


def stall_s(state_bytes: float, machines: Any) -> Any:
    return 1 + state_bytes / machines / SNAPSHOT_RATE


def _interval(s: Situation, save: Column, upload: Column, between: Column) -> Column:
    """Young's, √(2·C·M): but one is uploaded before the next is taken."""
    import numpy as np

    if s.every_s:
        return np.full(len(save), s.every_s)
    least = np.maximum(60.0, 2 * upload)
    found: Column = np.clip(
        np.sqrt(2 * save * between), least, np.maximum(LONGEST_INTERVAL_S, least)
    )
    return found


def _rate_on_demand(s: Situation, save: Column, upload: Column) -> Column:
    failure = spot.ON_DEMAND_FAILURE_H * 3600 / s.devices
    every = _interval(s, save, upload, failure)
    return 1 / (1 + save / every + (every / 2 + upload + s.again_s) / failure)
