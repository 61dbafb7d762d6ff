from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.test_build import ACCELERATORS, GOOD, INSTANCES, OFFERS, RATES
from tests.cli.conftest import Cli, days_ago, fresh, install, on_a_terminal
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base import clock
from tradewind.catalog import files

TYPES = "/api/v1/instance-types"
ANSWER = {
    "data": {
        "gpu_8x_h100_sxm5": {
            "instance_type": {
                "name": "gpu_8x_h100_sxm5",
                "description": "8x H100 (80 GB SXM5)",
                "gpu_description": "H100 (80 GB SXM5)",
                "price_cents_per_hour": 2872,
                "specs": {"vcpus": 208, "memory_gib": 1800, "storage_gib": 22000, "gpus": 8},
            },
            "regions_with_capacity_available": [{"name": "us-east-3", "description": "DC"}],
        }
    }
}


@pytest.fixture
def sources(server: LocalHttp, monkeypatch: pytest.MonkeyPatch) -> LocalHttp:
    """Every source's address is a local server that knows nothing, until a test tells it."""
    from tradewind.catalog.refresh import SOURCES, source

    for name in SOURCES:
        monkeypatch.setenv(f"TRADEWIND_{name.upper()}_URL", server.url)
        for variable in source(name).credentials:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LAMBDA_API_KEY", "secret-key")
    return server


@pytest.fixture
def stocked(home: Path) -> Path:
    install(
        home,
        fresh("lambda", region="us-east-3", instance_type="gpu_8x_h100_sxm5", on_demand=31.92),
        fresh("lambda", region="us-west-1", instance_type="gpu_8x_h100_sxm5", on_demand=31.92),
        fresh("lambda", "A10", 1, region="us-west-1", instance_type="gpu_1x_a10", on_demand=1.29),
        fresh("azure", "A100-80GB", 8, region="eastus", on_demand=27.2),
        fresh("azure", "A100-80GB", 8, region="westus", on_demand=27.2, as_of=days_ago(700)),
        fresh("peer", "A100-80GB", 8, on_demand=0.08, spot=0),
    )
    return home


def prices(cli: Cli, provider: str) -> dict[tuple[str, str], Any]:
    offers = cli("offers", "-p", provider, "--all", "--json").json["offers"]
    return {(o["instance_type"], o["region"]): o["on_demand_usd_per_hour"] for o in offers}


def test_refresh_renews_adds_and_delists(cli: Cli, stocked: Path, sources: LocalHttp) -> None:
    sources.on(TYPES, ANSWER)
    ran = cli("catalog", "refresh", "--provider", "lambda", "--json")
    assert ran.code == 0, ran.err
    assert ran.json == [
        {
            "provider": "lambda", "ok": True, "error": None, "renewed": 2, "changed": 2,
            "added": 0, "delisted": 1, "unbelieved": 0, "skipped": {},
        }
    ]  # fmt: skip
    assert prices(cli, "lambda") == {
        ("gpu_8x_h100_sxm5", "us-east-3"): 28.72,
        ("gpu_8x_h100_sxm5", "us-west-1"): 28.72,
    }
    offer = cli("offers", "-p", "lambda", "-r", "us-east-3", "--json").json["offers"][0]
    assert offer["as_of"] == clock.today().isoformat()
    assert offer["source"] == "Lambda API v1 instance-types"
    # What has stock was seen to have it, and nothing was seen of the rest.
    assert offer["in_stock"] is True
    assert len(cli("offers", "--in-stock", "--json").json["offers"]) == 1
    assert sources.requests[0].headers["authorization"] in ("Bearer secret-key",)


