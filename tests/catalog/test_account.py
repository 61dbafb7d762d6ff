from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.small import REAL, TODAY, facts, row
from tradewind.base.errors import BadFile
from tradewind.catalog import account
from tradewind.catalog.catalog import Catalog

ROWS = (
    row("aws", instance_type="p5", on_demand=55.04, spot=20, as_of="2026-11-01"),
    row("aws", instance_type="p5", region="eu-west-1", on_demand=60, as_of="2024-01-01"),
    row("gcp", instance_type="a3", on_demand=88),
)


def joined(text: str) -> Catalog:
    public = facts(*ROWS)
    providers = public.offers.columns["provider"].values
    read = account.read(text, "account.yaml", REAL.names, providers)
    return Catalog(public, read.applied(public.offers, TODAY), "test", read)


def prices(catalog: Catalog, **filters: Any) -> list[tuple[str, str, float]]:
    found = catalog.offers(**filters, today=TODAY)
    return [(o.instance_type, p.market, p.micros_hour / 1e6) for o, p in found.priced()]


def test_own_machines_compete_and_never_go_stale() -> None:
    catalog = joined(
        """
offers:
  - name: dgx-1
    provider: basement
    region: berlin
    accelerator: 8xH100-SXM
    on_demand: $9.80
    vcpus: 224
    memory: 2TB
    nvme: 30TB
    network: 400Gbps
  - {name: cpu-box, on_demand: 0}
"""
    )
    best = catalog.offers("h100", today=TODAY)[0]
    assert (best.provider, best.region, best.instance_type) == ("basement", "berlin", "dgx-1")
    assert (best.memory_gb, best.network_gbps, best.accelerator_memory_gb) == (2000, 400, 80)
    assert best.own
    assert best.on_demand is not None
    assert best.on_demand.source == "account.yaml line 3"
    assert prices(catalog, provider="own") == [("cpu-box", "on_demand", 0.0)]


def test_discounts_and_commitments() -> None:
    catalog = joined(
        """
discounts:
  - {match: {provider: Amazon, type: "p5*"}, off: 12.5%, why: EDP}
  - {match: {provider: gcp, accelerator: h100}, market: reserved, term: 1y, off: 37%}
  - {match: {provider: aws, region: us-*}, market: spot, price: $18.00}
  - {match: {provider: gcp}, off: 99%, until: 2026-11-14}
"""
    )
    assert prices(catalog, provider="aws", market="on_demand") == [("p5", "on_demand", 48.16)]
    assert prices(catalog, market="spot") == [("p5", "spot", 18.0)]
    assert prices(catalog, provider="gcp", market="reserved") == [("a3", "reserved", 55.44)]
    assert prices(catalog, provider="gcp") == [("a3", "on_demand", 88.0)]
    on_demand = catalog.table.offer(0).on_demand
    assert on_demand is not None
    assert on_demand.source == "account: EDP, 12.5% off $55.04 (test)"
    # A share of a stale price is as stale.
    assert catalog.offers(region="eu-west-1", today=TODAY).left_out == {"stale": 1}


def test_quotas_forbid() -> None:
    catalog = joined(
        """
quotas:
  - {match: {provider: aws}, market: spot, machines: 0}
  - {match: {provider: gcp, accelerator: h100}, accelerators: 4}
"""
    )
    assert prices(catalog) == [("p5", "on_demand", 55.04)]
    found = catalog.offers(provider="gcp", today=TODAY)
    assert found.left_out == {"quota": 1}
    assert found.doubtful[0][1] == "quota: account.yaml allows 4 accelerators at once"


