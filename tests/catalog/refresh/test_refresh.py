"""From the providers' answers to a new catalog, end to end."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.catalog.refresh import test_aws as aws
from tests.catalog.refresh import test_azure as azure
from tests.catalog.refresh import test_oci as oci
from tests.catalog.small import NOW, REAL, facts, row
from tests.local_http import LocalHttp
from tradewind.base.units import micros_from_usd
from tradewind.catalog.refresh import refresh
from tradewind.catalog.refresh.http import Http
from tradewind.catalog.refresh.known import known_types
from tradewind.catalog.table import Row

OLD = "2024-08-19"


def cpu(provider: str, name: str, **more: Any) -> Row:
    return row(provider, "", instance_type=name, on_demand=9, as_of=OLD, **more)


def renewed(server: LocalHttp, provider: str, *rows: Row) -> list[Row]:
    """The provider's rows after a refresh in which `server` stands for it."""
    result = refresh(
        facts(*rows),
        [provider],
        http=Http(retries=0),
        env={f"TRADEWIND_{provider.upper()}_URL": server.url},
        now=NOW,
    )
    (outcome,) = result.outcomes
    assert outcome.failed is None
    return list(result.facts.offers.rows())


def test_old_cpu_only_rows_of_azure_are_renewed(server: LocalHttp) -> None:
    azure.serve(
        server,
        azure.page(azure.row()),
        plain=azure.page(
            azure.row(0.192, armSkuName="Standard_D4s_v5"),
            azure.row(0.05, armSkuName="Standard_D4s_v5", spot=True),
        ),
    )
    old = cpu("azure", "Standard_D4s_v5", region="eastus", spot=1, vcpus=4, memory_gb=16)
    other = cpu("azure", "Standard_D8s_v5", region="eastus")
    rows = {r["instance_type"]: r for r in renewed(server, "azure", old, other)}
    new = rows["Standard_D4s_v5"]
    assert (new["on_demand"], new["on_demand_as_of"]) == (192_000, "2026-11-15")
    assert (new["spot"], new["spot_as_of"]) == (50_000, "2026-11-15")
    assert (new["vcpus"], new["memory_gb"]) == (4, 16)
    # What the list does not speak of stays: it is not a complete one.
    assert rows["Standard_D8s_v5"]["on_demand_as_of"] == OLD
    assert rows[azure.SIZE]["vcpus"] == REAL.instance_types("azure")[azure.SIZE].vcpus


def test_old_cpu_only_rows_of_oci_are_renewed_in_every_region(server: LocalHttp) -> None:
    server.on(oci.PATH, oci.products(oci.H100, oci.OCPU, oci.MEMORY))
    name = "VM.Standard.E4.Flex$_8_64"
    old = [cpu("oci", name, region=region, spot=1) for region in ("eu-zurich-1", "us-ashburn-1")]
    rows = [r for r in renewed(server, "oci", *old) if not r["accelerator"]]
    assert [(r["instance_type"], r["region"]) for r in rows] == [
        (name, "eu-zurich-1"),
        (name, "us-ashburn-1"),
    ]
    assert {(r["on_demand"], r["spot"], r["spot_as_of"]) for r in rows} == {
        (196_000, 98_000, "2026-11-15")
    }


def test_old_cpu_only_rows_of_aws_are_renewed(
    server: LocalHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    listed = [
        {"Instance Type": name, "vCPU": "2", "Memory": "8 GiB", "PricePerUnit": price}
        for name, price in (("m7i.large", "0.1008"), ("m5.large", "0.096"))
    ]
    aws._serve(server, us_east_1=aws._csv(*listed))
    (new,) = renewed(server, "aws", cpu("aws", "m7i.large", spot=1))
    assert (new["instance_type"], new["on_demand"]) == ("m7i.large", 100_800)
    assert (new["on_demand_as_of"], new["spot_as_of"]) == ("2026-11-15", OLD)


def test_what_is_known_of_a_cpu_only_type_is_what_its_offers_say() -> None:
    offers = [
        cpu("azure", "Standard_D4s_v5", vcpus=4, memory_gb=16),
        cpu("azure", "Standard_D4s_v5", region="westus", spot=micros_from_usd(1), vcpus=4),
        cpu("azure", "Standard_D8s_v5", retired=True),
        cpu("oci", "VM.Standard.E4.Flex$_8_64"),
    ]
    known = known_types(REAL.facts.instances, [*offers, row("azure", instance_type="new")])
    kind = known["azure"]["Standard_D4s_v5"]
    assert (kind.vcpus, kind.memory_gb, kind.accelerator, kind.accelerator_count) == (4, 16, "", 0)
    assert (kind.spot_possible, kind.status) == (True, "current")
    assert not known["oci"]["VM.Standard.E4.Flex$_8_64"].spot_possible
    assert "Standard_D8s_v5" not in known["azure"]
    assert "new" not in known["azure"]  # with accelerators, only what is described
    assert known["azure"][azure.SIZE] is REAL.instance_types("azure")[azure.SIZE]


def test_every_cpu_only_offer_of_the_catalog_has_a_known_type() -> None:
    rows = list(REAL.facts.offers.rows())
    known = known_types(REAL.facts.instances, rows)
    plain = [r for r in rows if not r["accelerator"]]
    assert len(plain) > 1000
    assert all(r["instance_type"] in known[r["provider"]] for r in plain)
