"""What is written down of a leg's machines, as an annotation of its Job: pods that are gone tell
nothing any more, and the Job stays until all is accounted for.

From when on a machine was there is written when it is first listed; when and why it ended, when
that is known and its pod goes, or before we delete its pod. What stands there once is not changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, json

from tradewind.base.decoding import decoder
from tradewind.providers.kubernetes import labels


class Record(Struct, frozen=True, omit_defaults=True, gc=False):
    launched_s: int | None = None
    ended_s: int | None = None
    by: str = ""
    why: str = ""
    pod: str = ""
    """The beginning of its pod's uid: another pod of the same rank is not this machine."""


Records = dict[int, Record]
"""By rank."""
_read = decoder(dict[int, Record])


def mark(uid: str) -> str:
    """Of a pod: it is one of a few of its rank, and annotations have no room for more."""
    return uid[:8]


def read(annotations: Mapping[str, str] | None) -> Records:
    text = (annotations or {}).get(labels.MACHINES, "")
    found: Records | None = _read(text.encode()) if text else None
    return found or {}


def written(records: Records) -> dict[str, str]:
    """The annotation."""
    return {labels.MACHINES: json.encode(records).decode()}


def merged(kept: Records, news: Records) -> Records:
    """What is known already stays."""
    both = dict(kept)
    for rank, new in news.items():
        old = both.get(rank, Record())
        ended = old if old.ended_s is not None else new
        launched_s = new.launched_s if old.launched_s is None else old.launched_s
        both[rank] = Record(launched_s, ended.ended_s, ended.by, ended.why, old.pod or new.pod)
    return both
