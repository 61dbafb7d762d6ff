"""AWS: list prices from the public price list, spot prices from EC2 with the user's own keys.

Price list, no key: `GET /offers/v1.0/aws/AmazonEC2/current/region_index.json` → `{"regions": {code:
{"regionCode", "currentVersionUrl"}}}`, then one `current/{region}/index.csv` a region: five rows of
metadata, a header row, and hundreds of megabytes of one-line records, so it is read as a stream.
Local zones and Wavelength zones stand among the regions; they, China (CNY) and the sovereign cloud
(EUR) are left out. Of the records we keep plain Linux on shared hardware, in use: one type also has
rows for dedicated tenancy, other systems, preinstalled SQL Server, unused reservations
(CapacityStatus) and other ways of buying (MarketOption). Reserved prices are those of standard
instances with no upfront payment, where the hourly price is all there is to pay. Of EC2's hundreds
of CPU-only types those that we know are renewed, with one row a region and the median of its zones
as the spot price. Not `complete`: a region whose download broke has not stopped selling.

Spot: `ec2.DescribeSpotPriceHistory` per region through boto3 (extra `aws`). Zone names (us-east-1a)
differ from account to account, so prices are kept by zone id (use1-az1). Without boto3 or keys the
list prices are still renewed. `AWS_ENDPOINT_URL_EC2` points boto3 elsewhere.
"""

from __future__ import annotations

import csv
import re
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from statistics import median_low
from typing import TYPE_CHECKING, Any

from tradewind.base import endpoints
from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import Context, Listing, Source, as_price, need

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_COLUMNS = (
    "TermType", "Unit", "PricePerUnit", "Currency", "LeaseContractLength", "PurchaseOption",
    "OfferingClass", "Location Type", "Instance Type", "vCPU", "Memory", "Tenancy",
    "Operating System", "License Model", "CapacityStatus", "GPU", "Pre Installed S/W",
    "Region Code", "operation", "MarketOption",
)  # fmt: skip
_KEPT = {
    "Unit": ("Hrs",),
    "Currency": ("USD",),
    "Location Type": ("AWS Region",),
    "Tenancy": ("Shared",),
    "Operating System": ("Linux",),
    "License Model": ("No License required", "NA", ""),
    "CapacityStatus": ("Used",),
    "Pre Installed S/W": ("NA", ""),
    "operation": ("RunInstances",),
    "MarketOption": ("OnDemand", ""),
}
_RESERVED = {"1yr": "reserved_1y", "3yr": "reserved_3y"}
_REGION = re.compile(r"(?!cn-)[a-z]{2}(-[a-z]+)+-\d+")
_MOST_PAGES = 500  # of one region's spot prices; about ten are usual
_MOST_FILTER_VALUES = 200  # EC2's own limit


@dataclass(slots=True)
class _Machine:
    """One type in one region, as the price list tells of it."""

    accelerator: str
    accelerator_count: float
    vcpus: float | None = None
    memory_gb: float | None = None
    prices: dict[str, Micros] = field(default_factory=dict)

    def listing(
        self, region: str, name: str, zone: str = "", spot: Micros | None = None
    ) -> Listing:
        return Listing(
            region=region,
            zone=zone,
            instance_type=name,
            accelerator=self.accelerator,
            accelerator_count=self.accelerator_count,
            vcpus=self.vcpus,
            memory_gb=self.memory_gb,
            on_demand=self.prices.get("on_demand"),
            spot=spot,
            reserved_1y=self.prices.get("reserved_1y"),
            reserved_3y=self.prices.get("reserved_3y"),
        )


def fetch(context: Context) -> Iterator[Listing]:
    regions = _regions(context)
    # What may be had on the spot market: all we know (p5e is sold no other way) and what is new.
    machines = {
        name: _Machine(kind.accelerator, kind.accelerator_count, kind.vcpus, kind.memory_gb)
        for name, kind in context.known.items()
        if kind.status != "retired"
    }
    sold: dict[str, dict[str, _Machine]] = {}
    failures: list[SourceFailed] = []
    for number, region in enumerate(regions, start=1):
        try:
            sold[region] = _price_list(context, region)
        except SourceFailed as error:
            # One broken download of thirty: the region keeps its old prices.
            failures.append(error)
            context.skip(f"{region}: {error.message}")
            sold[region] = {}
        for name, machine in sold[region].items():
            machines.setdefault(name, replace(machine, prices={}))
            yield machine.listing(region, name)
        context.progress(number, len(regions))
    if not any(sold.values()):
        if failures:
            raise failures[0]
        raise SourceFailed(
            f"{context.url}: no list price of a plain Linux machine in {len(regions)} regions",
            hint="the source may have changed its format; the old prices stay in place",
        )
    # A zone that is new to us gets the list prices of its region along with its spot price.
    yield from _spot(context, {region: machines | sold[region] for region in regions})


# -- list prices ---------------------------------------------------------------------------------


