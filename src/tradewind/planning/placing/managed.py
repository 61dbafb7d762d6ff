"""What a managed service takes on top of the machine it runs on, as far as that is published."""

from __future__ import annotations

import re
from functools import cache
from statistics import median
from typing import NamedTuple

from tradewind.economics import facts


class Surcharge(NamedTuple):
    ratio: float  # of the machine's price
    service: str
    source: str
    doubt: str  # where this very type's is not known


class _Known(NamedTuple):
    instance_type: str
    ratio: float
    service: str
    source: str


def providers() -> frozenset[str]:
    return frozenset(_known())


def surcharge(provider: str, instance_type: str) -> Surcharge | None:
    """The type's own, else that of its family, else the middle one of the provider's."""
    known = _known().get(provider)
    if not known:
        return None
    for one in known:
        if one.instance_type == instance_type:
            return Surcharge(one.ratio, one.service, one.source, "")
    kin = [one for one in known if _family(one.instance_type) == _family(instance_type)] or known
    middle = median(one.ratio for one in kin)
    whose = " and ".join(sorted({one.instance_type for one in kin})[:2]) or "all types"
    return Surcharge(
        middle, kin[0].service, kin[0].source, f"of {instance_type} unknown, taken as of {whose}"
    )


@cache
def _known() -> dict[str, list[_Known]]:
    table = facts.table("managed")
    found: dict[str, list[_Known]] = {}
    for row in table.where(category="surcharge"):
        ratio = row.number("value")
        if ratio is not None:
            # "ml.g5.xlarge / g5.xlarge" is the service's name of a type and the machine's own.
            name = row["item"].rpartition("/")[2].split()[0]
            service = row["service"].partition(" / ")[0].removesuffix(" custom training")
            known = _Known(name, ratio, service, row.provenance)
            found.setdefault(row["provider"], []).append(known)
    for row in table.where(category="fee", item="surcharge over VM price"):
        share = row.number("value")
        if share is not None:
            known = _Known("", 1 + share, row["service"], row.provenance)
            found.setdefault(row["provider"], []).append(known)
    return found


def _family(instance_type: str) -> str:
    return re.split(r"[.-]", instance_type)[0]
