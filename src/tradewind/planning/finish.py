"""What it takes to finish: hours of each market, checkpoints, interruptions, chances. Pure.

    on-demand   startup + work, slowed by checkpoints and by what rare failures undo
    spot        held `L` hours at a time with gaps between: each stay pays a restart, and the work
                since the last checkpoint unless a notice left time to save
    both        what the policy that will decide expects of this much work, time, restart and price

The hours on both markets are those to be expected over the estimate's whole band.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from tradewind.policy import outlook, spot
from tradewind.policy.base import MEASURED

if TYPE_CHECKING:
    from tradewind.planning.goods import Column, Flags, Numbers

BOOT_S = 180.0  # until a rented machine runs our first line
OWN_BOOT_S = 5.0
SETUP_S = 120.0  # the job's own setup, where it has one and does not say how long it takes
SNAPSHOT_RATE = 10e9  # bytes/s of a machine's state out of its accelerators, while they wait
STORE_RATE = 1e9  # bytes/s between a machine and a store nearby
FAR_RATE = 0.25e9  # and one far away
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
    gang: Column  # machines of the usual kind that are lost and found like these
    devices: Column
    startup_s: Column  # boot, setup and data
    again_s: Column  # the same later on, when the data has been copied nearby
    state_bytes: float
    notice_s: Column
    seen: Column  # of spot of late: 1 it could be had, -1 it could not, 0 nobody looked
    price: Column  # of spot, that of on-demand being 1
    every_s: float | None  # between checkpoints, where it is decided
    deadline_s: float  # infinite where there is none

    def take(self, at: Flags | Numbers) -> Situation:
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
    width: Column  # half of the 80 % band of the hours that are paid for, in the logarithm

    def take(self, at: Numbers) -> Course:
        return Course(*(getattr(self, f.name)[at] for f in fields(self)))

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
        width=s.width,
    )


def on_spot(s: Situation) -> Course:
    """Nothing else, whatever the deadline: soon done where there is capacity, else hardly ever."""
    import numpy as np

    save, upload = _save(s)
    stay = spot.held_hours(s.gang) * 3600
    every = _interval(s, save, upload, stay)
    restart = s.again_s + upload + _undone(s, save + upload, every, stay)
    paid = (1 - np.minimum(restart / stay, 0.95)) / (1 + save / every)
    held = s.work_s / paid
    luck = 0.5 / np.sqrt(1 + held / stay)  # the fewer stays, the less they even out
    belief = spot.beliefs(s.gang, s.seen, spot.REACH)
    waited_h = spot.waited_hours(held / 3600, s.gang, spot.REACH)
    alone = 3600 * (waited_h + spot.first_wait_hours(s.seen))
    width = np.hypot(s.width, 1.2816 * luck)[:, None]
    sure = in_time((s.deadline_s - s.startup_s)[:, None], alone, width)
    return Course(
        hours=(s.startup_s + _median(alone, belief)) / 3600,
        on_demand=np.zeros(len(held)),
        spot=(held + s.startup_s) / 3600,
        interruptions=held / stay,
        every_s=every,
        chance=s.fits * (belief * sure).sum(axis=1),
        width=s.width,
    )


def on_both(s: Situation) -> Course:
    """With on-demand machines of the same type to keep the deadline: as the policy expects."""
    import numpy as np

    save, upload = _save(s)
    stay_h = spot.held_hours(s.gang)
    every = _interval(s, save, upload, stay_h * 3600)
    slowed = 1 + save / every
    restart_h = (s.again_s + upload + _undone(s, save + upload, every, stay_h * 3600)) / 3600
    first_h = np.maximum(s.startup_s / 3600 - restart_h, 0)  # of the first start, beyond others
    rate = _rate_on_demand(s, save, upload)
    ask = outlook.surface()

    def expected(work_h: Column) -> outlook.Hours:
        time_h = s.deadline_s / 3600 - first_h - MEASURED * work_h
        found = ask.hours(work_h, time_h, restart_h, s.price, s.gang, s.seen)
        start_h = np.where(found.spot > 0, first_h, 0)
        safe_h = found.on_demand / (rate * slowed)  # fewer checkpoints, and rare failures
        return outlook.Hours(found.spot + start_h, safe_h + first_h - start_h)

    work_h = s.work_s * slowed / 3600
    # Should it be slower than thought, more has to be done on demand: what is paid for is the mean
    # over the band.
    parts = [expected(work_h * np.exp(off * s.width / 1.2816)) for off, _ in _SPEEDS]
    weights = [weight for _, weight in _SPEEDS]
    on_spot_h = np.average([part.spot for part in parts], axis=0, weights=weights)
    safe_h = np.average([part.on_demand for part in parts], axis=0, weights=weights)
    middle = parts[len(parts) // 2]
    # From the start on demand is a way to go on as well.
    alone = on_demand(s)
    # Where on demand costs nothing spot is endlessly dearer; no hour of it is still no money.
    paid = np.multiply(s.price, on_spot_h, out=np.zeros_like(on_spot_h), where=on_spot_h > 0)
    dear = paid + safe_h >= alone.on_demand
    held_h = middle.spot + middle.on_demand
    whole_h = work_h + restart_h
    most_h = np.maximum(s.deadline_s / 3600 - first_h - MEASURED * work_h, whole_h)
    waited_h = np.minimum(spot.waited_hours(whole_h, s.gang), most_h[:, None])
    done_h = (spot.beliefs(s.gang, s.seen) * waited_h).sum(axis=1)
    starts = (held_h - first_h - whole_h) / np.maximum(restart_h, 1e-3)
    taken = np.clip(np.minimum(starts, middle.spot / stay_h), 0, None)
    # Whatever happens on spot, on-demand from here on would have done it.
    room = s.deadline_s - s.startup_s - 3600 * restart_h
    return Course(
        hours=np.where(dear, alone.hours, np.maximum(first_h + done_h, held_h)),
        on_demand=np.where(dear, alone.on_demand, safe_h),
        spot=np.where(dear, 0, on_spot_h),
        interruptions=np.where(dear, alone.interruptions, taken),
        every_s=every,
        chance=s.fits * in_time(room, s.work_s / rate, s.width),
        width=np.where(dear, s.width, np.maximum(_dearer(s, parts), s.width)),
    )


def _dearer(s: Situation, parts: list[outlook.Hours]) -> Column:
    """The same band of the money: work that is slower than thought is done on demand, so that its
    cost grows faster than its hours."""
    import numpy as np

    middle, slow = (
        np.multiply(s.price, each.spot, out=np.zeros_like(each.spot), where=each.spot > 0)
        + each.on_demand
        for each in parts[1:]
    )
    found: Column = np.log(slow / middle) * 1.2816 / _SPEEDS[2][0]
    return found


def _median(values: Column, weights: Column) -> Column:
    """Of each row. A mean would be that of zones which are dead for days; the chance tells of
    those."""
    import numpy as np

    order = np.argsort(values, axis=1)
    summed = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    at = (summed < 0.5 * summed[:, -1:]).sum(axis=1, keepdims=True)
    found: Column = np.take_along_axis(values, np.take_along_axis(order, at, axis=1), axis=1)[:, 0]
    return found


def _undone(s: Situation, saving: Column, every: Column, stay: Column) -> Column:
    """Seconds of work that are lost with a machine: few where its notice leaves time to save."""
    import numpy as np

    noticed = saving <= s.notice_s - _LAST_SECONDS
    found: Column = np.where(noticed, 15.0, np.minimum(every / 2, stay / 2))
    return found


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