def _regions(context: Context) -> list[str]:
    url = f"{context.url}/offers/v1.0/aws/AmazonEC2/current/region_index.json"
    index = need(context.http.get_json(url), dict, "region_index")
    named = need(index.get("regions"), dict, "region_index.regions")
    regions = []
    for code in sorted(named):
        if _REGION.fullmatch(code):
            regions.append(code)
        else:
            context.skip("a local zone, Wavelength zone or other partition")
    if not regions:
        raise SourceFailed(f"{url}: no region among {', '.join(sorted(named))[:80] or 'nothing'}")
    return regions


def _price_list(context: Context, region: str) -> dict[str, _Machine]:
    """What is sold in `region`, by type."""
    url = f"{context.url}/offers/v1.0/aws/AmazonEC2/current/{region}/index.csv"
    sold: dict[str, _Machine] = {}
    with closing(context.http.lines(url)) as lines:
        for row in _rows(lines, url):
            if row["Region Code"] != region or any(row[c] not in kept for c, kept in _KEPT.items()):
                continue
            price_of = _market(row)
            name = row["Instance Type"]
            machine = sold.get(name) or (_machine(context, name, row) if price_of else None)
            if not price_of or not machine:
                continue
            micros = _price(context, row["PricePerUnit"], "list price")
            if not micros:
                continue
            if machine.prices.setdefault(price_of, micros) != micros:
                context.skip(f"two {price_of} prices for one type in one region: the first is kept")
            sold[name] = machine
    return sold


def _rows(lines: Iterable[str], url: str) -> Iterator[dict[str, str]]:
    """The records that may be ours. The header tells where the columns are: they move."""
    reader = csv.reader(_likely(lines))
    try:
        header = next((row for row in reader if row[:1] == ["SKU"]), None)
        if header is None:
            raise SourceFailed(f"{url}: there is no header row that starts with SKU")
        missing = [column for column in _COLUMNS if column not in header]
        if missing:
            raise SourceFailed(
                f"{url}: there is no column {', '.join(missing)}",
                hint="the source may have changed its format; the old prices stay in place",
            )
        places = [(column, header.index(column)) for column in _COLUMNS]
        for row in reader:
            if len(row) != len(header):
                raise SourceFailed(
                    f"{url}: a row has {len(row)} cells under {len(header)} columns: "
                    f"{','.join(row)[:60]!r}"
                )
            yield {column: row[place] for column, place in places}
    except csv.Error as error:
        raise SourceFailed(f"{url}: not a CSV file: {error}") from None


def _likely(lines: Iterable[str]) -> Iterator[str]:
    """Drops most records before they are cut into a hundred cells, which is what takes the time."""
    started = False
    for line in lines:
        if not started:
            started = line.startswith(('"SKU"', "SKU,"))
            yield line
        elif "Linux" in line and "Shared" in line:
            yield line


def _market(row: Mapping[str, str]) -> str | None:
    if row["TermType"] == "OnDemand":
        return "on_demand"
    # The price list writes "No Upfront" and "NoUpfront", "1yr" and "1 yr".
    if (
        row["TermType"] == "Reserved"
        and row["OfferingClass"] == "standard"
        and row["PurchaseOption"].replace(" ", "") == "NoUpfront"
    ):
        return _RESERVED.get(row["LeaseContractLength"].replace(" ", ""))
    return None


def _machine(context: Context, name: str, row: Mapping[str, str]) -> _Machine | None:
    vcpus, memory = _number(row["vCPU"]), _number(row["Memory"].removesuffix(" GiB"))
    known = context.known.get(name)
    if known:
        if known.status == "retired":
            context.skip(f"{name}: we have it as no longer sold")
            return None
        return _Machine(known.accelerator, known.accelerator_count, vcpus, memory)
    gpus = _number(row["GPU"]) or 0
    family = name.partition(".")[0]
    sizes = [
        kind
        for known_name, kind in context.known.items()
        if known_name.partition(".")[0] == family and kind.accelerator
    ]
    if not gpus:
        # Trainium and Inferentia are not counted in this column; other types have nothing for us.
        if sizes:
            context.skip(f"a new size, {name}, whose accelerators the price list does not count")
        return None
    if any(kind.accelerator_count % 1 for kind in sizes):
        context.skip(f"a new size, {name}, of a family with fractions of an accelerator")
        return None
    accelerators = {kind.accelerator for kind in sizes}
    if len(accelerators) == 1:
        return _Machine(accelerators.pop(), gpus, vcpus, memory)
    # Newer families carry the chip in their name: p6-b300.
    accelerator = context.names.canonical(family.rpartition("-")[2]) if "-" in family else None
    if not accelerator:
        context.skip(f"unknown accelerator {family!r}")
        return None
    return _Machine(accelerator, gpus, vcpus, memory)


def _price(context: Context, text: str, what: str) -> Micros | None:
    try:
        micros = as_price(text, what, kind=str)
    except SourceFailed:
        context.skip(f"{what} {text!r} is not a number")
        return None
    if micros is None:
        context.skip(f"{what} is zero: not sold this way")
    return micros


