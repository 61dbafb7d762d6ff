"""EC2's instances as our machines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from tradewind.model.run import Machine
from tradewind.providers.aws.footprint import LAUNCH, LEG, OWNER, RUN, tags_of

PREFIX = "aws-"
_ID = re.compile(r"aws-([a-z0-9-]+?)-(i-[0-9a-f]+)")
_WHEN = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")


def machine_id(region: str, instance: str) -> str:
    return f"{PREFIX}{region}-{instance}"


def parted(name: str) -> tuple[str, str] | None:
    """Region and instance of a machine's id; None: it is none of ours."""
    found = _ID.fullmatch(name)
    return (found[1], found[2]) if found else None


def instances(pages: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for page in pages:
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def machine(region: str, instance: Mapping[str, Any], ended_s: int | None) -> Machine | None:
    """None: it carries the owner's tag, and none of a run's; somebody has put it there by hand."""
    named = tags_of(instance.get("Tags"))
    if not {OWNER, RUN, LEG, LAUNCH} <= set(named) or not named[LEG].isdecimal():
        return None
    launched_s = int(instance["LaunchTime"].timestamp())
    return Machine(
        machine_id=machine_id(region, instance["InstanceId"]),
        launch_id=named[LAUNCH],
        run_id=named[RUN],
        leg=int(named[LEG]),
        rank=int(instance.get("AmiLaunchIndex", 0)),
        launched_s=launched_s,
        ended_s=None if ended_s is None else max(ended_s, launched_s),
    )


def has_ended(instance: Mapping[str, Any]) -> bool:
    return bool(instance["State"]["Name"] == "terminated")


def said_end_s(instance: Mapping[str, Any]) -> int | None:
    """Such as: User initiated (2026-11-16 02:13:45 GMT)."""
    found = _WHEN.search(instance.get("StateTransitionReason") or "")
    if found is None:
        return None
    return int(datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp())


def answered_s(answer: Mapping[str, Any]) -> int | None:
    """By AWS's clock."""
    told = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        return int(parsedate_to_datetime(told).timestamp()) if told else None
    except ValueError:
        return None
