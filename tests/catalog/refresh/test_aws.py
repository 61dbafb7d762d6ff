"""AWS: the price list as CSV over HTTP, and EC2's XML to a real boto3."""

from __future__ import annotations

import csv
import io
import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from tests.catalog.refresh.asking import ask
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.aws import SOURCE

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from tradewind.catalog.refresh.base import Listing

_BASE = "/offers/v1.0/aws/AmazonEC2/current"
_INDEX = f"{_BASE}/region_index.json"
_KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}

# Names and order as in the file of 2025-09, without the columns that nothing here looks at.
_HEADER = [
    "SKU", "OfferTermCode", "RateCode", "TermType", "PriceDescription", "EffectiveDate",
    "StartingRange", "EndingRange", "Unit", "PricePerUnit", "Currency", "RelatedTo",
    "LeaseContractLength", "PurchaseOption", "OfferingClass", "Product Family", "serviceCode",
    "Location", "Location Type", "Instance Type", "Current Generation", "Instance Family", "vCPU",
    "Physical Processor", "Clock Speed", "Memory", "Storage", "Network Performance",
    "Processor Architecture", "Tenancy", "Operating System", "License Model", "usageType",
    "operation", "AvailabilityZone", "CapacityStatus", "GPU", "GPU Memory", "MarketOption",
    "Normalization Size Factor", "Pre Installed S/W", "Region Code", "serviceName",
]  # fmt: skip
_PLAIN = {
    "SKU": "2223B6PCG6QAUYY6", "TermType": "OnDemand", "Unit": "Hrs", "Currency": "USD",
    "Location Type": "AWS Region", "Tenancy": "Shared", "Operating System": "Linux",
    "License Model": "No License required", "operation": "RunInstances", "CapacityStatus": "Used",
    "MarketOption": "OnDemand", "Pre Installed S/W": "NA", "Region Code": "us-east-1",
    "PriceDescription": "per On Demand Linux, in quotes and \"commas\"",
}  # fmt: skip
_P4D = {"Instance Type": "p4d.24xlarge", "vCPU": "96", "Memory": "1,152 GiB", "GPU": "8"}
_P4D_PRICE = _P4D | {"PricePerUnit": "21.9576420000"}


def _reserved(price: str, **other: str) -> dict[str, str]:
    return _P4D | {
        "TermType": "Reserved",
        "PricePerUnit": price,
        "LeaseContractLength": "1yr",
        "PurchaseOption": "No Upfront",
        "OfferingClass": "standard",
        **other,
    }


def _csv(*rows: dict[str, str], header: list[str] = _HEADER, region: str = "us-east-1") -> str:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["FormatVersion", "v1.0"])
    writer.writerow(["Disclaimer", "This pricing list is for informational purposes only."])
    writer.writerow(["Publication Date", "2026-11-14T22:53:08Z"])
    writer.writerow(["Version", "20261114225308"])
    writer.writerow(["OfferCode", "AmazonEC2"])
    writer.writerow(header)
    for row in rows:
        cells = _PLAIN | {"Region Code": region} | row
        writer.writerow([cells.get(column, "") for column in header])
    return out.getvalue()


def _serve(server: LocalHttp, **lists: Any) -> None:
    """`us_east_1=` the answer to that region's price list."""
    codes = [name.replace("_", "-") for name in lists]
    server.on(
        _INDEX,
        {
            "formatVersion": "v1.0",
            "regions": {
                code: {"regionCode": code, "currentVersionUrl": f"{_BASE}/{code}/index.json"}
                for code in codes
            },
        },
    )
    for code, answer in zip(codes, lists.values(), strict=True):
        answers = answer if isinstance(answer, list) else [answer]
        server.on(f"{_BASE}/{code}/index.csv", *answers)


