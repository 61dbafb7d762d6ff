"""What machines far from the store pay for it, by the store's own prices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, WAY
from tradewind.api import moving
from tradewind.catalog import ratecard
from tradewind.model.run import Spec
from tradewind.model.usage import GB, Rates
from tradewind.planning import finish
from tradewind.providers import charges

STORE = "s3://runs/team"
SIZE = 100 * GB
JOB = replace(
    SPEC,
    checkpoint_bytes=SIZE,
    checkpoint_every_s=900,
    data="s3://runs/tokens",
    data_bytes=10 * SIZE,
)
NEAR = replace(WAY, rates=Rates(reads=400_000, gb_month=23_000))
FAR = replace(WAY, rates=Rates(gb_in=20_000, gb_out=90_000))


def test_where_traffic_is_free_nothing_is_added() -> None:
    assert moving.priced(JOB, NEAR, STORE) == NEAR
    assert moving.in_words(NEAR) == ""


def test_a_far_way_pays_for_what_it_reads_and_writes() -> None:
    way = moving.priced(JOB, FAR, STORE)
    assert (way.bring, way.bring_once, way.start_cost) == (9_000_000, 90_000_000, 0)
    assert way.save == 4 * 2_000_000
    assert way.start_s == FAR.start_s + SIZE / finish.FAR_RATE
    words = "$90.00 to bring the data, $9.00 a start, $8.00 an hour for checkpoints"
    assert moving.in_words(way) == words


def test_several_machines_share_a_checkpoint() -> None:
    way = moving.priced(JOB, replace(FAR, nodes=4), STORE)
    assert way.start_s == FAR.start_s + SIZE / 4 / finish.FAR_RATE
    assert way.bring == 9_000_000


def test_data_of_elsewhere_is_booked_as_planned() -> None:
    planned = replace(FAR, bring_once=7, bring=5, save=3)
    for data in ("s3://other/tokens", "gs://runs/tokens", "/mnt/tokens"):
        way = moving.priced(replace(JOB, data=data), planned, STORE)
        assert (way.bring_once, way.start_cost, way.bring) == (0, 7, 9_000_000)
    nobody = moving.priced(JOB, replace(planned, rates=None), STORE)
    assert (nobody.start_cost, nobody.bring, nobody.bring_once, nobody.save) == (12, 0, 0, 0)


def test_no_checkpoint_costs_nothing() -> None:
    bare: Spec = replace(JOB, checkpoint_bytes=0, data="")
    way = moving.priced(bare, FAR, STORE)
    assert (way.bring, way.bring_once, way.save, way.start_s) == (0, 0, 0, FAR.start_s)


@pytest.mark.parametrize(
    ("machines", "out", "back"),
    [
        (("aws", "us-east-1"), 0, 0),
        (("aws", "us-west-2"), 20_000, 20_000),
        (("lambda", "us-south-1"), 90_000, 0),
    ],
)
def test_by_the_catalog(machines: tuple[str, str], out: int, back: int) -> None:
    rates = charges.store(ratecard.card(), machines, ("aws", "us-east-1"), 0)
    way = moving.priced(JOB, replace(WAY, rates=rates), STORE)
    assert (way.bring, way.save) == (100 * out, 4 * 100 * back)
