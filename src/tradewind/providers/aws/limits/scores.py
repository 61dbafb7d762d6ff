"""Spot placement scores: how likely EC2 thinks it is that a request can be met, 1 to 10.

Information only. A score is for this moment and promises nothing, and of a single type it is low
more often than not; but it tells the zones of one type apart. EC2 answers few different questions
in a day, so answers are kept for an hour, and no answer is no trouble.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from tradewind.base.errors import TradewindError
from tradewind.providers import remembered
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.troubles import explained

_MOST_REGIONS = 10
"""Of one question: EC2's own limit."""


def scores(
    account: Account, instance_type: str, nodes: int, regions: Collection[str]
) -> dict[str, int]:
    """By zone id; a zone of which nothing is known is not there."""
    wanted = sorted(set(regions))
    found: dict[str, int] = {}
    for start in range(0, len(wanted), _MOST_REGIONS):
        some = wanted[start : start + _MOST_REGIONS]
        try:
            found |= remembered.one(
                account,
                ("scores", instance_type, str(nodes), *some),
                partial(_asked, account, instance_type, nodes, some),
            )
        except TradewindError:
            continue
    return found


def _asked(account: Account, instance_type: str, nodes: int, regions: list[str]) -> dict[str, int]:
    with explained(f"asking AWS for spot placement scores of {instance_type}"):
        pages = (
            account.client("ec2", regions[0])
            .get_paginator("get_spot_placement_scores")
            .paginate(
                InstanceTypes=[instance_type],
                TargetCapacity=nodes,
                TargetCapacityUnitType="units",
                SingleAvailabilityZone=True,
                RegionNames=regions,
            )
        )
        return {
            it["AvailabilityZoneId"]: it["Score"]
            for page in pages
            for it in page["SpotPlacementScores"]
            if it.get("AvailabilityZoneId") and it.get("Score")
        }
