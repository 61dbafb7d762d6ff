"""`tradewind bench spot` and `sim trace`: what they print, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

HEAD = "trace_id,kind,provider,zone,accelerator,nodes,start_utc,gap_seconds,n_ticks,rle\n"
LENGTH = 120
LINES = [
    f"{name},availability,aws,z{name},v100,1,2023-02-15T00:00:00Z,300,{LENGTH},{rle}"
    for name, rle in (
        ("a", "1x40 0x5 1x30 0x25 1x20"),
        ("b", "0x30 1x10 0x3 1x60 0x17"),
        ("c", "1x120"),
    )
]
FAST = ["--task", "2", "--deadline", "3,5", "--overhead", "0.1", "--windows", "3"]


@pytest.fixture
def traces(tmp_path: Path) -> str:
    path = tmp_path / "traces.csv"
    path.write_text(HEAD + "\n".join(LINES) + "\n")
    return str(path)


@pytest.mark.parametrize("harsh", [[], ["--harsh"]])
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_the_contract(cli: Cli, traces: str, mode: str, harsh: list[str]) -> None:
    found = cli("bench", "spot", "--traces", traces, "--mode", mode, *FAST, *harsh, "--json").json
    policies = {"on-demand", "spot", "greedy", "uniform", "tradewind"}
    assert set(found["by_policy"]) == policies
    # Three series, or the group of all and two pairs; two configurations; three windows.
    assert found["cases"] == 18
    for name, figures in found["by_policy"].items():
        assert set(figures) == {
            "cost_vs_on_demand",
            "gap_to_optimum",
            "late",
            "restarts",
            "decide_ms",
        }
        if name != "spot":
            assert figures["late"] == 0
            assert figures["gap_to_optimum"] >= 0
    assert set(found["by_config"]) == {"3h/0.1h", "5h/0.1h"}
    assert len(found["by_series"]) == 3
    assert 0 < found["optimum_vs_on_demand"] < 1
    assert found["skipped"] == []
    # Plans are of one zone.
    assert ("planner" in found) == (mode == "single")
    for part in (found, *found["by_config"].values()) if mode == "single" else ():
        ours = part["by_policy"]["tradewind"]["cost_vs_on_demand"]
        assert set(part["planner"]) == {"cost_vs_on_demand", "error"}
        told = part["planner"]["cost_vs_on_demand"]
        assert part["planner"]["error"] == pytest.approx(told / ours - 1, abs=0.001)


def test_in_words(cli: Cli, traces: str) -> None:
    text = cli("bench", "spot", "--traces", traces, *FAST, "--policies", "greedy,tradewind").out
    assert "18 cases" in text
    assert "perfect foresight" in text
    assert "uniform" not in text
    assert "the planner foretold" in text


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["--deadline", "1"], 2, "too short"),
        (["--deadline", "x"], 2, "hours, separated by commas"),
        (["--task", "0"], 2, "no work"),
        (["--task", "-1"], 2, "no work"),
        (["--task", "nan"], 2, "hours, separated by commas"),
        (["--overhead", "-1"], 2, "less than no time"),
        (["--policies", "best"], 3, "no policy 'best'"),
        (["--kinds", "preemption"], 3, "no series of kind preemption"),
        (["--deadline", "500"], 2, "no series is long enough"),
        (["--prices", "/nowhere.csv"], 5, "cannot be read"),
        (["--windows", "0"], 2, "--windows"),
    ],
)
def test_bad_input(cli: Cli, traces: str, given: list[str], code: int, words: str) -> None:
    result = cli("bench", "spot", "--traces", traces, *FAST, *given)
    assert (result.code, words in result.err) == (code, True), result.err


def test_malformed_traces(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(HEAD + LINES[0].replace("0x5", "0x") + "\n")
    result = cli("bench", "spot", "--traces", str(path))
    assert result.code == 4
    assert "line 2" in result.err
    assert "VALUExCOUNT" in result.err


def test_one_case_is_drawn(cli: Cli, tmp_path: Path) -> None:
    path, picture = tmp_path / "t.csv", tmp_path / "case.svg"
    long = LINES[0].replace(f",{LENGTH},", ",1200,").replace("1x20", "1x1100")
    path.write_text(HEAD + long + "\n")
    work = Path(__file__).parents[2] / "examples" / "pretrain-1.3b" / "work.yaml"
    given = ["sim", "trace", str(work), "--traces", str(path), "--series", "za"]
    found = cli(*given, "--plot", str(picture), "--json").json
    assert set(found["policies"]) == {"greedy", "uniform", "tradewind"}
    for one in found["policies"].values():
        assert not one["late"]
        assert one["cost_usd"] >= found["optimum_usd"]
    assert "perfect foresight" in picture.read_text()
    assert cli(*given, "--start", "99").code == 2
    assert cli(*given[:-1], "zx").code == 3
