from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from tests.catalog.small import NOW, REAL, TODAY
from tradewind.base.errors import BadFile, NoAccess
from tradewind.catalog import doubts, facts
from tradewind.catalog.build import build

OFFERS = (
    "provider,region,zone,instance_type,accelerator,accelerator_count,accelerator_memory_gb,vcpus,"
    "memory_gb,local_nvme_gb,network_gbps,on_demand_usd_per_hour,spot_usd_per_hour,source,as_of"
)
GOOD = (
    "aws,us-east-1,use1-az1,p4d.24xlarge,A100-40GB,8.0,40.0,96.0,1152.0,8000.0,400.0,"
    "21.957642,9.1,list,2026-08-22"
)
ACCELERATORS = (
    "accelerator,vendor,architecture,release_year,memory_gb,memory_bandwidth_gbps,fp64_tflops,"
    "fp32_tflops,tf32_tflops,fp16_tflops,bf16_tflops,fp8_tflops,int8_tops,fp4_tflops,link_type,"
    "link_gbytes_per_s,tdp_watts,compute_capability,purchase_price_usd,purchase_price_source,source,"
    "evidence,uncertain_cells,note,in_offers\n"
    "A100-40GB,NVIDIA,Ampere,2020,40,1555.0,9.7,19.5,156.0,312.0,312.0,,624.0,,NVLink3,600.0,400.0,"
    '8.0,10000,list,nvidia,seen,"purchase_price_usd, tdp_watts",,true\n'
)
INSTANCES = (
    "provider,instance_type,accelerator,accelerator_count,vcpus,memory_gb,local_nvme_gb,network_gbps,"
    "intra_node_link,link_gbytes_per_s,nvlink,rdma_type,rdma_gbps_per_node,spot_possible,"
    "spot_notice_seconds,bare_metal,on_demand_price_known,regions,status,evidence,note\n"
    "aws,p4d.24xlarge,A100-40GB,8.0,96.0,1152.0,8000.0,400.0,NVLink3,600.0,true,EFA,400.0,true,120,"
    "false,true,2,current,seen,\n"
)
RATES = (
    "category,provider,item,value,unit,region,as_of,source,evidence,note\n"
    "commitment,aws,p4d.24xlarge RI 1 year / on-demand,0.6,ratio,us-east-1,2026-10,page,seen,\n"
    "commitment,aws,p4d.24xlarge RI 3 year / on-demand,0.4,ratio,us-east-1,2026-10,page,recall,\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "offers.csv").write_text(f"{OFFERS}\n{GOOD}\n")
    (tmp_path / "accelerators.csv").write_text(ACCELERATORS)
    (tmp_path / "instances.csv").write_text(INSTANCES)
    (tmp_path / "rates.csv").write_text(RATES)
    return tmp_path


def with_offer(folder: Path, line: str) -> Path:
    (folder / "offers.csv").write_text(f"{OFFERS}\n{GOOD}\n{line}\n")
    return folder


def test_builds_and_survives_the_disk(folder: Path) -> None:
    made = build(folder, made_at=NOW)
    again = facts.decode(facts.encode(made), "test")
    assert list(again.offers.rows()) == list(made.offers.rows())
    assert again.instances == made.instances
    assert again.rates == made.rates
    assert dict(again.accelerators) == dict(made.accelerators)
    offer = again.offers.offer(0)
    assert (offer.zone, offer.accelerator_count, offer.vcpus) == ("use1-az1", 8, 96)
    on_demand, spot, reserved = offer.on_demand, offer.spot, offer.reserved
    assert on_demand is not None
    assert on_demand.micros_hour == 21_957_642
    assert on_demand.source == "list"
    assert str(on_demand.as_of) == "2026-08-22"
    assert spot is not None
    assert spot.micros_hour == 9_100_000
    # A share of on-demand that somebody has read; the recalled one stays a rate.
    assert reserved is not None
    assert (reserved.term, reserved.micros_hour) == ("1y", 13_174_585)
    assert made.accelerators["A100-40GB"].uncertain == ("purchase_price_usd", "tdp_watts")
    assert made.instances[0].spot_notice_s == 120


def test_the_same_facts_give_the_same_bytes(folder: Path) -> None:
    assert facts.encode(build(folder, made_at=NOW)) == facts.encode(build(folder, made_at=NOW))


def test_reads_gzip_and_retired(folder: Path) -> None:
    old = GOOD.replace("p4d.24xlarge", "p3.16xlarge")
    (folder / "offers_retired.csv.gz").write_bytes(gzip.compress(f"{OFFERS}\n{old}\n".encode()))
    made = build(folder, made_at=NOW)
    kinds = [doubts.kind(made.offers.prices["on_demand"].mark[r]) for r in range(2)]
    assert sorted(kinds) == ["", "retired"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GOOD, "line 3: the same as in line 2"),
        (GOOD.replace("use1-az1", "b").replace("21.957642", "cheap"), "'cheap' is not a price"),
        (GOOD.replace("use1-az1", "b").replace("21.957642", "nan"), "'nan' is not a price"),
        (GOOD.replace("use1-az1", "b").replace("96.0", "many"), "vcpus is 'many', not a number"),
        (GOOD.replace("use1-az1", "b").replace("96.0", "-4"), "vcpus is -4, which cannot be"),
        (
            GOOD.replace("use1-az1", "b").replace("A100-40GB", "Z99"),
            "no accelerator is called 'Z99'",
        ),
        (GOOD.replace("use1-az1", "b").replace("2026-08-22", "lately"), "as_of is 'lately'"),
        (GOOD.replace("use1-az1", "b").replace(",8.0,40.0", ",0.0,40.0"), "contradict"),
        (GOOD.replace("aws,", ",", 1), "provider is empty"),
        (GOOD.replace("aws,", "a\x1bws,", 1), "cannot be printed"),
        ("aws,us-east-1", "too many or too few cells"),
        (GOOD.replace("use1-az1", "b") + ",surplus", "too many or too few cells"),
    ],
)
def test_bad_rows_are_refused_with_line_and_reason(folder: Path, line: str, reason: str) -> None:
    made = build(with_offer(folder, line), made_at=NOW)
    assert len(made.offers) == 1
    assert len(made.refused) == 1
    assert made.refused[0].startswith("offers.csv line 3: ")
    assert reason in made.refused[0]


