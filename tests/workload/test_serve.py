from __future__ import annotations

import pytest

from tests.workload.making import KNOWN, NOW
from tradewind import workload
from tradewind.base.errors import BadWorkload
from tradewind.model.lengths import Lengths
from tradewind.model.serve import Serve

CHAT = """
serve:
  model: gpt2-xl
  rate: 12/s
  input: median 600, p95 3000
  output: 200
  ttft: 500ms p99
  tpot: 40ms
"""


def read(text: str) -> Serve:
    found = workload.read(text, "chat.yaml", now=NOW, known=KNOWN).serve
    assert found is not None
    return found


def test_traffic_and_targets_are_read() -> None:
    found = read(CHAT)
    assert found.rate == 12
    assert found.input == Lengths.lognormal(median=600, p95=3000)
    assert found.targets == {"ttft": (0.5, 0.99), "tpot": (0.04, 0.95)}
    assert found.availability == 0.99
    assert not found.scale_to_zero


@pytest.mark.parametrize(
    ("text", "rate"),
    [("12", 12), ("720/min", 12), ("43.2k per hour", 12), ("2M/day", 2e6 / 86_400)],
)
def test_rates_as_people_write_them(text: str, rate: float) -> None:
    assert read(CHAT.replace("12/s", text)).rate == pytest.approx(rate)


def test_lengths_may_be_shares() -> None:
    found = read(CHAT.replace("output: 200", "output: {100: 75%, 500: 25%}")).output
    assert found is not None
    assert found.mean == pytest.approx(200)


def test_a_trace_takes_the_place_of_rate_and_lengths() -> None:
    found = read("serve: {model: gpt2-xl, trace: seen.csv.gz, e2e: p95 9s}")
    assert found.trace == "seen.csv.gz"
    assert found.targets == {"e2e": (9.0, 0.95)}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("12/s", "12/fortnight", "is not a rate of requests"),
        ("12/s", "0", "not more than 0"),
        ("500ms p99", "quickly", "500ms p99"),
        ("500ms p99", "500ms p20", "from p50 to p99.9"),
        ("  ttft: 500ms p99\n  tpot: 40ms\n", "", "ttft, tpot or e2e is missing"),
        ("  rate: 12/s\n", "", "rate, curve or trace is missing"),
        ("output: 200", "output: {100: 75%, 500: 35%}", "110%"),
        ("output: 200", "output: 200\n  trace: a.csv", "there is a trace"),
        ("output: 200", "output: 200\n  curve: [1, 2, 3]", "24 of a day"),
        ("output: 200", f"output: 200\n  curve: {[0] * 24}", "nobody asks"),
        ("output: 200", "output: 200\n  availability: 100%", "availability"),
        ("output: 200", "output: 200\n  warm: 3\n  scale_to_zero: true", "scale_to_zero is true"),
        ("output: 200", "output: 200\n  burst: 99", "from 0.1 to 20"),
        ("output: 200", "output: 200\n  qps: 3", "qps"),
        ("serve:", "work: {hours: 1, on: T4}\nserve:", "a workload is one of them"),
    ],
)
def test_what_cannot_be_meant_is_told_with_what_can(old: str, new: str, says: str) -> None:
    with pytest.raises(BadWorkload, match=says):
        read(CHAT.replace(old, new))
