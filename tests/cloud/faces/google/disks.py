"""Disks that instances start from: which kind goes with which type, and what more they cost than
their size.

By Google's documentation ("About Hyperdisk Balanced", "Machine series support"). Known lies: what
Hyperdisk gets for whom says nothing is twice what is in its price, and not by its size; of the
kinds that a series takes only the one that it must have, or may not have, is known.
"""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.google.problems import Problem

BALANCED = "hyperdisk-balanced"
_ONLY_HYPERDISK = ("a3-ultragpu-", "a4-", "a4x-", "g4-", "c4-", "c4a-", "c4d-", "n4-", "h4d-")
_NO_HYPERDISK = ("a2-", "n1-", "e2-", "g2-")
_IN_IOPS, _IN_MIBS = 3000, 140
_IOPS_USD, _MIBS_USD = 0.005, 0.04
"""A month, for each above."""


def kind(wished: dict[str, Any], machine_type: str) -> str:
    """Raises where the type does not take it."""
    sort = str(wished.get("diskType", "")).rpartition("/")[2] or "pd-standard"
    hyper = sort.startswith("hyperdisk-")
    only, never = machine_type.startswith(_ONLY_HYPERDISK), machine_type.startswith(_NO_HYPERDISK)
    if (only and not hyper) or (never and hyper):
        raise Problem(400, f"[{machine_type}, {sort}] features are not compatible for creating")
    speeds = ("provisionedIops", "provisionedThroughput")
    if not hyper and any(name in wished for name in speeds):
        raise Problem(400, f"Provisioned performance is not supported by disk type {sort}.")
    return sort


def more_usd_month(wished: dict[str, Any], sort: str) -> float:
    if sort != BALANCED:
        return 0.0
    iops = int(wished.get("provisionedIops") or 2 * _IN_IOPS)
    mibs = int(wished.get("provisionedThroughput") or 2 * _IN_MIBS)
    if iops < _IN_IOPS or mibs < _IN_MIBS:
        raise Problem(400, f"Hyperdisk Balanced has {_IN_IOPS} IOPS and {_IN_MIBS} MiB/s at least.")
    return (iops - _IN_IOPS) * _IOPS_USD + (mibs - _IN_MIBS) * _MIBS_USD
