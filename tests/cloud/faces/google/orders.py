"""What an instance may be: everything that Compute Engine refuses at once, before an operation is
begun. The words are its own where they are known.

Known lies: many more combinations are refused by the real one (types by CPU platform, disks by
type); machine types with GPUs are not held to the images that can drive them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tests.cloud.faces.google import places
from tests.cloud.faces.google.problems import Problem, unknown

NAME = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_LABEL_KEY, _LABEL = r"[a-z][a-z0-9_-]{0,62}", r"[a-z0-9_-]{0,63}"
_VALUE_MOST, _METADATA_MOST = 256 * 1024, 512 * 1024
_WEEK_S = 7 * 24 * 3600


@dataclass(frozen=True)
class Order:
    """One machine as asked for: `told` is an instance's, or the properties of many."""

    told: dict[str, Any]
    kind: str
    market: str
    """on-demand, spot or flex-start."""
    limit_s: float | None
    deletes: bool
    """What ends it by itself deletes it."""
    waits_s: float
    """How long it may wait, for flex-start."""
    disk_gb: int
    public: bool
    script: bytes


def bad(field: str, value: Any, words: str) -> Problem:
    return Problem(400, f"Invalid value for field '{field}': '{value}'. {words}")


def name(value: str, field: str = "resource.name") -> None:
    if not re.fullmatch(NAME, value):
        raise bad(field, value, f"Must be a match of regex '{NAME}'")


def read(told: dict[str, Any], zone: str, at: str, offered: Any) -> Order:
    """`at`: what fields begin with in messages; `offered(zone, type)`."""
    single = at == "resource"
    machine_type = _short(told.get("machineType", ""), single, f"{at}.machineType", "machineTypes")
    if machine_type not in places.KINDS or not offered(zone, machine_type):
        words = f"Machine type with name '{machine_type}' does not exist in zone '{zone}'."
        raise bad(f"{at}.machineType", told.get("machineType", ""), words)
    accelerators = _accelerators(told, machine_type, zone, single, at, offered)
    _labels(told.get("labels", {}), f"{at}.labels")
    script = _metadata(told.get("metadata", {}), f"{at}.metadata")
    scheduling = told.get("scheduling", {})
    kind = places.kind_of(machine_type, accelerators)
    market, limit_s = _scheduling(scheduling, kind, told, f"{at}.scheduling")
    waits = told.get("params", {}).get("requestValidForDuration", {})
    return Order(
        told,
        kind,
        market,
        limit_s,
        scheduling.get("instanceTerminationAction", "STOP") == "DELETE",
        float(waits.get("seconds", 0)),
        _disks(told, single, at),
        any(each.get("accessConfigs") for each in told.get("networkInterfaces", [])),
        script,
    )


def _short(value: str, single: bool, field: str, collection: str) -> str:
    """The last part: of an address for one instance; properties of many have the name alone."""
    if single:
        if f"{collection}/" not in value:
            words = "The URL is malformed. Must be a valid URL path or a valid full URL."
            raise bad(field, value, words)
        return value.rpartition("/")[2]
    if "/" in value:
        raise bad(field, value, "Must be the name alone.")
    return value


def _accelerators(
    told: dict[str, Any], machine_type: str, zone: str, single: bool, at: str, offered: Any
) -> list[tuple[str, int]]:
    found = []
    for number, each in enumerate(told.get("guestAccelerators", [])):
        field = f"{at}.guestAccelerators[{number}].acceleratorType"
        gpu = _short(each.get("acceleratorType", ""), single, field, "acceleratorTypes")
        if gpu not in places.GPUS or not offered(zone, gpu):
            raise unknown(f"zones/{zone}/acceleratorTypes/{gpu}")
        own = places.KINDS[machine_type]
        count = int(each.get("acceleratorCount", 0))
        if own.gpus:
            if (gpu, count) != (own.gpu, own.gpus):
                raise Problem(400, f"[{machine_type}, {gpu}] features are not compatible")
        elif not machine_type.startswith("n1-") or gpu not in places.ATTACHED:
            raise Problem(
                400, f"[{machine_type.partition('-')[0]}, {gpu}] features are not compatible"
            )
        elif count not in (1, 2, 4, 8) or count > places.GPUS[gpu].most:
            raise bad(f"{field[:-4]}Count", count, "The number of accelerators is not supported.")
        found.append((gpu, count))
    return found