def test_one_failure_keeps_its_rows_and_says_so(
    cli: Cli, stocked: Path, sources: LocalHttp
) -> None:
    sources.on(TYPES, ANSWER)
    before = prices(cli, "azure")
    ran = cli("catalog", "refresh", "-p", "lambda", "-p", "azure", "--retries", "0")
    assert ran.code == 6
    assert "lambda: 2 prices renewed" in ran.out
    assert "azure: failed, its old rows stay" in ran.err
    assert "HTTP 404" in ran.err
    assert prices(cli, "azure") == before
    assert prices(cli, "lambda")["gpu_8x_h100_sxm5", "us-west-1"] == 28.72


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Reply(ANSWER, cut=100), "lambda: failed"),
        (Reply(b'{"data": {'), "is not JSON"),
        (Reply(b"<html>maintenance</html>"), "it starts '<html>"),
        (Reply({"data": []}), "answer.data: expected dict, got []"),
        (Reply({"data": {}}), "listed nothing"),
        (Reply("forbidden", status=401), "HTTP 401"),
        (Reply("down", status=503), "HTTP 503"),
        (Reply(ANSWER, delay_s=1.6), "timed out"),
    ],
)
def test_bad_answers_change_nothing(
    cli: Cli, stocked: Path, sources: LocalHttp, answer: Reply, words: str
) -> None:
    sources.on(TYPES, answer)
    before = (stocked / "catalog.json.gz").read_bytes()
    patience = "1s" if answer.delay_s else "60s"
    ran = cli("catalog", "refresh", "-p", "lambda", "--retries", "0", "--timeout", patience)
    assert ran.code == 6
    assert words in ran.err
    assert "secret-key" not in ran.err + ran.out
    assert (stocked / "catalog.json.gz").read_bytes() == before


def test_a_passing_fault_is_ridden_out(cli: Cli, stocked: Path, sources: LocalHttp) -> None:
    sources.on(TYPES, Reply("busy", status=503), Reply(ANSWER, cut=50), Reply(ANSWER))
    assert cli("catalog", "refresh", "-p", "lambda").code == 0
    assert len(sources.requests) == 3


