"""What a user asks of a run that there is: to stop, to go on, to lose its machines."""

from __future__ import annotations

from contextlib import suppress

from tradewind.base import clock, steps
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import format_hours
from tradewind.journal import runs_store
from tradewind.lifecycle.words import outcome_words
from tradewind.model import bounds, places
from tradewind.store.base import Store


def stop(store: Store, run_id: str, reason: str = "its user asked for it") -> bool:
    """False: it is over already. It stops as soon as somebody looks after it."""
    from tradewind.api import fleet
    from tradewind.controller.drive import performer

    return steps.run(fleet.clerk().cancel(run_id, reason), performer(store, {}))


def resume(
    store: Store, run_id: str, *, budget: int | None = None, within_s: float | None = None
) -> None:
    """InvalidValue: it is not over, or there is nothing to go on with. `budget` is for everything
    since it began, in micro-dollars; `within_s` from now."""
    from tradewind.api import fleet
    from tradewind.controller.drive import performer

    _check_kept(store, run_id)
    if within_s is None:
        _check_deadline(store, run_id)
    until = None if within_s is None else clock.now().timestamp() + within_s
    resuming = fleet.clerk().resume(
        run_id, "its user asked for it", budget=budget, deadline_s=until
    )
    if steps.run(resuming, performer(store, {})):
        return
    state = runs_store.load(store, run_id).state
    if state.phase == "closed":
        words = outcome_words(state.outcome)
        raise InvalidValue(f"{run_id} cannot be resumed: {words}", hint="submit it again")
    raise InvalidValue(
        f"{run_id} is not over yet", hint=f"tradewind watch {run_id}, or stop it first"
    )


def _check_kept(store: Store, run_id: str) -> None:
    """Swept (upkeep/unread.py), it would begin anew, and be counted as if it went on. That nothing
    of it is there is not enough: jobs may save elsewhere."""
    with suppress(NotFound):
        store.get(places.swept(run_id), most=bounds.RECORD)
        kept = (places.checkpoints(run_id), places.batch(run_id))
        saved = runs_store.load(store, run_id).state.saved
        if saved and not any(map(store.list_after, kept)):
            raise InvalidValue(
                f"{run_id} cannot be resumed: what it had saved was removed by a sweep",
                hint="submit it again",
            )


def _check_deadline(store: Store, run_id: str) -> None:
    """Of a hard one that has passed: it would end at once."""
    late_s = late_by_s(store, run_id)
    state = runs_store.load(store, run_id).state
    if late_s > 0 and state.phase == "closed" and state.spec and state.spec.hard:
        raise InvalidValue(
            f"{run_id} cannot be resumed: its deadline passed {format_hours(late_s / 3600)} ago,"
            " and limits.hard makes it end there",
            hint="--deadline 12h gives it another one, from now",
        )


def late_by_s(store: Store, run_id: str) -> float:
    """For how long its deadline has passed; 0 where it has not, or there is none."""
    spec = runs_store.load(store, run_id).state.spec
    if spec is None or spec.deadline_s is None:
        return 0.0
    return max(clock.now().timestamp() - spec.deadline_s, 0.0)


def check_attended(store: Store, run_id: str, *, attended: bool, budget: int | None = None) -> None:
    """Before it is resumed, and left to a process in the background (attended.py)."""
    from msgspec.structs import replace

    from tradewind.api import attended as unended

    spec = runs_store.load(store, run_id).state.spec
    if spec is not None:
        unended.check(spec if budget is None else replace(spec, budget=budget), attended=attended)


def interrupt(store: Store, run_id: str, notice_s: float = 10.0) -> tuple[str, ...]:
    """The machines that will be taken."""
    from tradewind.api import fleet

    leg = runs_store.load(store, run_id).state.leg
    if leg is None or not leg.machines:
        raise InvalidValue(f"{run_id} has no machines now", hint=f"tradewind show {run_id}")
    if leg.request.way.provider != "local":
        raise InvalidValue(f"{run_id} is not on this computer: only a cloud takes its machines")
    fleet.local(store).interrupt(leg.machines, notice_s)
    return leg.machines