@pytest.fixture(autouse=True)
def _nobodys_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No keys from the machine that runs the tests, and no asking it for a role."""
    for name in (*_KEYS, "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL_EC2"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


def _prices(listings: list[Listing]) -> dict[tuple[str, str], tuple[int | None, ...]]:
    return {
        (it.region, it.instance_type): (it.on_demand, it.reserved_1y, it.reserved_3y)
        for it in listings
    }


# -- list prices ---------------------------------------------------------------------------------


def test_list_and_reserved_prices_of_every_region(server: LocalHttp) -> None:
    _serve(
        server,
        us_east_1=_csv(
            _reserved("14.0000000000"),
            _P4D_PRICE,
            _reserved("9.5000000000", LeaseContractLength="3 yr", PurchaseOption="NoUpfront"),
            {
                "Instance Type": "m7i.large",
                "vCPU": "2",
                "Memory": "8 GiB",
                "PricePerUnit": "0.1008",
            },
        ),
        us_gov_west_1=_csv(_P4D | {"PricePerUnit": "24.5"}, region="us-gov-west-1"),
    )
    listings, skipped = ask(SOURCE, server)
    assert _prices(listings) == {
        ("us-east-1", "p4d.24xlarge"): (21_957_642, 14_000_000, 9_500_000),
        ("us-east-1", "m7i.large"): (100_800, None, None),
        ("us-gov-west-1", "p4d.24xlarge"): (24_500_000, None, None),
    }
    p4d, m7i, _ = listings
    assert (p4d.accelerator, p4d.accelerator_count, p4d.zone) == ("A100-40GB", 8, "")
    assert (p4d.vcpus, p4d.memory_gb) == (96, 1152)
    assert (m7i.accelerator, m7i.accelerator_count, m7i.memory_gb) == ("", 0, 8)
    assert list(skipped) == ["spot prices need boto3 and AWS credentials: there are no credentials"]


_NOT_PLAIN: list[dict[str, str]] = [
    {"Operating System": "Windows"},
    {"Operating System": "RHEL", "operation": "RunInstances:0010"},
    {"Operating System": "Linux", "operation": "RunInstances:0g00"},
    {"Tenancy": "Dedicated", "PriceDescription": "Dedicated, not Shared"},
    {"Tenancy": "Host"},
    {"CapacityStatus": "UnusedCapacityReservation"},
    {"CapacityStatus": "AllocatedCapacityReservation"},
    {"Pre Installed S/W": "SQL Web"},
    {"License Model": "Bring your own license"},
    {"MarketOption": "CapacityBlock"},
    {"Currency": "CNY"},
    {"Unit": "Quantity"},
    {"Location Type": "AWS Local Zone"},
    {"Region Code": "us-east-2"},
    _reserved("", PurchaseOption="All Upfront"),
    _reserved("", OfferingClass="convertible"),
    _reserved("", LeaseContractLength="5yr"),
    _reserved("", Unit="Quantity"),
    {"Instance Type": "m5.large", "GPU": ""},
]


def test_what_is_not_the_price_of_a_plain_machine(server: LocalHttp) -> None:
    # The first price of a type is kept, so one that slips through shows, and by its cents which.
    odd = [
        _P4D | other | {"PricePerUnit": f"99.{number:02}"}
        for number, other in enumerate(_NOT_PLAIN)
    ]
    _serve(server, us_east_1=_csv(*odd, _P4D_PRICE))
    listings, skipped = ask(SOURCE, server)
    assert _prices(listings) == {("us-east-1", "p4d.24xlarge"): (21_957_642, None, None)}
    assert len(skipped) == 1  # the spot prices


def test_columns_are_found_by_their_names(server: LocalHttp) -> None:
    turned = ["SKU", *reversed(_HEADER[1:]), "A column of next year"]
    _serve(server, us_east_1=_csv(_P4D_PRICE, header=turned))
    assert ask(SOURCE, server)[0][0].on_demand == 21_957_642


def test_zones_and_other_partitions_are_not_regions(server: LocalHttp) -> None:
    _serve(
        server,
        us_east_1=_csv(_P4D_PRICE),
        us_west_2_den_1=Reply(status=500),
        us_east_1_wl1_chi1=Reply(status=500),
        cn_north_1=Reply(status=500),
        eusc_de_east_1=Reply(status=500),
    )
    listings, skipped = ask(SOURCE, server)
    assert {it.region for it in listings} == {"us-east-1"}
    assert skipped["a local zone, Wavelength zone or other partition"] == 4


def test_types_that_are_new_to_us(server: LocalHttp) -> None:
    def new(name: str, gpus: str = "", price: str = "7") -> dict[str, str]:
        return {"Instance Type": name, "GPU": gpus, "PricePerUnit": price, "vCPU": "24"}

    _serve(
        server,
        us_east_1=_csv(
            new("g7e.16xlarge", "1"),  # as its family
            new("p6-gb300.36xlarge", "4"),  # as its name says
            new("q9.large", "2"),
            new("g6f.8xlarge", "1"),
            new("trn2.6xlarge"),
            new("p3.2xlarge", "1"),
            new("g5.xlarge", "1", "0.0000000000"),
            new("g5.2xlarge", "1", "free"),
            new("g5.4xlarge", "1", "1.5"),
            new("g5.4xlarge", "1", "1.6"),
        ),
    )
    listings, skipped = ask(SOURCE, server)
    assert [
        (it.instance_type, it.accelerator, it.accelerator_count, it.on_demand) for it in listings
    ] == [
        ("g7e.16xlarge", "RTX-PRO-6000", 1, 7_000_000),
        ("p6-gb300.36xlarge", "GB300", 4, 7_000_000),
        ("g5.4xlarge", "A10G", 1, 1_500_000),
    ]
    assert set(skipped) >= {
        "unknown accelerator 'q9'",
        "a new size, g6f.8xlarge, of a family with fractions of an accelerator",
        "a new size, trn2.6xlarge, whose accelerators the price list does not count",
        "p3.2xlarge: we have it as no longer sold",
        "list price is zero: not sold this way",
        "list price 'free' is not a number",
        "two on_demand prices for one type in one region: the first is kept",
    }


def test_a_region_that_breaks_does_not_take_the_others_along(server: LocalHttp) -> None:
    body = _csv(*[_P4D_PRICE] * 500)
    _serve(server, us_east_1=_csv(_P4D_PRICE), us_west_2=Reply(body, cut=len(body) // 2))
    listings, skipped = ask(SOURCE, server)
    assert {it.region for it in listings} == {"us-east-1"}
    assert any(
        re.match("us-west-2: .*/us-west-2/index.csv: the answer broke off", r) for r in skipped
    )


def test_a_server_that_is_busy_once(server: LocalHttp) -> None:
    busy = Reply("slow down", status=503)
    _serve(server, us_east_1=[busy, _csv(_P4D_PRICE)])
    assert ask(SOURCE, server)[0][0].on_demand == 21_957_642


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Reply(_csv(_P4D_PRICE), cut=900), "us-east-1/index.csv: the answer broke off"),
        (Reply("gone", status=404), "us-east-1/index.csv: HTTP 404"),
        ("<html>Sorry</html>", "no header row that starts with SKU"),
        ("", "no header row that starts with SKU"),
        (_csv(header=[c for c in _HEADER if c != "Tenancy"]), "there is no column Tenancy"),
        (_csv() + "Linux,Shared,8\n", "a row has 3 cells under 43 columns: 'Linux,Shared,8'"),
        (_csv(_P4D_PRICE | {"Unit": "Hours"}), "no list price of a plain Linux machine"),
    ],
)
def test_a_price_list_that_cannot_be_used(server: LocalHttp, answer: Any, message: str) -> None:
    _serve(server, us_east_1=answer)
    with pytest.raises(SourceFailed, match=message):
        ask(SOURCE, server)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ('{"regions": {"us-ea', "region_index.json: the answer is not JSON"),
        ({"regions": ["us-east-1"]}, "region_index.regions: expected dict"),
        ({"Regions": {}}, "region_index.regions: expected dict, got None"),
        ({"regions": {"moon-1": {}}}, "no region among moon-1"),
    ],
)
def test_an_index_that_cannot_be_used(server: LocalHttp, answer: Any, message: str) -> None:
    server.on(_INDEX, answer)
    with pytest.raises(SourceFailed, match=message):
        ask(SOURCE, server)


# -- spot prices ---------------------------------------------------------------------------------


def _spot(server: LocalHttp, *pages: Any) -> tuple[list[Listing], Counter[str]]:
    """The listings with a spot price when EC2 answers with `pages`; the price list has one type."""
    _serve(server, us_east_1=_csv(_P4D_PRICE))
    server.on("/", *pages)
    env = _KEYS | {"AWS_ENDPOINT_URL_EC2": server.url}
    listings, skipped = ask(SOURCE, server, env)
    assert listings[0].on_demand == 21_957_642
    return [it for it in listings if it.spot is not None], skipped


def _history(*items: dict[str, str], next_token: str = "") -> str:
    cells = "".join(
        "<item>" + "".join(f"<{k}>{v}</{k}>" for k, v in item.items()) + "</item>" for item in items
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        "<requestId>59dbff89-35bd-4eac-99ed-be587EXAMPLE</requestId>"
        f"<spotPriceHistorySet>{cells}</spotPriceHistorySet><nextToken>{next_token}</nextToken>"
        "</DescribeSpotPriceHistoryResponse>"
    )


def _item(name: str, price: str, zone: str, hour: int = 6, **other: str) -> dict[str, str]:
    return {
        "instanceType": name,
        "productDescription": "Linux/UNIX",
        "spotPrice": price,
        "timestamp": f"2026-11-14T{hour:02}:12:52.000Z",
        "availabilityZone": f"us-east-1{zone}",
        "availabilityZoneId": f"use1-az{ord(zone) - ord('a') + 1}",
    } | other


def _places(listings: list[Listing]) -> dict[tuple[str, str], int | None]:
    return {(it.instance_type, it.zone): it.spot for it in listings}


def test_spot_prices_by_zone_over_pages(server: LocalHttp) -> None:
    spot, skipped = _spot(
        server,
        _history(
            _item("p4d.24xlarge", "10.130200", "a"),
            _item("p4d.24xlarge", "99", "a", hour=5),
            _item("p4d.24xlarge", "19.624100", "b", hour=2),
            _item("m7i.large", "0.0434", "a"),
            _item("m7i.large", "0.0400", "b"),
            next_token="more",
        ),
        _history(
            _item("p4d.24xlarge", "18.5", "b", hour=9),
            _item("p5e.48xlarge", "12.25", "c"),
            _item("m7i.large", "0.0900", "c"),
            _item("p4d.24xlarge", "0.000000", "d"),
            _item("p4d.24xlarge", "n/a", "e"),
            _item("m5.large", "0.05", "a"),
        ),
    )
    assert _places(spot) == {
        ("p4d.24xlarge", "use1-az1"): 10_130_200,
        ("p4d.24xlarge", "use1-az2"): 18_500_000,
        ("p5e.48xlarge", "use1-az3"): 12_250_000,
        ("m7i.large", ""): 43_400,
    }
    # A zone that is new to us comes with the list price; p5e has none.
    assert [it.on_demand for it in spot] == [21_957_642, 21_957_642, None, None]
    assert skipped == {
        "spot price is zero: not sold this way": 1,
        "spot price 'n/a' is not a number": 1,
        "spot price without a time, or of a zone or type that we do not know": 1,
    }
    first, second = (_asked(request) for request in server.requests if request.path == "/")
    assert first["Action"] == "DescribeSpotPriceHistory"
    assert first["ProductDescription.1"] == "Linux/UNIX"
    assert first["StartTime"] == "2026-11-14T00:00:00Z"
    assert first["Filter.1.Name"] == "instance-type"
    values = {v for k, v in first.items() if k.startswith("Filter.1.Value.")}
    assert values >= {"p4d.24xlarge", "p5e.48xlarge", "m7i.large"}
    assert "p3.2xlarge" not in values
    assert (first.get("NextToken"), second["NextToken"]) == (None, "more")


def _asked(request: Request) -> dict[str, str]:
    return {k: v[0] for k, v in parse_qs(request.body.decode()).items()}


def test_zone_names_become_ids_where_ec2_does_not_tell_them(server: LocalHttp) -> None:
    def answer(request: Request) -> str:
        if _asked(request)["Action"] == "DescribeAvailabilityZones":
            return (
                "<DescribeAvailabilityZonesResponse><availabilityZoneInfo><item>"
                "<zoneName>us-east-1a</zoneName><zoneId>use1-az6</zoneId></item>"
                "</availabilityZoneInfo></DescribeAvailabilityZonesResponse>"
            )
        return _history(
            _item("p4d.24xlarge", "10", "a", availabilityZoneId=""),
            _item("p4d.24xlarge", "11", "q", availabilityZoneId=""),
        )

    spot, skipped = _spot(server, answer)
    assert _places(spot) == {("p4d.24xlarge", "use1-az6"): 10_000_000}
    assert sum(skipped.values()) == 1


_DENIED = (
    "<Response><Errors><Error><Code>AuthFailure</Code><Message>AWS was not able to validate the "
    "provided access credentials</Message></Error></Errors><RequestID>1</RequestID></Response>"
)


def test_regions_without_spot_prices_keep_their_list_prices(server: LocalHttp) -> None:
    item = _item("p4d.24xlarge", "1.5", "a")
    answers: dict[str, Any] = {
        "ap-south-1": Reply(_DENIED, status=401),
        "eu-north-1": "<html",
        "eu-south-2": _history(item | {"timestamp": "soon"}),
        "eu-west-1": _history(item, next_token="again"),
        "us-east-1": _history(item),
    }
    _serve(server, **{code: _csv(_P4D_PRICE, region=code) for code in answers})
    server.on("/", lambda request: answers[_region(request)])
    listings, skipped = ask(SOURCE, server, _KEYS | {"AWS_ENDPOINT_URL_EC2": server.url})
    assert {it.region for it in listings if it.on_demand == 21_957_642} == set(answers)
    assert {it.region for it in listings if it.spot == 1_500_000} == {"us-east-1"}
    reasons = sorted(skipped)
    assert len(reasons) == 4
    for reason, pattern in zip(
        reasons,
        [
            "ap-south-1: AuthFailure: check the AWS credentials",
            "eu-north-1: Unable to parse response",
            "eu-south-2: Invalid timestamp .soon.",
            "eu-west-1: .*same next token.*again",
        ],
        strict=True,
    ):
        assert re.match(f"spot prices of {pattern}", reason)


def _region(request: Request) -> str:
    """boto3 signs for a region; the address is the same for all of them here."""
    scope = re.search(r"Credential=AKIDEXAMPLE/\d+/([^/]+)/ec2/", request.headers["authorization"])
    assert scope
    return scope[1]


def test_without_boto3_the_list_prices_stand(
    server: LocalHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)  # as where the extra is not installed
    spot, skipped = _spot(server)
    assert not spot
    assert list(skipped) == ["spot prices need boto3 and AWS credentials: boto3 is not installed"]
