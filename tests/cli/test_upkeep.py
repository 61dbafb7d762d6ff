"""`tradewind doctor` and `sweep`; tests/upkeep has what they find and do."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tradewind import store as stores
from tradewind.model import places

OLD = "count-019000000000-abcdef"


def test_doctor(cli: Cli, tmp_path: Path) -> None:
    ran = cli("doctor", "--store", str(tmp_path / "store"))
    assert ran.code == 0
    assert "1 warning" in ran.out  # the clock is held
    ran = cli("doctor", "runs", "parts", "--json", "--store", str(tmp_path / "store"))
    assert {f["about"] for f in ran.json["findings"]} == {"runs", "parts"}
    ran = cli("doctor", "--json", "--store", "ftp://x")
    assert ran.code == 1
    assert ran.json["broken"] == 1
    assert {f["level"] for f in ran.json["findings"]} == {"ok", "missing", "warning", "broken"}
    assert ran.json["missing"] > 0  # keys of price sources
    assert "broken" in ran.err
    ran = cli("doctor", "computer", "parts", "--json", "--store", "ftp://x")
    assert (ran.code, ran.json["broken"]) == (0, 0)  # what is not asked for is not looked at


def test_sweep(cli: Cli) -> None:
    store = stores.open()
    store.create(places.bundle(OLD), b"x")
    store.create("probe/doctor-019000000000-abcdef/x", b"x")
    ran = cli("sweep")
    assert ran.code == 2
    assert "--dry-run" in ran.err
    assert OLD in ran.out
    ran = cli("sweep", "-n", "--json")
    assert [(i["kind"], i["done"]) for i in ran.json["items"]] == [
        ("submission", None),
        ("trial", None),
    ]
    assert store.get(places.bundle(OLD))
    ran = cli("sweep", "--yes")
    assert ran.code == 0
    assert "2 of 2 done" in ran.out
    assert "nothing to sweep" in cli("sweep").out
