"""Workloads and small catalogs as hypothesis draws them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from tests.catalog.small import NOW, row, small
from tradewind.base.units import Micros
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.observations import decode, encode, observed
from tradewind.catalog.table import Row
from tradewind.model import Data, Limits, Market, Observation, Train, Workload

GPT2 = Train(model="gpt2-xl", tokens=2_000_000_000, sequence=1024, global_batch=512)


def dollars(amount: float) -> Micros:
    return Micros(round(amount * 1e6))


MARKETS: list[tuple[Market, ...] | None] = [
    None, ("spot",), ("on_demand",), ("spot", "on_demand"),
]  # fmt: skip
chips = st.sampled_from(["H100-SXM", "A100-80GB", "A100-40GB", "L4", "T4", "RTX4090", "V100-16GB"])
prices = st.one_of(st.none(), st.integers(1, 4000).map(lambda cents: cents / 100))


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    rows = []
    for number in range(draw(st.integers(1, 5))):
        chip, count = draw(chips), draw(st.sampled_from([1, 2, 4, 8]))
        provider = draw(st.sampled_from(["aws", "gcp", "lambda", "azure", "vast", "nobody"]))
        rows.append(
            row(
                provider, chip, count, on_demand=draw(prices), spot=draw(prices),
                reserved_1y=draw(prices), reserved_3y=draw(prices),
                region=draw(st.sampled_from(["us-east-1", "eu-west-1"])),
                instance_type=f"type-{number}",
                as_of=draw(st.sampled_from(["2026-11-01", "2025-01-01"])),
                network_gbps=draw(st.sampled_from([None, 5, 100, 400])),
            )
        )  # fmt: skip
    made = small(*rows, judged=False)
    seen = decode(encode(draw(st.lists(observations(), max_size=4))), NOW)
    return Catalog(made.facts, made.table, "test", None, seen)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Of types that the catalog may have, on demand only: what was seen of spot changes what the
    policy expects of it, too."""
    at = NOW - timedelta(hours=draw(st.integers(0, 200)))
    return observed(
        Observation(
            provider=draw(st.sampled_from(["aws", "gcp", "lambda"])),
            region="us-east-1",
            zone="",
            instance_type=f"type-{draw(st.integers(0, 2))}",
            market="on_demand",
            available=draw(st.booleans()),
            seen_at=at,
            expires_at=at,
            source="test",
            machines=draw(st.integers(1, 4)),
        )
    )


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    limits = Limits(
        within_s=draw(st.one_of(st.none(), st.integers(3600, 2_000_000))),
        budget=draw(st.one_of(st.none(), st.integers(1, 5000).map(dollars))),
        markets=draw(st.sampled_from(MARKETS)),
        regions=draw(st.sampled_from([None, ("eu-*",)])),
        max_nodes=draw(st.sampled_from([1, 2, 4, 6])),
        commit=draw(st.sampled_from([None, None, "1y", "3y"])),
        assume_capacity=draw(st.sampled_from([None, None, ("100%",), ("5%", "aws=90%")])),
        confidence=draw(st.sampled_from([0.5, 0.8, 0.95])),
    )
    data = draw(
        st.sampled_from(
            [None, Data(uri="s3://b/x", size_bytes=10**11, provider="aws", region="us-east-1")]
        )
    )
    batch = draw(st.sampled_from([512, 480]))  # three, five or six machines can share the second
    train = replace(GPT2, tokens=draw(st.integers(10**8, 10**10)), global_batch=batch)
    return Workload(train=train, limits=limits, data=data)


REGIONS = ("us-east-1", "us-west-2", "eu-west-1", "eu-north-1")
PROVIDERS = ("aws", "gcp", "lambda", "vast", "nobody")


@st.composite
def offers(draw: st.DrawFn) -> list[Row]:
    """A few types, each sold in several places at prices of their own."""
    made: dict[tuple[str, ...], Row] = {}
    for number in range(draw(st.integers(1, 4))):
        provider, chip = draw(st.sampled_from(PROVIDERS)), draw(chips)
        count, network = (
            draw(st.sampled_from([1, 2, 4, 8])),
            draw(st.sampled_from([None, 100, 400])),
        )
        for _ in range(draw(st.integers(1, 4))):
            region, zone = draw(st.sampled_from(REGIONS)), draw(st.sampled_from(["", "a", "b"]))
            made[provider, region, zone, str(number)] = row(
                provider, chip, count, on_demand=draw(prices), spot=draw(prices), region=region,
                zone=zone, instance_type=f"type-{number}", network_gbps=network,
            )  # fmt: skip
    return list(made.values())