def test_nobody_there(cli: Cli, stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMBDA_API_KEY", "x")
    monkeypatch.setenv("TRADEWIND_LAMBDA_URL", "http://127.0.0.1:9")
    ran = cli("catalog", "refresh", "-p", "lambda", "--retries", "0")
    assert ran.code == 6
    assert "Connection refused" in ran.err
    assert "Nothing was renewed" in ran.out


def test_keys_are_asked_for_by_name(
    cli: Cli, stocked: Path, sources: LocalHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAMBDA_API_KEY")
    ran = cli("catalog", "refresh", "-p", "lambda")
    assert ran.code == 6
    assert "LAMBDA_API_KEY not set" in ran.err
    ran = cli("catalog", "refresh", "-p", "lamda")
    assert ran.code == 3
    assert "did you mean lambda?" in ran.err


def test_a_bug_in_one_reader_costs_only_that_provider(
    cli: Cli, stocked: Path, sources: LocalHttp
) -> None:
    broken = {"data": {"x": {"instance_type": {"specs": {"gpus": 1}, "price_cents_per_hour": 5,
              "gpu_description": "A10"}, "regions_with_capacity_available": [7]}}}  # fmt: skip
    sources.on(TYPES, broken)
    ran = cli("catalog", "refresh", "-p", "lambda")
    assert ran.code in (0, 6)
    assert "Traceback" not in ran.err


def test_progress_bars_on_a_terminal(stocked: Path, sources: LocalHttp) -> None:
    sources.on(TYPES, ANSWER)
    shown = on_a_terminal(stocked, "catalog", "refresh", "-p", "lambda")
    assert "100 %" in shown
    assert "lambda: 2 prices renewed" in shown


def test_the_doctor_names_every_doubt(cli: Cli, stocked: Path) -> None:
    report = cli("catalog", "doctor", "--json").json
    found = {(d["provider"], d["region"], d["market"]): d for d in report["doubtful"]}
    assert found["peer", "us-east-1", "on_demand"]["kind"] == "low"
    assert found["peer", "us-east-1", "spot"]["kind"] == "zero"
    assert found["azure", "westus", "on_demand"]["kind"] == "stale"
    assert report["counts"] == {"low": 1, "zero": 1, "stale": 1}
    ran = cli("catalog", "doctor")
    assert ran.code == 0
    assert "priced at zero (zero): 1 price" in ran.out
    assert "3 of 7 prices are in doubt" in ran.out
    only = cli("catalog", "doctor", "--kind", "zero", "--json").json
    assert [d["kind"] for d in only["doubtful"]] == ["zero"]


def test_the_doctor_names_what_is_wrong_with_the_packaged_catalog(cli: Cli) -> None:
    found = cli("catalog", "doctor", "--json").json
    stale = {(d["provider"], d["as_of"][:4]) for d in found["doubtful"] if d["kind"] == "stale"}
    assert {
        ("ibm", "2023"), ("scp", "2023"), ("ovhcloud", "2023"), ("paperspace", "2024"),
        ("azure", "2024"), ("digitalocean", "2025"), ("primeintellect", "2025"), ("vast", "2025"),
    } <= stale  # fmt: skip
    placeholders = {d["instance_type"] for d in found["doubtful"] if d["kind"] == "placeholder"}
    assert {"a4-highgpu-8g", "h100-80gb.sxm.8x"} <= placeholders
    assert "p6e-gb200.36xlarge" in {t["instance_type"] for t in found["unpriced_types"]}
    assert any(note.startswith("azure: ") for note in found["notes"])


def test_status(cli: Cli, stocked: Path) -> None:
    status = cli("catalog", "status", "--json").json
    assert status["offers"] == 6
    assert status["origin"] == str(stocked / "catalog.json.gz")
    ran = cli("catalog", "status")
    assert "lambda" in ran.out
    assert "6 offers, 81 accelerators" in ran.out


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, text in {
        "offers": f"{OFFERS}\n{GOOD}\n{GOOD.replace('use1-az1', 'b').replace('21.9', 'x')}\n",
        "accelerators": ACCELERATORS,
        "instances": INSTANCES,
        "rates": RATES,
    }.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_build(cli: Cli, home: Path, data: Path) -> None:
    ran = cli("catalog", "build", "--from", str(data))
    assert ran.code == 0
    assert "1 offers, 1 accelerators" in ran.out
    assert "refused: offers.csv line 3" in ran.err
    assert files.load().origin == str(home / "catalog.json.gz")
    assert "offers.csv line 3" in cli("catalog", "doctor").out
    out = data / "other.gz"
    assert cli("catalog", "build", "--from", str(data), "--out", str(out)).code == 0
    assert len(files.load(out).table) == 1


def test_build_from_nothing_keeps_the_last_good(cli: Cli, stocked: Path, data: Path) -> None:
    before = (stocked / "catalog.json.gz").read_bytes()
    assert cli("catalog", "build", "--from", str(data / "none")).code == 5
    (data / "offers.csv").write_text("junk\njunk")
    assert cli("catalog", "build", "--from", str(data)).code == 4
    (data / "offers.csv").write_bytes(b"\xff\xfe\x00")
    assert cli("catalog", "build", "--from", str(data)).code == 4
    assert (stocked / "catalog.json.gz").read_bytes() == before


def test_build_where_it_may_not_write(cli: Cli, data: Path) -> None:
    ran = cli("catalog", "build", "--from", str(data), "--out", "/proc/none/catalog.gz")
    assert ran.code == 5
    assert "cannot be written" in ran.err


def test_reset(cli: Cli, stocked: Path) -> None:
    assert "is gone" in cli("catalog", "reset").out
    assert "serves already" in cli("catalog", "reset").out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["observe", "lambda", "us-east-3", "nothing", "--available"], 3, "sells no 'nothing'"),
        (["observe", "lambda", "us-east-3", "gpu_8x_h100_sxm5"], 2, "--available"),
        (["observe", "lambda", "us-east-3", "gpu_8x_h100_sxm5", "--available", "--for", "0s"], 2,
         "from 1s to 30d"),
        (["build"], 2, "--from"),
        (["doctor", "--kind", "ugly"], 2, "ugly"),
        (["refresh", "--timeout", "now"], 2, "not a length of time"),
        (["cure"], 2, "no command is called 'cure'"),
    ],
)  # fmt: skip
def test_bad_input(cli: Cli, stocked: Path, arguments: list[str], code: int, words: str) -> None:
    ran = cli("catalog", *arguments)
    assert ran.code == code
    assert words in ran.err


