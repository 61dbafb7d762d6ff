"""`tradewind sim serve`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tradewind.sim.serving.compare import POLICIES


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "requests.csv"
    rows = [f"{n / 4:.2f},{200 + n % 300},{50 + n % 90}" for n in range(4 * 3600)]
    path.write_text("\n".join(["t_s,input_tokens,output_tokens", *rows]))
    return str(path)


def test_every_policy_is_told_beside_the_optimum(cli: Cli, trace: str) -> None:
    ran = cli("sim", "serve", "--trace", trace, "--peak", "4")
    assert ran.code == 0, ran.err
    for name in (*POLICIES, "optimum"):
        assert f"\n{name} " in ran.out
    assert "llama-3.1-8b on one L40S" in ran.out


def test_json(cli: Cli, trace: str) -> None:
    ran = cli("sim", "serve", "--trace", trace, "--peak", "4", "--policy", "tradewind", "--json")
    told = json.loads(ran.out)
    assert told["policy"] == "tradewind"
    assert told["cost"] > 0.9 * told["optimum_cost"] > 0  # which lets nothing be late
    assert told["attainment"] >= 0.99
    assert told["requests_lost"] == 0
    assert told["gpu_hours"] > 4
    assert list(told["policies"]) == ["tradewind"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--policy", "magic"], 3, "there is no policy 'magic'"),
        (["--model", "nothing-9b"], 3, "nothing-9b"),
        (["--on", "X999"], 3, "X999"),
        (["--ttft", "0.01"], 2, "hint: looser targets"),
        (["--trace", "/nowhere.csv"], 5, "/nowhere.csv cannot be read"),
    ],
)
def test_bad_input(cli: Cli, trace: str, words: list[str], code: int, said: str) -> None:
    ran = cli("sim", "serve", "--trace", trace, *words)
    assert ran.code == code
    assert said in ran.err


@pytest.fixture
def spot(tmp_path: Path) -> str:
    """Two zones: one that is always there, and one that is taken for twenty minutes."""
    path = tmp_path / "spot.csv"
    head = "trace_id,kind,provider,zone,accelerator,nodes,start_utc,gap_seconds,rle"
    rows = [
        "a,availability,p,za,gpu,1,2026-01-01T00:00:00Z,600,1x12",
        "b,availability,p,zb,gpu,1,2026-01-01T00:00:00Z,600,1x2 0x2 1x8",
    ]
    path.write_text("\n".join([head, *rows]))
    return str(path)


def test_spot_costs_less_and_interruptions_are_told(cli: Cli, trace: str, spot: str) -> None:
    words = ("sim", "serve", "--trace", trace, "--peak", "4", "--json")
    alone, with_spot = (json.loads(cli(*words, *more).out) for more in ((), ("--spot", spot)))
    assert alone["spot"] is None
    assert with_spot["spot"]["zones"] == ["za", "zb"]
    assert with_spot["optimum_cost"] < 0.4 * alone["optimum_cost"]
    assert with_spot["cost"] < 0.9 * alone["cost"]
    assert with_spot["interruptions"] > 0
    assert with_spot["requests_lost"] == 0
    for policy in POLICIES:
        found = with_spot["policies"][policy]
        assert found["cost"] >= 0.9 * with_spot["optimum_cost"]
        assert found["cost"] <= alone["policies"][policy]["cost"] or policy == "tradewind"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trace_id,rle\na,1x3\n", "gap_seconds"),
        ("trace_id,gap_seconds,nodes,rle\na,600,1,hello\n", "VALUExCOUNT"),
        ("", "no series"),
    ],
)
def test_spot_that_cannot_be_read(
    cli: Cli, trace: str, tmp_path: Path, text: str, said: str
) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(text)
    ran = cli("sim", "serve", "--trace", trace, "--spot", str(wrong))
    assert ran.code in (3, 4)
    assert said in ran.err
    assert "Traceback" not in ran.err
