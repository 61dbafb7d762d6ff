"""The states of a run and of its leg, and every way from one to another, each with its reason."""

from __future__ import annotations

from tradewind.base.errors import BadFile

NO_RETURN = ("succeeded", "abandoned")
"""Outcomes after which a run is never resumed."""

RUN = {
    ("", "waiting"): "submitted: no machine is held, and the next purchase is chosen",
    ("", "closed"): "submitting it was cut off; too late now",
    ("waiting", "active"): "a purchase was recorded: there is a leg",
    ("active", "waiting"): "the leg ended, or waits in a queue: another may be chosen",
    ("waiting", "ended"): "the outcome is known: nothing is bought any more",
    ("ended", "closed"): "every machine has ended and is accounted for",
    ("closed", "waiting"): "its user has resumed it",
}

LEG = {
    ("", "requested"): "the purchase is recorded before it is made",
    ("requested", "booting"): "all its machines were found",
    ("requested", "queued"): "its provider has taken it, and has no machines yet",
    ("queued", "booting"): "all its machines were found",
    ("queued", "over"): "it is no longer wanted, or its provider has dropped it",
    ("requested", "over"): "refused, or its outcome stayed unknown, or it is no longer wanted",
    ("booting", "running"): "every supervisor has reported",
    ("booting", "draining"): "it is no longer wanted, but its job may have begun",
    ("booting", "over"): "a machine never came up, or was interrupted before it did",
    (
        "running",
        "draining",
    ): "it is to save and to stop: notice, move, cancel, budget, deadline or window",
    ("running", "over"): "the job ended, or a machine was interrupted or lost",
    ("draining", "over"): "it has stopped, or did not in time",
}


def moved(table: dict[tuple[str, str], str], old: str, new: str, what: str) -> str:
    """`new`, if it can be reached from `old`; only a journal that was tampered with asks more."""
    if (old, new) not in table:
        raise impossible(what, old, new)
    return new


def impossible(what: str, old: str, new: str) -> BadFile:
    return BadFile(
        f"the journal says that {what} went from {old or 'nothing'} to {new} by an event that leads"
        " elsewhere",
        hint="the journal was changed by hand or is not complete; restore it from a backup",
    )