@pytest.mark.parametrize(
    ("line", "code", "err"),
    [
        ("offers --json --all | head -1", 0, ""),
        ("offers -l 0 | head -1", 0, ""),
        ("catalog doctor -l 0 | head -1", 0, ""),
        ("offers >&-", 0, ""),
        ("offers --json >/dev/full", 5, "No space left"),
        ("accelerators >/dev/full", 5, "No space left"),
    ],
)
def test_output_that_nobody_takes(home: Path, line: str, code: int, err: str) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m tradewind {line}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert err in done.stderr
    assert bool(err) == bool(done.stderr)


def test_a_terminal_that_knows_only_ascii(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", "offers", "--limit", "1"],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert b"1? " in done.stdout


def test_one_interrupt_ends_a_refresh(home: Path, sources: LocalHttp) -> None:
    asked = threading.Event()

    def silent(request: Request) -> Reply:
        asked.set()
        return Reply(ANSWER, delay_s=30)

    sources.on(TYPES, silent)
    process = subprocess.Popen(
        [sys.executable, "-m", "tradewind", "catalog", "refresh", "-p", "lambda"],
        stderr=subprocess.PIPE,
    )
    assert asked.wait(30)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"interrupted" in err


def test_in_the_background_of_a_script_it_is_not_interrupted(
    home: Path, sources: LocalHttp
) -> None:
    """`tradewind … &` in a script: Ctrl-C is for what is in front, as the shell has asked for."""
    asked, interrupted = threading.Event(), threading.Event()

    def until_then(request: Request) -> Reply:
        asked.set()
        assert interrupted.wait(30)
        return Reply(ANSWER)

    sources.on(TYPES, until_then)
    command = [sys.executable, "-m", "tradewind", "catalog", "refresh", "-p", "lambda"]
    process = subprocess.Popen(["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command])
    assert asked.wait(30)
    process.send_signal(signal.SIGINT)
    interrupted.set()
    assert process.wait(60) == 0


def test_what_another_refresh_renewed_meanwhile_is_kept(
    cli: Cli, stocked: Path, sources: LocalHttp
) -> None:
    def slowly(request: Request) -> Reply:
        install(
            stocked,
            fresh("lambda", region="us-east-3", instance_type="gpu_8x_h100_sxm5", on_demand=31.92),
            fresh("azure", "A100-80GB", 8, region="eastus", on_demand=19.99),
        )
        return Reply(ANSWER)

    sources.on(TYPES, slowly)
    assert cli("catalog", "refresh", "-p", "lambda").code == 0
    assert list(prices(cli, "azure").values()) == [19.99]
    assert list(prices(cli, "lambda").values()) == [28.72]


def test_rates_have_a_price_a_date_and_a_source(cli: Cli) -> None:
    done = cli("catalog", "rates", "-p", "AWS", "--region", "us-east-1", "--json")
    rows = {(row["category"], row["region"]): row for row in done.json}
    assert rows["block_storage", "us-east-1"]["value"] == 0.08
    assert rows["public_address", "*"]["unit"] == "USD/hour"
    assert rows["egress_inter_region", "us-east-1/us-east-2"]["value"] == 0.01
    assert all(row["as_of"] and row["source"] for row in rows.values())
    assert "$0.023/GB-month" in cli("catalog", "rates", "--category", "object_storage").out


def test_other_rates_are_shown_when_asked_for(cli: Cli) -> None:
    usual, every = (cli("catalog", "rates", *more, "--json").json for more in ([], ["--all"]))
    assert {"commitment", "platform_fee"} <= {row["category"] for row in every}
    assert "commitment" not in {row["category"] for row in usual}


def test_rates_of_nobody_are_an_error_that_says_what_there_is(cli: Cli) -> None:
    ran = cli("catalog", "rates", "-p", "awz")
    assert ran.code == 3
    assert "did you mean aws?" in ran.err
    ran = cli("catalog", "rates", "--category", "egres")
    assert ran.code == 3
    assert "egress_internet" in ran.err
