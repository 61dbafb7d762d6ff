"""`tradewind bench spot` and `sim trace`: what they print, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tradewind import pictures
from tradewind.pictures.spotcase import Course, SpotCaseData

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
    assert "the planner predicted" in text


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
        (["--deadline", ""], 2, "--deadline is '', and names nothing"),
        (["--policies", ","], 2, "--policies is ',', and names nothing"),
        (["--task", "1,2"], 2, "one number of hours"),
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


@pytest.mark.parametrize(
    ("rle", "gap", "words"),
    [
        ("1x99999999999", "300", "99,999,999,999 ticks; at most 10,000,000"),
        (f"1x{'9' * 5000}", "300", "which is not VALUExCOUNT"),
        (f"{'9' * 5000}x3", "300", "which is not VALUExCOUNT"),
        ("1x9", "1e15", "more than a day"),
    ],
)
def test_numbers_beyond_reason(cli: Cli, tmp_path: Path, rle: str, gap: str, words: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(HEAD + f"a,availability,aws,z,v100,1,,{gap},,{rle}\n")
    result = cli("bench", "spot", "--traces", str(path))
    assert (result.code, words in result.err) == (4, True), result.err
    assert len(result.err) < 300


def test_a_long_series_is_not_damaged(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(HEAD + f"a,availability,aws,z,v100,1,,300,,{'1x1 0x1 ' * 20_000}\n")
    found = cli("bench", "spot", "--traces", str(path), *FAST, "--policies", "greedy", "--json")
    assert found.json["cases"] == 6


PRICES = "trace_id,gap_seconds,n_ticks,on_demand,rle\n"


@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        ("a,300,120,3,1x120\na,300,120,3,2x120\n", 4, "line 3: a is there twice"),
        ("x,300,120,3,1x120\n", 3, "no prices of any series"),
        ("", 3, "no prices of any series"),
        ("a,300,120,0.0000001,1x120\n", 4, "on_demand of a is missing or 0"),
        ("a,300,119,3,1x119\n", 4, "its prices 119 of 300 s"),
        ("a,195,120,3,1x120\n", 4, "its prices 120 of 195 s"),
        ("a,300,120,3,-1x120\n", 4, "price is -1, which cannot be"),
    ],
)
def test_bad_prices(
    cli: Cli, traces: str, tmp_path: Path, lines: str, code: int, words: str
) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(PRICES + lines)
    result = cli("bench", "spot", "--traces", traces, "--prices", str(prices), *FAST)
    assert (result.code, words in result.err) == (code, True), result.err


def test_spot_for_nothing(cli: Cli, traces: str, tmp_path: Path) -> None:
    """The best costs nothing then: no share of it can be told."""
    prices = tmp_path / "prices.csv"
    prices.write_text(PRICES + "c,300,120,3,0x120\n")
    given = ["bench", "spot", "--traces", traces, "--prices", str(prices), *FAST]
    found = cli(*given, "--json").json
    free = found["by_series"]["c"]["by_policy"]
    assert free["greedy"]["gap_to_optimum"] == 0
    assert free["on-demand"]["gap_to_optimum"] is None
    assert found["unpriced"] == ["a", "b"]
    assert "without prices, and so at the usual ones: 2 series" in cli(*given).out


def test_the_same_hours_twice_are_one_configuration(cli: Cli, traces: str) -> None:
    given = ["--traces", traces, *FAST, "--deadline", "5,5.0", "--policies", "greedy", "--json"]
    assert cli("bench", "spot", *given).json["cases"] == 9


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
    assert " on spot and $" in found["on"]
    assert cli(*given, "--start", "99").code == 2
    assert cli(*given[:-1], "zx").code == 3
    for wrong in (["--start", "nan"], ["--start", "inf"], ["--policies", ","]):
        result = cli(*given, *wrong)
        assert (result.code, wrong[0] in result.err) == (2, True), result.err


def test_a_machine_with_both_prices_is_taken(cli: Cli, tmp_path: Path) -> None:
    """The cheapest that makes it has no spot price; and the deadline is ours, which is said."""
    path, work = tmp_path / "t.csv", tmp_path / "work.yaml"
    rows = [line.replace("1x120", "1x999").replace(f",{LENGTH},", ",,") for line in LINES]
    path.write_text(HEAD + "\n".join(rows) + "\n")
    size = "step: 1s, steps: 7200, memory: 10GB"
    work.write_text(f"name: tiny\nwork: {{on: 1xV100-16GB, {size}}}\nlimits: {{budget: $500}}\n")
    given = ["sim", "trace", str(work), "--traces", str(path), "--series", "zc"]
    text = cli(*given, "--series", "c").out
    assert text.startswith("tiny on 1 × ")
    assert "without a deadline, half as much time again" in text


def test_which_zone_was_held_is_drawn(tmp_path: Path) -> None:
    def course(held: tuple[int, ...]) -> Course:
        share = tuple((n + 1) / len(held) for n in range(len(held)))
        return Course("one", held, share, tuple(1e6 * s for s in share), False, 2, len(held) / 10)

    up = ((True,) * 40, (True,) * 40)
    drawn = SpotCaseData(
        ("za", "zb"), up, 0.1, 3.0, 3.5, 9e5, (course((0,) * 10 + (1,) * 10 + (2,) * 10),)
    )
    alone = SpotCaseData(("za",), up[:1], 0.1, 3.0, 3.5, 9e5, (course((0,) * 30),))
    assert drawn.size()[1] > alone.size()[1]
    picture = tmp_path / "case.svg"
    pictures.draw([drawn], picture, title="t", note="n")
    text = picture.read_text()
    # Hours are told however short the case is.
    for word in ("0.5", "3.5", "za", "zb"):
        assert f">{word}</text>" in text, word
    assert "then on-demand" in drawn.caption
    assert "then on-demand" not in alone.caption
