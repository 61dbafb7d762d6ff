"""Command lines that are wrong: one clear sentence, and what to do; and terminals that are narrow,
want no colour, or are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, on_a_terminal
from tests.terminals import uncoloured, without_spinners
from tests.test_docs import ROOT

WORK = ROOT / "examples" / "lora-8b-overnight" / "work.yaml"
RUN = "run-0199f3a1c2d4-5e1d9c"
STORE = str(ROOT / "examples" / "store")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work.yaml").write_text(WORK.read_text())
    (tmp_path / "broken.json").write_text('{"a": 1')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("plan wrk.yaml", 5, "hint: in . there is work.yaml"),
        ("plan .", 5, "hint: in . there is work.yaml"),
        ("run wrk.yaml --local --yes", 5, "hint: in . there is work.yaml"),
        ("run . --local --yes", 5, "name the workload or plan file"),
        ("schema --check wrk.yaml", 5, "hint: in . there is work.yaml"),
        ("plan work.yaml --deadlin 3h", 2, "'--deadline'"),
        ("plan work.yaml --gpus h100", 2, "hint: the workload file says it: gpus"),
        ("plan work.yaml --sequence 4096", 2, "Did you mean '--seq'?"),
        ("run work.yaml --use-spot", 2, "hint: it is --market here"),
        ("plan work.yaml --deadline soon", 2, "not a length of time (for example 48h"),
        ("plan work.yaml --provider awss", 2, "did you mean aws?"),
        ("plan work.yaml --top 0", 2, "0 is not in the range 1<=x<=100"),
        ("run broken.json --local --yes", 4, "tradewind plan … --out FILE"),
        ("run work.yaml --chaos 3s", 2, "go with --local"),
        ("show", 2, "hint: `tradewind ps --all` lists the runs"),
        ("logs", 2, "hint: `tradewind ps --all` lists the runs"),
        ("show nothing", 3, "--store names another store"),
        ("show x --store s4://x", 2, "s3://bucket/prefix"),
        ("logs x --leg one", 2, "'one' is not a whole number"),
        ("top --every often", 2, "'often' is not a number"),
        ("cost --by colour", 2, "one of run, leg, machine"),
        ("ps --al", 2, "'--all'"),
        ("offers h100:8 h200", 2, "ask once for each"),
        ("offers --sort prise", 2, "'accelerator-hour', 'hour'"),
        ("compare p5", 3, "did you mean p5.48xlarge"),
        ("estimate --model llama-3.1-8b --on 9xh100-sxm", 2, "--on 8xH100-SXM --nodes 2"),
        ("catalog refrsh", 2, "did you mean 'refresh'?"),
        ("catalog observe aws us-east-1 p5.48xlarge", 2, "say --available or --no-capacity"),
        ("sim falts", 2, "did you mean 'faults'?"),
        ("bench strtup", 2, "did you mean 'startup'?"),
        ("doctor storage", 2, "'store'"),
        ("completion", 2, "bash"),
        ("explain xyzzy", 3, "lists the topics"),
        ("--verison", 2, "Did you mean '--version'?"),
        ("pln", 2, "did you mean 'plan'?"),
    ],
)
def test_wrong_lines(cli: Cli, folder: Path, line: str, code: int, words: str) -> None:
    ran = cli(*line.split())
    assert ran.code == code, ran.err
    assert words in ran.err
    assert ran.out == ""


def test_two_accelerators_at_once(cli: Cli) -> None:
    both = cli("offers", "h100", "h200", "--json", "-l", "0").json
    assert {row["accelerator"] for row in both["offers"]} >= {"H100-SXM", "H200"}
    assert both == cli("offers", "-a", "h100", "-a", "h200", "--json", "-l", "0").json


NARROW = [
    f"plan {WORK}",
    f"plan {WORK} --all-losers",
    f"plan {WORK} --budget $0.01",
    "offers h100:8",
    "accelerators",
    "accelerators h100",
    "compare p5.48xlarge gpu_8x_h100_sxm5",
    "estimate --model llama-3.1-8b --on 8xH100-SXM",
    f"cost --store {STORE} --by machine",
    f"ps --all --store {STORE}",
    f"show {RUN} --store {STORE}",
    f"report {RUN} --store {STORE}",
    "doctor parts gpus prices",
    "explain",
    "explain out-of-memory",
    "catalog status",
    "catalog doctor",
    f"schema --check {WORK}",
]


@pytest.mark.parametrize("line", NARROW)
def test_a_narrow_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    ran = cli(*line.split())
    assert ran.out
    assert [text for text in ran.out.splitlines() if len(text) > 60] == []
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.parametrize(
    "line", ["doctor parts", "offers h1000", "accelerators h100", "explain late", "plan"]
)
def test_colour_only_where_it_is_wanted(home: Path, line: str) -> None:
    shown = on_a_terminal(home, *line.split())
    plain = on_a_terminal(home, *line.split(), NO_COLOR="1")
    assert uncoloured(shown) != shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain), plain
    assert without_spinners(shown).split() == without_spinners(plain).split()
