"""The bench commands answer in their documented shape. What the figures are decides no test."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli


def test_startup(cli: Cli) -> None:
    found = cli("bench", "startup", "--repeat", "1", "--json", "--peer", "true").json
    assert set(found) == {
        "python_s", "help_ratio", "offers_ratio", "help_s", "offers_s", "peers_s", "repeats",
    }  # fmt: skip
    assert all(found[name] > 0 for name in ("python_s", "help_ratio", "offers_ratio"))
    assert list(found["peers_s"]) == ["true"]
    text = cli("bench", "startup", "--repeat", "1").out
    assert text.count(" ms") == 3


def test_catalog(cli: Cli) -> None:
    found = cli("bench", "catalog", "--repeat", "1", "--json").json
    assert found["offers"] > 8_879
    assert all(found[name] > 0 for name in ("load_ms", "first_filter_ms", "filter_ms"))
    assert "offers" in cli("bench", "catalog", "--repeat", "1").out


def test_plan(cli: Cli) -> None:
    found = cli("bench", "plan", "--repeat", "1", "--json").json
    assert set(found) == {
        "candidates", "layouts", "warm_ms_median", "cold_ratio", "cold_s", "per_second", "repeats",
    }  # fmt: skip
    assert found["candidates"] > 1_000
    assert found["cold_ratio"] > 1
    assert found["repeats"] == 7


def test_controller(cli: Cli) -> None:
    found = cli("bench", "controller", "--runs", "50", "--json").json
    assert list(found) == [
        "runs", "pass_s", "requests_per_run", "peak_mb", "look_requests", "cold_pass_s",
        "cold_requests_per_run", "workers", "latency_ms",
    ]  # fmt: skip
    assert found["runs"] == 50
    assert found["requests_per_run"] == 2
    assert found["look_requests"] == 2
    assert found["cold_requests_per_run"] > 2
    assert found["latency_ms"] == 20
    assert found["pass_s"] > 2 * 0.020
    assert found["peak_mb"] > 1
    text = cli("bench", "controller", "--runs", "1").out
    assert "1 idle run," in text
    assert text.count("within") + text.count("OVER") == 3
    assert cli("bench", "controller", "--runs", "0").code == 2


def test_steps_need_a_gpu(cli: Cli) -> None:
    ran = cli("bench", "gpu-steps", "--on", "H200")
    assert ran.code in (0, 3, 7)
    if ran.code:
        assert "GPU" in ran.err or "torch" in ran.err


def test_chaos_wants_a_store_of_its_own(cli: Cli, tmp_path: Path) -> None:
    """What it measures is in tests/system/test_chaos.py: it takes minutes."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "mine").write_text("precious")
    ran = cli("bench", "chaos", "--store", str(tmp_path / "store"), "--kills", "1")
    assert ran.code == 2
    assert "is not empty" in ran.err
    assert cli("bench", "chaos", "--kills", "0").code == 2


def test_bad_input(cli: Cli) -> None:
    assert cli("bench", "startup", "--repeat", "0").code == 2
    assert cli("bench", "startup", "--repeat", "1", "--peer", "no-such-program").code == 3
    assert cli("bench", "everything").code == 2
