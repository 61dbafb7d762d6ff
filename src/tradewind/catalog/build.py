"""Compiles a folder of facts (CSV tables) into the catalog file.

The folder holds `offers`, `accelerators`, `instances` and `rates`, each as `.csv` or `.csv.gz`, and
may hold `offers_retired`: types no longer sold, kept for back-tests and never chosen. Columns are
described in docs/catalog-data.md. A row that cannot be read is refused with its line and reason;
the reasons go into the catalog, where `tradewind catalog doctor` shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TypeVar

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue, NoAccess, NotFound
from tradewind.base.units import micros_from_usd
from tradewind.catalog import currencies, doubts
from tradewind.catalog.facts import Facts
from tradewind.catalog.names import Names
from tradewind.catalog.table import KEY, NUMBERS, OfferTable, Row, neighbours
from tradewind.model import Accelerator, InstanceType, Rate

T = TypeVar("T")
_RESERVED = {"reserved_1y": "reserved_1y_usd_per_hour", "reserved_3y": "reserved_3y_usd_per_hour"}


def build(folder: Path, *, made_at: datetime) -> Facts:
    if not folder.is_dir():
        raise NoAccess(f"{folder} is not a folder", hint="name the folder that holds offers.csv")
    refused: list[str] = []
    chips = _read(folder, "accelerators", _accelerator, refused, unique=("accelerator",))
    accelerators = {chip.name: chip for chip in chips}
    instances = tuple(_read(folder, "instances", _instance, refused))
    rates = tuple(_read(folder, "rates", _rate, refused))
    names = Names(accelerators)

    def offer(cells: Mapping[str, str]) -> Row:
        return _offer(cells, accelerators, names)

    rows = list(_read(folder, "offers", offer, refused, unique=KEY))
    current = {(kind.provider, kind.name) for kind in instances if kind.status == "current"}
    for row in _read(folder, "offers_retired", offer, refused, unique=KEY, optional=True):
        # A type may have left one price list and still be sold (in blocks, say): then it is stale.
        gone = (row["provider"], row["instance_type"]) not in current
        rows.append(row | {"retired": gone})
    _commit(rows, rates)
    doubts.judge(rows, accelerators)
    rows.sort(key=neighbours)
    return Facts(
        made_at=made_at,
        accelerators=accelerators,
        make_instances=lambda: instances,
        make_rates=lambda: rates,
        offers=OfferTable.of(rows),
        refused=tuple(refused),
    )


def _commit(rows: Sequence[Row], rates: Sequence[Rate]) -> None:
    """Reserved prices, where the rates tell a type's 1- or 3-year price as a share of on-demand.

    Headline figures ("up to 60 % off"), family averages and ratios nobody has read lately stay
    rates: as a price they would be guesses.
    """
    for rate in rates:
        found = re.fullmatch(r"(\S+) .*\b([13]) year.*/ on-demand", rate.item)
        if rate.category != "commitment" or rate.unit != "ratio" or not found or not rate.value:
            continue
        if rate.evidence not in ("seen", "derived"):
            continue
        group = f"reserved_{found[2]}y"
        for row in rows:
            same = (row["provider"], row["instance_type"]) == (rate.provider, found[1])
            if same and row["region"] == rate.region and row.get("on_demand") and group not in row:
                row[group] = round(row["on_demand"] * rate.value)
                row[f"{group}_as_of"] = _date(rate.as_of)
                row[f"{group}_source"] = f"{rate.value:.1%} of on-demand: {rate.source}"


def _read(
    folder: Path,
    name: str,
    convert: Callable[[Mapping[str, str]], T],
    refused: list[str],
    *,
    unique: tuple[str, ...] = (),
    optional: bool = False,
) -> Iterator[T]:
    path = next(
        (p for p in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if p.exists()), None
    )
    if path is None:
        if optional:
            return
        raise NoAccess(f"{folder} has no {name}.csv or {name}.csv.gz")
    seen: dict[tuple[str, ...], int] = {}
    before, lines = len(refused), 0
    for line, cells in csvfile.rows(path):
        lines += 1
        try:
            if None in cells or None in cells.values():
                raise InvalidValue("the row has too many or too few cells")
            key = tuple(cells.get(column, "") for column in unique)
            if unique and seen.setdefault(key, line) != line:
                raise InvalidValue(f"the same as in line {seen[key]}")
            converted = convert(cells)
        except KeyError as error:
            raise BadFile(f"{path}: there is no column {error}") from None
        except (InvalidValue, NotFound) as error:
            refused.append(f"{path.name} line {line}: {error.message}")
            continue
        yield converted
    if not lines and not optional:
        raise BadFile(f"{path} has no rows")
    if 2 * (len(refused) - before) > lines:
        # A table of which most is wrong is the wrong table; it must not replace a good catalog.
        raise BadFile(
            f"{path}: {len(refused) - before:,} of {lines:,} rows cannot be used, the first: "
            f"{refused[before]}",
            hint="nothing was written",
        )


def _offer(cells: Mapping[str, str], accelerators: Mapping[str, Accelerator], names: Names) -> Row:
    row: Row = {name: cells[name].strip() for name in KEY}
    for name in ("provider", "region", "instance_type"):
        if not row[name]:
            raise InvalidValue(f"{name} is empty")
    for name in KEY:
        if not row[name].isprintable():
            raise InvalidValue(f"{name} has characters that cannot be printed")
    if row["accelerator"] and row["accelerator"] not in accelerators:
        row["accelerator"] = names.one(row["accelerator"])
    for name in NUMBERS:
        row[name] = _number(cells, name)
    row["accelerator_count"] = row["accelerator_count"] or 0
    if bool(row["accelerator"]) != bool(row["accelerator_count"]):
        raise InvalidValue("accelerator and accelerator_count contradict each other")
    as_of, source = _date(cells["as_of"]), cells["source"].strip()
    rate = currencies.rate_of(row["provider"], source)
    for group, column in {
        "on_demand": "on_demand_usd_per_hour",
        "spot": "spot_usd_per_hour",
        **_RESERVED,
    }.items():
        text = cells[column] if group not in _RESERVED else cells.get(column, "")
        if text.strip():
            micros = micros_from_usd(text)
            row[group] = round(micros * rate.usd) if rate else micros
            row[f"{group}_as_of"] = as_of
            row[f"{group}_source"] = f"{source}, {rate.words}" if rate else source
    return row


def _accelerator(cells: Mapping[str, str]) -> Accelerator:
    def number(name: str) -> float | None:
        return _number(cells, name)

    memory_gb, year = number("memory_gb"), number("release_year")
    if not cells["accelerator"] or not memory_gb or not year:
        raise InvalidValue("an accelerator needs a name, memory_gb and release_year")
    return Accelerator(
        name=cells["accelerator"],
        vendor=cells["vendor"],
        architecture=cells["architecture"],
        release_year=int(year),
        memory_gb=memory_gb,
        memory_bandwidth_gbps=number("memory_bandwidth_gbps"),
        fp64_tflops=number("fp64_tflops"),
        fp32_tflops=number("fp32_tflops"),
        tf32_tflops=number("tf32_tflops"),
        fp16_tflops=number("fp16_tflops"),
        bf16_tflops=number("bf16_tflops"),
        fp8_tflops=number("fp8_tflops"),
        int8_tops=number("int8_tops"),
        fp4_tflops=number("fp4_tflops"),
        link_type=cells["link_type"],
        link_gbytes_per_s=number("link_gbytes_per_s"),
        tdp_watts=number("tdp_watts"),
        compute_capability=cells["compute_capability"],
        purchase_price_usd=number("purchase_price_usd"),
        purchase_price_source=cells["purchase_price_source"],
        source=cells["source"],
        evidence=cells["evidence"],
        uncertain=tuple(
            re.split(r"[;, ]+", cells["uncertain_cells"]) if cells["uncertain_cells"] else ()
        ),
        note=cells["note"],
    )


def _instance(cells: Mapping[str, str]) -> InstanceType:
    notice = _number(cells, "spot_notice_seconds")
    return InstanceType(
        provider=cells["provider"],
        name=cells["instance_type"],
        accelerator=cells["accelerator"],
        accelerator_count=_number(cells, "accelerator_count") or 0,
        vcpus=_number(cells, "vcpus"),
        memory_gb=_number(cells, "memory_gb"),
        local_nvme_gb=_number(cells, "local_nvme_gb"),
        network_gbps=_number(cells, "network_gbps"),
        intra_node_link=cells["intra_node_link"],
        link_gbytes_per_s=_number(cells, "link_gbytes_per_s"),
        nvlink=cells["nvlink"] == "true",
        rdma_type="" if cells["rdma_type"] == "none" else cells["rdma_type"],
        rdma_gbps_per_node=_number(cells, "rdma_gbps_per_node"),
        spot_possible=cells["spot_possible"] == "true",
        spot_notice_s=None if notice is None else int(notice),
        bare_metal=cells["bare_metal"] == "true",
        on_demand_price_known=cells["on_demand_price_known"] == "true",
        status=cells["status"],
        evidence=cells["evidence"],
        note=cells["note"],
    )


def _rate(cells: Mapping[str, str]) -> Rate:
    words = {name: cells[name] for name in _RATE_WORDS}
    return Rate(**words, value=_number(cells, "value"))


_RATE_WORDS = (
    "category",
    "provider",
    "item",
    "unit",
    "region",
    "as_of",
    "source",
    "evidence",
    "note",
)


def _number(cells: Mapping[str, str], name: str) -> float | None:
    if name not in cells:
        raise KeyError(name)
    value = csvfile.number(cells, name, most=1e12)
    return int(value) if value is not None and value == int(value) else value


def _date(text: str) -> str:
    """ISO, or empty where there is none; a month or a year alone counts from its first day."""
    text = text.strip()
    whole = (
        text + "-01" * (2 - text.count("-")) if re.fullmatch(r"\d{4}(-\d\d){0,2}", text) else text
    )
    try:
        return date.fromisoformat(whole).isoformat() if text else ""
    except ValueError:
        raise InvalidValue(f"as_of is {text!r}, not a date like 2026-10-10") from None