def _number(text: str) -> float | None:
    found = re.fullmatch(r"\d+(\.\d+)?", text.replace(",", "").strip())
    return float(found[0]) if found else None


# -- spot prices ---------------------------------------------------------------------------------


def _spot(context: Context, machines_in: Mapping[str, Mapping[str, _Machine]]) -> Iterator[Listing]:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError
    except ImportError:
        context.skip("spot prices need boto3 and AWS credentials: boto3 is not installed")
        return
    env = context.env
    try:
        # Where the environment says nothing, boto3 looks into ~/.aws and asks the machine's role.
        session = boto3.Session(
            aws_access_key_id=env.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=env.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=env.get("AWS_SESSION_TOKEN"),
            profile_name=env.get("AWS_PROFILE"),
        )
        if session.get_credentials() is None:
            context.skip("spot prices need boto3 and AWS credentials: there are no credentials")
            return
    except BotoCoreError as error:
        context.skip(f"spot prices need boto3 and AWS credentials: {error}")
        return
    for number, (region, machines) in enumerate(machines_in.items(), start=1):
        try:
            client = session.client(
                "ec2",
                region_name=region,
                endpoint_url=env.get("AWS_ENDPOINT_URL_EC2"),
                config=Config(
                    connect_timeout=10, retries={"mode": "standard", "total_max_attempts": 4}
                ),
            )
            with closing(client):
                endpoints.check(client.meta.endpoint_url, env)
                yield from _spot_in(context, client, region, machines)
        except ClientError as error:
            # AuthFailure is also what a region answers that the account has not switched on.
            code = error.response.get("Error", {}).get("Code", "error")
            context.skip(
                f"spot prices of {region}: {code}: check the AWS credentials, their permission "
                "ec2:DescribeSpotPriceHistory, and that the region is switched on"
            )
        except (BotoCoreError, ResponseParserError, SourceFailed, ValueError) as error:
            context.skip(f"spot prices of {region}: {error}")
        context.progress(number, len(machines_in))


def _spot_in(
    context: Context, client: Any, region: str, machines: Mapping[str, _Machine]
) -> Iterator[Listing]:
    zone_ids: dict[str, str] | None = None
    newest: dict[tuple[str, str], tuple[datetime, Micros]] = {}
    for item in _history(context, client, machines):
        name, zone = str(item.get("InstanceType")), item.get("AvailabilityZoneId")
        if not zone:
            zone_ids = _zone_ids(client) if zone_ids is None else zone_ids
            zone = zone_ids.get(str(item.get("AvailabilityZone")))
        at = item.get("Timestamp")
        if name not in machines or not zone or not isinstance(at, datetime):
            context.skip("spot price without a time, or of a zone or type that we do not know")
            continue
        micros = _price(context, str(item.get("SpotPrice")), "spot price")
        key = (name, str(zone))
        if micros and (key not in newest or newest[key][0] < at):
            newest[key] = (at, micros)
    of_region: dict[str, list[Micros]] = {}
    for (name, zone), (_, micros) in newest.items():
        if machines[name].accelerator:
            yield machines[name].listing(region, name, zone, micros)
        else:
            of_region.setdefault(name, []).append(micros)
    for name, prices in of_region.items():
        yield machines[name].listing(region, name, spot=median_low(prices))


def _history(
    context: Context, client: Any, machines: Mapping[str, _Machine]
) -> Iterator[dict[str, Any]]:
    # From a moment that is past in every time zone: EC2 adds the price that held at that moment, so
    # none is missed, and the newest of each wins. The time of day is not ours to know here.
    start = datetime.combine(context.today, time.min, UTC) - timedelta(days=1)
    names = sorted(machines)
    for first in range(0, len(names), _MOST_FILTER_VALUES):
        pages = client.get_paginator("describe_spot_price_history").paginate(
            ProductDescriptions=["Linux/UNIX"],
            StartTime=start,
            # A filter takes any name, also one that this region does not know.
            Filters=[
                {"Name": "instance-type", "Values": names[first : first + _MOST_FILTER_VALUES]}
            ],
        )
        for number, page in enumerate(pages):
            if number >= _MOST_PAGES:
                raise SourceFailed(f"more than {_MOST_PAGES} pages of spot prices")
            yield from page.get("SpotPriceHistory", ())


def _zone_ids(client: Any) -> dict[str, str]:
    answer = client.describe_availability_zones()
    return {
        zone["ZoneName"]: zone["ZoneId"]
        for zone in answer.get("AvailabilityZones", ())
        if zone.get("ZoneName") and zone.get("ZoneId")
    }


SOURCE = Source(
    provider="aws",
    url="https://pricing.us-east-1.amazonaws.com",
    fetch=fetch,
    describes="AWS price list; EC2 spot price history",
    markets=("on_demand", "spot", "reserved"),
)
