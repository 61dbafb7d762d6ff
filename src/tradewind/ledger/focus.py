"""The ledger as a table of the FinOps Open Cost and Usage Specification (FOCUS), version 1.1.

Every column of the specification's is there, in its order, which is the alphabet's; then columns of
our own, which it wants to begin with `x_`. One row is one posting's share of one day. Nulls are
empty: what the provider alone knows (its account, its price's id) is not made up. Numbers are exact
decimals, moments ISO 8601 in UTC, tags a JSON object.

- `BilledCost`, `EffectiveCost` and `ContractedCost` are what the ledger has: the price that the
  machine was bought at. They sum up to the ledger's total.
- `ListCost` is what the same time on demand would have cost; where the run knew no price on demand,
  the cost itself, and then `ListUnitPrice` is null.
- What is taken off for sustained use is a row of its own, a `Credit`, beside its machine's.
- A project is a sub-account. Spot is `Dynamic`, on demand `Standard`, reserved `Committed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import json

from tradewind.base.units import MICROS_PER_DOLLAR
from tradewind.ledger.periods import by_day, month_start, next_month
from tradewind.ledger.postings import MACHINE, SUSTAINED, Posting
from tradewind.model.usage import Line

VERSION = "1.1"
SPECIFIED = tuple(
    "AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingCurrency"
    " BillingPeriodEnd BillingPeriodStart CapacityReservationId CapacityReservationStatus"
    " ChargeCategory ChargeClass ChargeDescription ChargeFrequency ChargePeriodEnd"
    " ChargePeriodStart CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName"
    " CommitmentDiscountQuantity CommitmentDiscountStatus CommitmentDiscountType"
    " CommitmentDiscountUnit ConsumedQuantity ConsumedUnit ContractedCost ContractedUnitPrice"
    " EffectiveCost InvoiceIssuerName ListCost ListUnitPrice PricingCategory PricingQuantity"
    " PricingUnit ProviderName PublisherName RegionId RegionName ResourceId ResourceName"
    " ResourceType ServiceCategory ServiceName ServiceSubcategory SkuId SkuMeter SkuPriceDetails"
    " SkuPriceId SubAccountId SubAccountName Tags".split()
)
OURS = ("x_RunId", "x_Leg", "x_User", "x_Market", "x_Estimated", "x_Open")
COLUMNS = SPECIFIED + OURS
_PRICING = {"on_demand": "Standard", "spot": "Dynamic", "reserved": "Committed"}


def rows(postings: Iterable[Posting]) -> list[dict[str, str]]:
    """By the start of what is charged. Every row has every column; null is empty."""
    found = [_row(part) for posting in postings for part in by_day(posting)]
    found.sort(
        key=lambda row: (row["ChargePeriodStart"], row["x_RunId"], row["x_Leg"], row["ResourceId"])
    )
    return found


def _row(part: Posting) -> dict[str, str]:
    known = _money(part) | _when(part) | _what(part) | _whose(part)
    return {name: known.get(name, "") for name in COLUMNS}


def _money(part: Posting) -> dict[str, str]:
    cost = _dollars(part.micros)
    listed = part.on_demand_price if part.on_demand is not None else None
    if part.kind == MACHINE:
        used, paid, unit = _hours(part.seconds or 0), _hours(part.paid_s), "Hours"
        price = _dollars(part.price)
    elif part.kind == SUSTAINED:
        return _costs(part)
    elif part.line is not None:
        used = paid = _plain(Decimal(part.line.amount) / part.line.each, 12)
        unit, price = part.line.unit, _unit_price(part.line)
        return _costs(part) | {
            "ContractedUnitPrice": price,
            "ListUnitPrice": price,
            "ConsumedQuantity": used,
            "ConsumedUnit": unit,
            "PricingQuantity": paid,
            "PricingUnit": unit,
            "PricingCategory": "Standard",
        }
    else:
        used, paid, unit, price = "1", "1", "Transfers", cost
        listed = part.on_demand
    return _costs(part) | {
        "ContractedUnitPrice": price,
        "ListUnitPrice": "" if listed is None else _dollars(listed),
        "ConsumedQuantity": used,
        "ConsumedUnit": unit,
        "PricingQuantity": paid,
        "PricingUnit": unit,
        "PricingCategory": _PRICING.get(part.market, "Other"),
    }


def _costs(part: Posting) -> dict[str, str]:
    cost = _dollars(part.micros)
    return {
        "BilledCost": cost,
        "EffectiveCost": cost,
        "ContractedCost": cost,
        "ListCost": cost if part.on_demand is None else _dollars(part.on_demand),
        "BillingCurrency": "USD",
    }


def _when(part: Posting) -> dict[str, str]:
    end = part.from_s if part.to_s is None else part.to_s
    return {
        "BillingPeriodStart": _moment(month_start(part.from_s)),
        "BillingPeriodEnd": _moment(next_month(part.from_s)),
        "ChargePeriodStart": _moment(part.from_s),
        "ChargePeriodEnd": _moment(max(end, part.from_s + 1)),  # it is exclusive
        "ChargeCategory": "Credit" if part.kind == SUSTAINED else "Usage",
        "ChargeFrequency": "Usage-Based",
    }


def _what(part: Posting) -> dict[str, str]:
    market = part.market.replace("_", "-")
    if part.kind in (MACHINE, SUSTAINED):
        told = f"{part.instance_type} {market} for leg {part.leg} of {part.run_id}"
        if part.kind == SUSTAINED:
            told = f"sustained use of {told}"
        more = {
            "ChargeDescription": told + (", so far" if part.open else ""),
            "ResourceId": part.machine_id,
            "ResourceName": f"{part.run_id}-{part.leg}",
            "ResourceType": "Virtual Machine",
            "ServiceCategory": "Compute",
            "ServiceSubcategory": "Virtual Machines",
            "ServiceName": "Virtual Machines",
            "SkuId": part.instance_type,
            "SkuMeter": "Compute Usage",
        }
    elif part.line is not None:
        moved = part.line.moved
        told = f"{part.line.what} for leg {part.leg} of {part.run_id}"
        more = {
            "ChargeDescription": told,
            "ResourceId": part.machine_id,
            "ServiceCategory": "Networking" if moved else "Storage",
            "ServiceSubcategory": "Other (Networking)" if moved else "Object Storage",
            "ServiceName": "Data Transfer" if moved else "Object Storage",
            "SkuMeter": "Data Transfer" if moved else part.line.unit,
        }
    else:
        more = {
            "ChargeDescription": f"data and checkpoint moved to leg {part.leg} of {part.run_id}",
            "ServiceCategory": "Networking",
            "ServiceSubcategory": "Other (Networking)",
            "ServiceName": "Data Transfer",
            "SkuMeter": "Data Transfer",
        }
    return more | {
        "AvailabilityZone": part.zone,
        "RegionId": part.region,
        "RegionName": part.region,
        "ProviderName": part.provider,
        "PublisherName": part.provider,
        "InvoiceIssuerName": part.provider,
    }


def _whose(part: Posting) -> dict[str, str]:
    return {
        "SubAccountId": part.project,
        "SubAccountName": part.project,
        "Tags": json.encode(dict(sorted(part.tags.items()))).decode(),
        "x_RunId": part.run_id,
        "x_Leg": str(part.leg),
        "x_User": part.user,
        "x_Market": part.market,
        "x_Estimated": str(part.estimated).lower(),
        "x_Open": str(part.open).lower(),
    }


def _dollars(micros: int) -> str:
    return f"{Decimal(micros) / MICROS_PER_DOLLAR:f}"


def _hours(seconds: int) -> str:
    return _plain(Decimal(seconds) / 3600, 9)


def _plain(number: Decimal, digits: int) -> str:
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unit_price(line: Line) -> str:
    return _plain(Decimal(line.price) / line.per / MICROS_PER_DOLLAR, 12)


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
