"""What S3 and addresses cost, and how a machine is charged for its own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import a_machine
from tests.providers.aws.machines import way
from tradewind.catalog import ratecard
from tradewind.model.bill import charged
from tradewind.model.usage import GB, Rates, Usage, cost
from tradewind.providers import charges

CARD = ratecard.card()
ADDRESS_HOUR = 5_000


def rates(machines: str, bucket: str) -> Rates:
    return charges.store(CARD, ("aws", machines), ("aws", bucket), kept_s=86_400)


def test_in_one_region_only_requests_and_storage_cost() -> None:
    here = rates("us-east-1", "us-east-1")
    assert (here.gb_in, here.gb_out) == (0, 0)
    assert cost(Usage(writes=1000, reads=1000, bytes_in=9 * GB, bytes_out=9 * GB), here) == 5_400
    assert here.gb_month == 23_000


@pytest.mark.parametrize(
    ("machines", "bucket", "gb_in", "gb_out"),
    [
        ("us-east-2", "us-east-1", 10_000, 10_000),
        ("us-west-2", "us-east-1", 20_000, 20_000),
        ("eu-central-1", "us-east-1", 20_000, 20_000),
        ("ap-southeast-2", "us-east-1", 147_000, 20_000),
    ],
)
def test_between_regions_the_one_that_is_left_has_the_price(
    machines: str, bucket: str, gb_in: int, gb_out: int
) -> None:
    found = rates(machines, bucket)
    assert (found.gb_in, found.gb_out) == (gb_in, gb_out)


def test_a_large_checkpoint_to_another_region_is_real_money() -> None:
    assert cost(Usage(bytes_in=100 * GB), rates("us-west-2", "us-east-1")) == 2_000_000


def test_the_bucket_s_region_has_the_prices_and_the_dearest_is_assumed() -> None:
    assert rates("us-east-1", "eu-central-1").writes == 5_400_000
    assert rates("us-east-1", "mx-central-1").writes == 5_400_000
    assert rates("us-east-1", "mx-central-1").gb_month == 24_500


def test_what_leaves_the_cloud_has_a_price_of_its_own() -> None:
    for region, gb_out in (("us-west-2", 90_000), ("eu-south-2", 90_000), ("sa-east-1", 154_000)):
        assert charges.outside(CARD, ("aws", region), 0).gb_out == gb_out


@pytest.mark.parametrize(
    ("region", "an_hour"),
    [("us-east-1", 11_111), ("eu-central-1", 13_222), ("mx-central-1", 21_111)],
)
def test_a_disk_costs_as_its_region_has_it_or_as_the_dearest(region: str, an_hour: int) -> None:
    assert charges.disk_hour(CARD, ("aws", region), 100) == an_hour


def test_an_address_costs_the_same_everywhere() -> None:
    for region in ("us-east-1", "ap-southeast-2", "mx-central-1"):
        assert charges.address_hour(CARD, ("aws", region)) == ADDRESS_HOUR


def test_what_is_assumed_is_said() -> None:
    assert charges.assumptions(CARD, [("aws", "us-east-2")], ("aws", "us-east-1")) == []
    said = charges.assumptions(CARD, [("aws", "ap-southeast-2")], ("aws", "us-west-2"))
    assert len(said) == 4
    assert any("a bucket at aws in us-west-2" in words for words in said)
    assert any("another region at aws in ap-southeast-2" in words for words in said)


def test_an_address_is_charged_by_the_second_beside_the_machine() -> None:
    plain = way(price=1_000_000)
    with_both = replace(
        plain, price=1_000_000 + 16_667 + ADDRESS_HOUR, disk_price=16_667,
        address_price=ADDRESS_HOUR,
    )  # fmt: skip
    for seconds in (1, 59, 61, 3599, 7200):
        paid = max(seconds, 60)
        beside = -(-16_667 * paid // 3600) - (-ADDRESS_HOUR * paid // 3600)
        for machine in (a_machine(), a_machine(prices=((0, 1_000_000),))):
            assert charged(with_both, machine, seconds) == charged(plain, machine, seconds) + beside
