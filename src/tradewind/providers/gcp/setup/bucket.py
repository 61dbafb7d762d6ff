"""The bucket of a store: what it lacks. What others have set on it stays."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.providers.base import Refused
from tradewind.providers.changes import Line
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.things import OWNER, Bucket, Rule

_KEPT = {"softDeletePolicy": {"retentionDurationSeconds": "0"}}
_ACCESS = {
    "iamConfiguration": {
        "uniformBucketLevelAccess": {"enabled": True},
        "publicAccessPrevention": "enforced",
    }
}


def found(calls: Calls, bucket: str, number: str) -> Any:
    """As Cloud Storage tells it; None: there is none of this name. `number` is the project's: a
    bucket of another's is refused, even if we may look at it."""
    try:
        told = calls.get("storage", f"/b/{quote(bucket, safe='')}", "storage.buckets.get")
    except NoAccess as error:
        raise NoAccess(
            f"the bucket {bucket} belongs to someone else, or these credentials may not look at it"
            f" ({error.message})",
            hint="bucket names are shared by everyone: choose another, or log in as who owns it",
        ) from None
    if told is None:
        return None
    if number and str(told.get("projectNumber", number)) != number:
        raise InvalidValue(
            f"the bucket {bucket} belongs to project number {told['projectNumber']}, not to"
            f" {calls.project} ({number})",
            hint="choose another bucket, or --project with the one that it belongs to",
        )
    if told.get("locationType", "region") != "region":
        raise InvalidValue(
            f"the bucket {bucket} is in {told.get('location')}, which is {told['locationType']}:"
            " all that machines read and write there is charged for",
            hint="choose a bucket in one region, such as --region us-central1 makes",
        )
    return told


def region_of(told: Any) -> str:
    return str(told.get("location", "")).lower() if told else ""


def look(calls: Calls, wanted: Bucket, told: Any, number: str) -> Line:
    line = Line("bucket", wanted.name, wanted.location, told is not None)
    rules = [spelled(rule) for rule in wanted.rules]
    if told is None:
        body = {
            "name": wanted.name,
            "location": wanted.location,
            "storageClass": "STANDARD",
            "labels": wanted.labels,
            "versioning": {"enabled": True},
            "lifecycle": {"rule": rules},
            **_ACCESS,
            **_KEPT,
        }
        line.add(
            "make it: nothing public, access by IAM alone, versions on, what expires and what"
            " never does",
            lambda: _made(calls, body, number),
        )
        return line
    labels = dict(told.get("labels") or {})
    if labels.get(OWNER, wanted.labels[OWNER]) != wanted.labels[OWNER]:
        raise InvalidValue(
            f"the bucket {wanted.name} is labelled {OWNER}={labels[OWNER]}: it is something else's",
            hint="choose another bucket, or remove that label",
        )
    access = told.get("iamConfiguration") or {}
    uniform = (access.get("uniformBucketLevelAccess") or {}).get("enabled")
    there = (told.get("lifecycle") or {}).get("rule") or []
    missing = [rule for rule in rules if rule not in [_plain(each) for each in there]]
    soft_s = int((told.get("softDeletePolicy") or {}).get("retentionDurationSeconds") or 0)
    for words, right, change in (
        (
            "access by IAM alone, and nothing public",
            uniform and access.get("publicAccessPrevention") == "enforced",
            _ACCESS,
        ),
        (
            "versions on",
            (told.get("versioning") or {}).get("enabled"),
            {"versioning": {"enabled": True}},
        ),
        ("not kept a second time as soft-deleted", not soft_s, _KEPT),
        (
            "what expires and what never does",
            not missing,
            {"lifecycle": {"rule": [*there, *missing]}},
        ),
        (
            "labelled as ours",
            labels.get(OWNER) == wanted.labels[OWNER],
            {"labels": wanted.labels},
        ),
    ):
        if not right:
            line.add(words, _patching(calls, wanted.name, change))
    return line


def _made(calls: Calls, body: dict[str, Any], number: str) -> None:
    """Where there is one of this name by now, somebody was faster: us, or another."""
    query = {"project": calls.project}
    try:
        calls.send("storage", "POST", "/b", "storage.buckets.create", body, query)
    except Refused:
        if found(calls, body["name"], number) is None:
            raise


def _patching(calls: Calls, bucket: str, change: dict[str, Any]) -> Any:
    path = f"/b/{quote(bucket, safe='')}"
    return lambda: calls.send("storage", "PATCH", path, "storage.buckets.update", change)


def spelled(rule: Rule) -> dict[str, Any]:
    """A rule as Cloud Storage wants it."""
    when: dict[str, Any] = {}
    if rule.age_days:
        when["age"] = rule.age_days
    if rule.noncurrent_days:
        when["daysSinceNoncurrentTime"] = rule.noncurrent_days
    if rule.prefix:
        when["matchesPrefix"] = [rule.prefix]
    if rule.suffix:
        when["matchesSuffix"] = [rule.suffix]
    return {"action": {"type": rule.action}, "condition": when}


def _plain(told: Any) -> Any:
    """A rule as it is told, without what is empty."""
    return {
        part: {
            key: value for key, value in (told.get(part) or {}).items() if value not in (None, [])
        }
        for part in ("action", "condition")
    }
