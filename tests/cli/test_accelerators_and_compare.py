from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, fresh, install


@pytest.fixture
def stocked(home: Path) -> Path:
    install(
        home,
        fresh("aws", "A100-40GB", 8, instance_type="p4d.24xlarge", on_demand=22, spot=8),
        fresh("aws", "A100-40GB", 8, instance_type="p4d.24xlarge", region="eu-1", on_demand=26),
        fresh("gcp", "A100-40GB", 8, instance_type="a2-highgpu-8g", on_demand=33),
        fresh("gcp", "A100-40GB", 1, instance_type="a2-highgpu-1g", on_demand=3.7),
        fresh("one", "T4", 1, instance_type="same", on_demand=0.5),
        fresh("two", "T4", 1, instance_type="same", on_demand=0.6),
        fresh("peer", "T4", 1, instance_type="odd", on_demand=0),
    )
    return home


def test_a_chip_and_who_sells_it(cli: Cli, stocked: Path) -> None:
    (chip,) = cli("accelerators", "a100-40gb", "--json").json
    assert chip["name"] == "A100-40GB"
    assert (chip["memory_gb"], chip["bf16_tflops"]) == (40, 312)
    assert chip["prices"]["on_demand"] == {
        "offers": 4,
        "lowest_usd_per_accelerator_hour": 2.75,
        "median_usd_per_accelerator_hour": 3.45625,  # of aws's 3.0 and gcp's 3.9125
        "highest_usd_per_accelerator_hour": 4.125,
    }
    assert [(s["provider"], s["regions"], s["counts"]) for s in chip["sold_by"]] == [
        ("aws", 2, [8]),
        ("gcp", 1, [1, 8]),
    ]
    ran = cli("accelerators", "A100 40G")
    assert "312 TFLOP/s" in ran.out
    assert "on-demand 2.75 to 4.12, median 3.46; spot 1.00 to 1.00" in ran.out


def test_a_family_is_shown_side_by_side_and_the_whole_list_by_name(cli: Cli) -> None:
    ran = cli("accelerators", "h100")
    assert ran.out.split("\n")[0].split() == ["H100-SXM", "H100-PCIe", "H100-NVL"]
    listed = cli("accelerators").out
    for name in ("TPU-v5e", "Trainium1", "Inferentia2", "FPGA-VU47P", "Gaudi3", "MI300X", "B300"):
        assert name in listed


def test_a_chip_nobody_sells_is_still_known(cli: Cli, stocked: Path) -> None:
    ran = cli("accelerators", "tpu7x")
    assert ran.code == 0
    assert "No trusted price for TPU-v7x" in ran.out


def test_types_side_by_side(cli: Cli, stocked: Path) -> None:
    first, second = cli("compare", "p4d.24xlarge", "A2-HIGHGPU-8G", "--json").json
    assert first["prices"]["on_demand"]["usd_per_hour"] == 22
    assert first["prices"]["on_demand"]["region"] == "us-east-1"
    assert first["prices"]["on_demand"]["median_region_usd_per_hour"] == 24
    assert first["prices"]["on_demand"]["usd_per_accelerator_hour"] == 2.75
    assert first["prices"]["spot"]["usd_per_hour"] == 8
    assert first["accelerator_memory_gb_total"] == 320
    assert "spot" not in second["prices"]
    out = cli("compare", "p4d.24xlarge", "a2-highgpu-8g").out
    assert "33.00  1.50×" in out
    assert "64%" in out  # spot saves, where both are sold
    assert first["spot_saves"] == 0.6364
    assert (
        cli("compare", "p4d.24xlarge", "-r", "eu-*", "--json").json[0]["prices"]["on_demand"][
            "usd_per_hour"
        ]
        == 26
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["compare", "p4d.24xlarg"], 3, "did you mean p4d.24xlarge?"),
        (["compare", "same"], 3, "one/same, two/same"),
        (["compare", "odd"], 3, "no trusted price for 'odd'"),
        (["compare", "p4d.24xlarge", "-r", "mars"], 3, "it is sold in eu-1, us-east-1"),
        (["compare", "nobody/p4d.24xlarge"], 3, "no provider is called 'nobody'"),
        (["compare"], 2, "Missing argument"),
        (["accelerators", "h1000"], 3, "did you mean"),
        (["accelerators", "rtx 6000"], 3, "ambiguous"),
        (["acelerators"], 2, "did you mean 'accelerators'?"),
    ],
)
def test_bad_input(cli: Cli, stocked: Path, arguments: list[str], code: int, words: str) -> None:
    ran = cli(*arguments)
    assert words in ran.err
    assert ran.code == code


def test_provider_tells_types_of_one_name_apart(cli: Cli, stocked: Path) -> None:
    (compared,) = cli("compare", "two/same", "--json").json
    assert compared["prices"]["on_demand"]["usd_per_hour"] == 0.6


def test_the_timeline_of_a_page_prices_every_chip(cli: Cli, stocked: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli("offers", "t4", "--plot", str(page)).code == 0
    row = next(line for line in page.read_text().split("<tr>") if ">A100-40GB<" in line)
    assert "$" in row  # sold, though the search was for another