def test_reservations_are_a_price_while_they_last() -> None:
    text = """
reservations:
  - {match: {provider: aws, region: us-east-1, type: p5}, machines: 2, price: $0, until: 2026-12-31}
  - {match: {provider: gcp, type: a3}, machines: 1, price: $1, from: 2027-01-01}
quotas:
  - {match: {provider: aws}, machines: 0}
"""
    assert prices(joined(text), market="reserved") == [("p5", "reserved", 0.0)]
    # What is held already competes with what is bought by the hour.
    assert prices(joined(text), provider="aws") == [("p5", "reserved", 0.0)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- 1", "line 1: file: expected fields"),
        ("ofers: []", "line 1: ofers: there is no such field; did you mean 'offers'?"),
        ("offers: {}", "line 1: offers: expected a list"),
        ("offers:\n  - on_demand: $1", r"line 2: offers\[1\]: an offer needs a name"),
        ("offers:\n  - name: x", r"line 2: offers\[1\]: an offer needs a price"),
        ("offers:\n  - {name: x, on_demand: cheap}", "on_demand: 'cheap' is not an amount"),
        ("offers:\n  - {name: x, on_demand: -1}", "'-1' is negative"),
        ("offers:\n  - {name: x, on_demand: 1, accelerator: h1000}", "no accelerator is called"),
        ("offers:\n  - {name: x, on_demand: 1, accelerator: h100}", "ambiguous"),
        ("offers:\n  - {name: x, on_demand: 1, memory: 64}", "'64' has no unit"),
        ("offers:\n  - {name: x, on_demand: 1, vcpus: lots}", "'lots' is not a number"),
        ("discounts:\n  - {match: {provider: aws}}", "one of off .*, price .* and sustained"),
        ("discounts:\n  - {match: {provider: gcp}, off: 12%, sustained: true}", "one of off"),
        ("discounts:\n  - {match: {provider: gcp}, sustained: 30%}", "'30%' is not true"),
        (
            "discounts:\n  - {match: {provider: gcp}, sustained: true, market: spot}",
            "a discount on demand, and this is spot",
        ),
        ("discounts:\n  - {match: {provider: aws}, off: 12}", "'12' is not a share like 12%"),
        ("discounts:\n  - {match: {provider: aws}, off: 120%}", "not a share"),
        ("discounts:\n  - {off: 12%}", "match is missing"),
        ("discounts:\n  - {match: {}, off: 12%}", "match is empty"),
        ("discounts:\n  - {match: {provider: aws}, off: 1%, market: reserved}", "needs a term"),
        ("discounts:\n  - {match: {provider: aws}, off: 1%, term: 1y}", "term is for market"),
        ("discounts:\n  - {match: {provider: awz}, off: 1%}", "'awz'; did you mean aws"),
        ("quotas:\n  - {match: {provider: nosuch}, machines: 0}", "no provider is called"),
        ("offers:\n  - {name: x, on_demand: 1}\n  - {name: x, on_demand: 2}", "another 'x'"),
        ('offers:\n  - {name: "\\e[31mx", on_demand: 1}', "cannot be printed"),
        (
            "reservations:\n  - {match: {provider: aws}, machines: 0, price: $0}",
            "a reservation of no machines",
        ),
        (
            "reservations:\n  - {match: {provider: aws}, machines: 1, price: $0,"
            " from: 2027-01-01, until: 2026-01-01}",
            "before it starts",
        ),
        ("discounts:\n  - {match: {provider: aws}, off: 1%, market: future}", "no market"),
        ("discounts:\n  - {match: {provider: aws}, off: 1%, until: soon}", "not a date"),
        ("quotas:\n  - {match: {provider: aws}}", "either machines or accelerators"),
        ("quotas:\n  - {match: {provider: aws}, machines: 1.5}", "not a whole number"),
        ("reservations:\n  - {match: {type: p5}}", "needs machines and a price"),
        ("offers: [", "not YAML"),
    ],
)
def test_bad_lines_are_refused_with_line_and_reason(text: str, complaint: str) -> None:
    with pytest.raises(BadFile, match=complaint) as caught:
        joined(text)
    assert caught.value.message.startswith("account.yaml line ")


def test_a_price_is_for_machines_of_one_size() -> None:
    public = facts(
        row("lambda", "A100-80GB", 1, on_demand=2),
        row("lambda", "A100-80GB", 8, on_demand=16, spot=8),
        row("lambda", "A100-80GB", 8, on_demand=16, retired=True, region="old"),
    )

    def applied(text: str) -> Catalog:
        read = account.read(text, "account.yaml", REAL.names, ["lambda"])
        return Catalog(public, read.applied(public.offers, TODAY), "test", read)

    with pytest.raises(BadFile, match=r"line 2: price is for a whole machine.* 1, 8 acc"):
        applied("discounts:\n  - {match: {accelerator: a100}, price: $1.10}")
    catalog = applied("discounts:\n  - {match: {accelerator: a100:8}, price: $12}")
    assert [p.micros_hour for _, p in catalog.offers(count=8, today=TODAY).priced()] == [8_000_000]
    on_demand = catalog.offers(count=8, market="on_demand", today=TODAY)
    # The retired one is not brought back, and the small one is not touched.
    assert [p.micros_hour for _, p in on_demand.priced()] == [12_000_000]
    spot = applied("discounts:\n  - {match: {type: lambda-1x*}, market: spot, price: $1}")
    assert len(spot.offers(count=1, market="spot", today=TODAY)) == 0  # not sold that way


def test_a_count_narrows_and_an_idle_line_is_named() -> None:
    catalog = joined("quotas:\n  - {match: {accelerator: h100:1}, machines: 0}\n")
    assert prices(catalog) == prices(joined(""))
    assert catalog.account is not None
    assert catalog.account.idle(catalog.table) == ["account.yaml line 2: match fits no offer"]


def test_all_complaints_come_at_once() -> None:
    text = "offers:\n  - {name: x}\n  - {name: y, on_demand: x}\nquotas:\n  - {machines: 3}\n"
    with pytest.raises(BadFile) as caught:
        joined(text)
    assert len(caught.value.message.splitlines()) == 3


def test_an_empty_file_changes_nothing() -> None:
    assert (
        prices(joined(""))
        == prices(joined("# nothing yet\n"))
        == [
            ("p5", "spot", 20.0),
            ("a3", "on_demand", 88.0),
        ]
    )