def _labels(labels: dict[str, str], field: str) -> None:
    if len(labels) > 64:
        raise bad(field, "", "At most 64 labels are allowed.")
    for key, value in labels.items():
        if not re.fullmatch(_LABEL_KEY, key):
            raise bad(f"{field}", key, "Label key must match [a-z][a-z0-9_-]{0,62}.")
        if not re.fullmatch(_LABEL, value):
            raise bad(f"{field}.{key}", value, "Label value must match [a-z0-9_-]{0,63}.")


def _metadata(metadata: dict[str, Any], field: str) -> bytes:
    items = metadata.get("items", [])
    keys = [each.get("key", "") for each in items]
    if len(set(keys)) != len(keys):
        raise bad(field, "", "Duplicate metadata keys.")
    whole = 0
    for each in items:
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", each.get("key", "")):
            raise bad(f"{field}.items.key", each.get("key", ""), "Must match [a-zA-Z0-9-_]{1,128}.")
        size = len(str(each.get("value", "")).encode())
        whole += size + len(each["key"])
        if size > _VALUE_MOST:
            raise Problem(413, f"Value for metadata key '{each['key']}' is too large: {size} bytes")
    if whole > _METADATA_MOST:
        raise Problem(413, f"The metadata is too large: {whole} bytes; at most {_METADATA_MOST}")
    return next(
        (str(e.get("value", "")).encode() for e in items if e["key"] == "startup-script"), b""
    )


def _scheduling(
    told: dict[str, Any], kind: str, whole: dict[str, Any], field: str
) -> tuple[str, float | None]:
    model = told.get("provisioningModel", "SPOT" if told.get("preemptible") else "STANDARD")
    gpus = places.size(kind)[1]
    action = told.get("instanceTerminationAction")
    duration = told.get("maxRunDuration")
    limit_s = float(duration.get("seconds", 0)) if duration else None
    if limit_s is not None and not 30 <= limit_s <= 120 * 24 * 3600:
        words = "Max run duration must be between 30 seconds and 120 days."
        raise bad(f"{field}.maxRunDuration", int(limit_s), words)
    if limit_s is not None and not action:
        raise bad(field, "", "You must specify an instance termination action with a time limit.")
    if action and model == "STANDARD" and limit_s is None:
        words = "An instance termination action needs a SPOT provisioning model or a time limit."
        raise bad(f"{field}.instanceTerminationAction", action, words)
    if model in ("SPOT", "FLEX_START") and told.get("automaticRestart"):
        raise bad(
            field, "", "Scheduling must have preemptible be false when AutomaticRestart is true."
        )
    maintenance = told.get("onHostMaintenance", "TERMINATE" if model == "SPOT" else "MIGRATE")
    if model in ("SPOT", "FLEX_START") and maintenance == "MIGRATE":
        raise bad(f"{field}.onHostMaintenance", maintenance, f"A {model} VM must be TERMINATE.")
    if gpus and maintenance == "MIGRATE":
        raise Problem(400, "Instances with guest accelerators do not support live migration.")
    if model == "FLEX_START":
        if limit_s is None or limit_s > _WEEK_S or limit_s < 600:
            words = "A flex-start VM needs a max run duration of 10 minutes to 7 days."
            raise bad(f"{field}.maxRunDuration", limit_s, words)
        if action != "DELETE":
            raise bad(
                f"{field}.instanceTerminationAction", action, "Flex-start VMs must be DELETE."
            )
        affinity = whole.get("reservationAffinity", {}).get("consumeReservationType")
        if affinity != "NO_RESERVATION":
            words = "Flex-start VMs must have NO_RESERVATION."
            raise bad("resource.reservationAffinity.consumeReservationType", affinity, words)
        return "flex-start", limit_s
    return ("spot" if model == "SPOT" else "on-demand"), limit_s


def _disks(told: dict[str, Any], single: bool, at: str) -> int:
    """Their gigabytes."""
    disks = told.get("disks", [])
    if not any(each.get("boot") for each in disks):
        raise bad(f"{at}.disks", "", "At least one boot disk is required.")
    whole = 0
    for number, each in enumerate(disks):
        wished = each.get("initializeParams", {})
        sort = wished.get("diskType", "")
        if sort:
            field = f"{at}.disks[{number}].initializeParams.diskType"
            _short(sort, single, field, "diskTypes")
        if each.get("type") == "SCRATCH":
            continue
        whole += int(wished.get("diskSizeGb") or each.get("diskSizeGb") or 10)
    return whole
