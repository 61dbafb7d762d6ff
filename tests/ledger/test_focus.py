from __future__ import annotations

import json
import re
from decimal import Decimal

from hypothesis import given

from tests.ledger.making import HOUR_S, NOON_S, moment, postings_of, run_cost, run_costs
from tests.lifecycle.builders import SPOT, WAY
from tradewind.ledger import focus
from tradewind.ledger.postings import RunCost

# Of FOCUS 1.1: what may never be null, and what a value must be like. BillingAccountId, which may
# not be null either, is the provider's to know.
NEVER_NULL = """BilledCost BillingCurrency BillingPeriodEnd BillingPeriodStart ChargeCategory
    ChargePeriodEnd ChargePeriodStart ContractedCost EffectiveCost InvoiceIssuerName ListCost
    ProviderName PublisherName ServiceCategory ServiceName ServiceSubcategory PricingCategory
    PricingQuantity PricingUnit ConsumedQuantity ConsumedUnit ChargeFrequency Tags""".split()
NUMBERS = """BilledCost ConsumedQuantity ContractedCost ContractedUnitPrice EffectiveCost ListCost
    ListUnitPrice PricingQuantity CommitmentDiscountQuantity""".split()
MOMENTS = [name for name in focus.SPECIFIED if "Period" in name]
ALLOWED = {
    "ChargeCategory": {"Usage"},
    "ChargeClass": {""},
    "ChargeFrequency": {"Usage-Based"},
    "PricingCategory": {"Standard", "Dynamic", "Committed", "Other"},
    "ServiceCategory": {"Compute", "Networking", "Storage"},
    "BillingCurrency": {"USD"},
    "BillingAccountId": {""},
    "CapacityReservationId": {""},
    "CommitmentDiscountId": {""},
    "CommitmentDiscountStatus": {""},
}


def test_the_columns_are_the_specification_s() -> None:
    assert len(focus.SPECIFIED) == 50
    assert list(focus.SPECIFIED) == sorted(focus.SPECIFIED)
    assert all(name.startswith("x_") for name in focus.OURS)
    assert focus.COLUMNS == focus.SPECIFIED + focus.OURS
    # Those of 1.0 that are mandatory there.
    assert set(
        """BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd
        BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd
        ChargePeriodStart ContractedCost EffectiveCost InvoiceIssuerName ListCost PricingQuantity
        PricingUnit ProviderName PublisherName ServiceCategory ServiceName""".split()
    ) <= set(focus.SPECIFIED)


@given(run_costs())
def test_every_row_is_as_specified_and_sums_equal_the_ledger(made: list[RunCost]) -> None:
    rows = focus.rows(postings_of(*made))
    for row in rows:
        assert tuple(row) == focus.COLUMNS
        assert all(row[name] for name in NEVER_NULL)
        for name in NUMBERS:
            assert re.fullmatch(r"(\d+(\.\d+)?)?", row[name]), (name, row[name])
        for name in MOMENTS:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[name])
        for name, allowed in ALLOWED.items():
            assert row[name] in allowed
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"]
        assert row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
        assert all(isinstance(value, str) for value in json.loads(row["Tags"]).values())
    total = sum(run_cost.micros for run_cost in made)
    for name in ("BilledCost", "EffectiveCost", "ContractedCost"):
        assert sum(Decimal(row[name]) for row in rows) * 10**6 == total
    listed = sum(p.micros if p.on_demand is None else p.on_demand for p in postings_of(*made))
    assert sum(Decimal(row["ListCost"]) for row in rows) * 10**6 == listed


def test_a_row() -> None:
    run = run_cost(
        "r", moment("2026-11-03T10:00"), (SPOT, HOUR_S), project="nlp", user="ada", tags={"b": "2"}
    )
    (row,) = focus.rows(run.postings)
    assert {name: value for name, value in row.items() if value} == {
        "AvailabilityZone": "r1-a",
        "BilledCost": "1.2",
        "BillingCurrency": "USD",
        "BillingPeriodEnd": "2026-12-01T00:00:00Z",
        "BillingPeriodStart": "2026-11-01T00:00:00Z",
        "ChargeCategory": "Usage",
        "ChargeDescription": "small spot for leg 1 of r",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": "2026-11-03T11:00:00Z",
        "ChargePeriodStart": "2026-11-03T10:00:00Z",
        "ConsumedQuantity": "1",
        "ConsumedUnit": "Hours",
        "ContractedCost": "1.2",
        "ContractedUnitPrice": "1.2",
        "EffectiveCost": "1.2",
        "InvoiceIssuerName": "cloud",
        "ListCost": "3.6",
        "ListUnitPrice": "3.6",
        "PricingCategory": "Dynamic",
        "PricingQuantity": "1",
        "PricingUnit": "Hours",
        "ProviderName": "cloud",
        "PublisherName": "cloud",
        "RegionId": "r1",
        "RegionName": "r1",
        "ResourceId": "r-1-m0",
        "ResourceName": "r-1",
        "ResourceType": "Virtual Machine",
        "ServiceCategory": "Compute",
        "ServiceName": "Virtual Machines",
        "ServiceSubcategory": "Virtual Machines",
        "SkuId": "small",
        "SkuMeter": "Compute Usage",
        "SubAccountId": "nlp",
        "SubAccountName": "nlp",
        "Tags": '{"b":"2"}',
        "x_RunId": "r",
        "x_Leg": "1",
        "x_User": "ada",
        "x_Market": "spot",
        "x_Estimated": "false",
        "x_Open": "false",
    }


def test_what_is_open_and_what_has_no_price_on_demand() -> None:
    run = run_cost("r", NOON_S - HOUR_S, (SPOT, None), outcome="", ways=(SPOT,))
    (row,) = focus.rows(run.postings)
    assert row["x_Open"] == "true"
    assert row["ChargeDescription"].endswith(", so far")
    assert (row["ListCost"], row["ListUnitPrice"]) == ("1.2", "")


def test_days_are_rows() -> None:
    run = run_cost("r", moment("2026-10-31T22:00"), (WAY, 30 * HOUR_S))
    rows = focus.rows(run.postings)
    assert [row["BilledCost"] for row in rows] == ["7.2", "86.4", "14.4"]
    assert [row["BillingPeriodStart"][:7] for row in rows] == ["2026-10", "2026-11", "2026-11"]