def test_a_byte_order_mark_is_no_part_of_a_name(folder: Path) -> None:
    text = (folder / "offers.csv").read_text()
    (folder / "offers.csv").write_text("\ufeff" + text)
    assert len(build(folder, made_at=NOW).offers) == 1


def test_a_type_that_is_still_sold_is_not_retired(folder: Path) -> None:
    (folder / "offers_retired.csv").write_text(f"{OFFERS}\n{GOOD.replace('az1', 'az9')}\n")
    marks = build(folder, made_at=NOW).offers.prices["on_demand"].mark.values
    assert marks == [""]


def test_doubtful_rows_are_kept_and_marked(folder: Path) -> None:
    line = GOOD.replace("use1-az1", "b").replace("21.957642,9.1", "0.08,0")
    made = build(with_offer(folder, line), made_at=NOW)
    row = next(r for r in made.offers.rows() if r["zone"] == "b")
    assert doubts.kind(row["on_demand_mark"]) == "low"
    assert doubts.kind(row["spot_mark"]) == "zero"
    assert made.refused == ()


def test_aliases_and_partial_dates_are_understood(folder: Path) -> None:
    line = GOOD.replace("use1-az1", "b").replace("A100-40GB", "a100 40g").replace("08-22", "08")
    made = build(with_offer(folder, line), made_at=NOW)
    row = next(r for r in made.offers.rows() if r["zone"] == "b")
    assert (row["accelerator"], row["on_demand_as_of"]) == ("A100-40GB", "2026-08-01")


def test_missing_and_broken_inputs(folder: Path) -> None:
    with pytest.raises(NoAccess, match="is not a folder"):
        build(folder / "none", made_at=NOW)
    (folder / "rates.csv").unlink()
    with pytest.raises(NoAccess, match=r"has no rates\.csv"):
        build(folder, made_at=NOW)
    (folder / "rates.csv").write_text("category,provider\nx,y\n")
    with pytest.raises(BadFile, match="there is no column 'item'"):
        build(folder, made_at=NOW)
    (folder / "rates.csv").write_text(RATES)
    (folder / "offers.csv").unlink()
    (folder / "offers.csv.gz").write_bytes(gzip.compress(b"x" * 1000)[:-20])
    with pytest.raises(BadFile, match="damaged"):
        build(folder, made_at=NOW)
    (folder / "offers.csv.gz").unlink()
    (folder / "offers.csv").write_text(f"{OFFERS}\n")
    with pytest.raises(BadFile, match="has no rows"):
        build(folder, made_at=NOW)
    (folder / "offers.csv").write_text(f"{OFFERS}\n{GOOD}\n" + "aws,us-east-1\n" * 3)
    with pytest.raises(BadFile, match=r"3 of 4 rows cannot be used, the first: offers\.csv line 3"):
        build(folder, made_at=NOW)
    (folder / "offers.csv").unlink()
    (folder / "offers.csv").mkdir()
    with pytest.raises(NoAccess, match="Is a directory"):
        build(folder, made_at=NOW)


def test_what_was_compiled_can_be_compiled_again(tmp_path: Path) -> None:
    """The real catalog written as CSV and built gives the same prices and the same marks."""
    rows = [r for r in REAL.table.rows() if not r.get("on_demand_mark", "").startswith("retired")]
    with (tmp_path / "offers.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(OFFERS.split(","))
        for r in rows[::7]:
            prices = [r[g] / 1e6 if r.get(g) is not None else "" for g in ("on_demand", "spot")]
            source = r.get("on_demand_source") or r["spot_source"]
            as_of = r.get("on_demand_as_of") or r["spot_as_of"]
            hardware = ["" if r[c] is None else r[c] for c in OFFERS.split(",")[:11]]
            writer.writerow([*hardware, *prices, source, as_of])
    with (tmp_path / "accelerators.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(ACCELERATORS.split("\n")[0].split(","))
        for a in REAL.accelerators.values():
            values = [getattr(a, n, "") for n in ACCELERATORS.split("\n")[0].split(",")[1:]]
            writer.writerow([a.name, *("" if v is None else v for v in values)])
    (tmp_path / "instances.csv").write_text(INSTANCES)
    (tmp_path / "rates.csv").write_text(RATES)
    made = build(tmp_path, made_at=NOW)
    assert made.refused == ()
    assert len(made.offers) == len(rows[::7])
    first = {tuple(r[k] for k in ("provider", "region", "zone", "instance_type")): r for r in rows}
    for r in made.offers.rows():
        same = first[tuple(r[k] for k in ("provider", "region", "zone", "instance_type"))]
        assert r.get("on_demand") == same.get("on_demand")
        assert r.get("spot") == same.get("spot")


def test_euros_that_were_taken_for_dollars_are_converted_and_say_by_which_rate() -> None:
    offers = REAL.offers(provider="seeweb", instance_type="ECS1GPU10", today=TODAY)
    price = offers[0].price("on_demand")
    assert price is not None
    assert price.micros_hour == round(2_600_000 * 1.1699)
    assert "EUR at 1.1699 USD" in price.source
    assert "of 2026-08-21" in price.source
