"""Where a workload belongs: constraints rule out, the cheapest of the rest is chosen, and its
crossovers are those of published comparisons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Cli, cli, home
from tradewind.base.errors import InvalidValue
from tradewind.economics import facts
from tradewind.economics.placing import MONTH_S, RUNS, Asked, Way, crossover, place
from tradewind.planning.placing import managed

__all__ = ["cli", "home"]

BUSY = Asked(requests_day=20_000, seconds=2.0, peak=1.0)
MACHINE = Way(kind="cloud machine", words="a machine", always_month=500.0, rtt_s=0.05)
SERVERLESS = Way(kind="serverless GPU", words="by the second", usd_request=0.002, leaves="any")
EDGE = Way(
    kind="edge device", words="a box", always_month=20.0, seconds=9.0, memory_gb=8, leaves="own",
    online=False,
)  # fmt: skip
ALL = [MACHINE, SERVERLESS, EDGE]
PLACE = ("place", "--on", "L4", "--requests", "5k", "--seconds", "2")


def test_the_cheapest_that_keeps_every_constraint() -> None:
    assert place(BUSY, ALL).best.way is EDGE  # type: ignore[union-attr]
    assert place(replace(BUSY, latency_s=3.0), ALL).best.way is MACHINE  # type: ignore[union-attr]
    few = replace(BUSY, requests_day=100, latency_s=3.0)
    assert place(few, ALL).best.way is SERVERLESS  # type: ignore[union-attr]
    assert place(replace(few, keep="cloud"), ALL).best.way is MACHINE  # type: ignore[union-attr]
    assert place(replace(few, offline=True), ALL).best is None
    reasons = {v.way.kind: v.why_not for v in place(replace(BUSY, memory_gb=18), ALL).verdicts}
    assert "8 GB of memory" in reasons["edge device"]


def test_a_cold_start_that_many_would_wait_for_rules_out() -> None:
    cold = replace(SERVERLESS, cold_s=20.0, window_s=60.0)
    quick = replace(BUSY, latency_s=3.0)
    assert place(quick, [cold]).best is not None
    rare = place(replace(quick, requests_day=500), [cold])
    assert "cold start" in rare.verdicts[0].why_not


@pytest.mark.parametrize(
    ("always_hour", "used_hour", "context"),
    [(1.0558, 1.42092, "GKE Autopilot L4")],
)
def test_published_duty_of_serverless(always_hour: float, used_hour: float, context: str) -> None:
    row = next(r for r in facts.table("factors").rows if context in r["context"])
    vm = Way(kind="cloud machine", words="", always_month=always_hour * 730, whole=True)
    less = Way(kind="serverless GPU", words="", usd_request=used_hour / 3600)
    at = crossover(Asked(requests_day=50_000, seconds=1.0), vm, less)
    assert at is not None
    assert at / 86_400 == pytest.approx(row.number("value"), abs=0.005)


def test_published_hours_of_a_scaled_down_replica() -> None:
    """14 GPU-hours a day: a T4 replica at 0.78 USD/h against 331 USD a month."""
    row = facts.table("factors").where(factor="break_even_duty")[0]
    vm = Way(kind="cloud machine", words="", always_month=331.0, whole=True)
    less = Way(kind="serverless GPU", words="", usd_request=0.78 / 3600)
    at = crossover(Asked(requests_day=50_000, seconds=1.0), vm, less)
    assert at is not None
    assert at / 3600 == pytest.approx(row.number("value"), abs=0.1)


def test_serverless_premium_is_a_duty() -> None:
    """1.20 to 1.37 times the price by the second wins below 0.83 to 0.73 of the time."""
    for premium, duty in ((1.2, 0.833), (1.37, 0.73)):
        vm = Way(kind="cloud machine", words="", always_month=730.0, whole=True)
        less = Way(kind="serverless GPU", words="", usd_request=premium / 3600)
        at = crossover(Asked(requests_day=50_000, seconds=1.0), vm, less)
        assert at is not None
        assert at / 86_400 == pytest.approx(duty, abs=0.005)


@given(
    requests=st.floats(1, 1e6), seconds=st.floats(0.01, 30),
    latency=st.one_of(st.none(), st.floats(0.1, 60)), keep=st.sampled_from(["any", "cloud", "own"]),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_the_path_leads_to_the_verdict(
    requests: float, seconds: float, latency: float | None, keep: str
) -> None:
    asked = Asked(requests_day=requests, seconds=seconds, latency_s=latency, keep=keep)
    found = place(asked, ALL)
    if found.best is None:
        assert all(v.why_not for v in found.verdicts)
        return
    assert found.path[-1].yes
    assert found.path[-1].to == found.best.way.kind
    assert found.best.month == min(v.month for v in found.verdicts if not v.why_not)


@pytest.mark.parametrize(
    "change", [{"requests_day": 0.0}, {"seconds": -1.0}, {"peak": 0.5}, {"latency_s": 0.0}]
)
def test_impossible_questions_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        replace(BUSY, **change)  # type: ignore[arg-type]


def test_the_command_decides_and_draws(cli: Cli, tmp_path: Path) -> None:
    picture = tmp_path / "place.svg"
    ran = cli(*PLACE, "--memory", "18GB", "--plot", str(picture))
    assert ran.code == 0, ran.err
    assert "What decides it" in ran.out
    assert "Must it work without a network?" in picture.read_text()
    found = cli(*PLACE, "--memory", "18GB", "--json").json
    assert {way["kind"] for way in found["ways"]} >= {
        "cloud machine", "spot machine", "managed service", "serverless GPU", "edge device",
    }  # fmt: skip
    assert all(way["source"] for way in found["ways"])
    assert found["best"] == found["path"][-1]["to"]
    more = cli(*PLACE, "--cpu-seconds", "5", "--api-price", "$0.001", "--json").json
    assert {"CPU", "model API"} <= {way["kind"] for way in more["ways"]}
    far = cli(*PLACE, "--data", "2TB", "--data-at", "aws/us-east-1", "--json").json
    assert any(way["once_usd"] for way in far["ways"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--requests", "0"), "requests a day"),
        (("--seconds", "-1"), "seconds"),
        (("--data", "2TB"), "--data-at"),
        (("--users", "frankfurt"), "not a place"),
        (("--on", "L9"), "L9"),
        (("--api-price", "€1"), "€1"),
        (("--memory", "18"), "no unit"),
        (("--plot", "x.gif"), "FILE.png"),
    ],
)
def test_bad_input_is_told(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    ran = cli(*PLACE, *arguments)
    assert ran.code in (2, 3)
    assert words in ran.err


RUN = Asked(requests_day=4 / RUNS.days, seconds=36_000.0, peak=1.0, unit=RUNS)


def test_work_comes_so_often_a_month() -> None:
    rented = Way(kind="cloud machine", words="", usd_request=100.0, seconds=36_000.0)
    bought = Way(kind="own machines", words="", always_month=2000.0, seconds=36_000.0, at_once=2)
    found = place(RUN, [rented, bought])
    assert found.best is not None
    assert found.best.way is rented
    assert found.best.month == pytest.approx(400)
    assert found.crossovers == (
        "cloud machine is cheaper below 20 runs a month, own machines above",
    )
    late = place(replace(RUN, latency_s=18_000.0), [rented])
    assert late.verdicts[0].why_not == "takes 10h"
    assert "Must it be done within 5h?" in [step.question for step in late.path]
    with pytest.raises(InvalidValue, match="runs a month"):
        replace(RUN, requests_day=0.0)


def test_servers_are_bought_for_so_many_runs_at_once() -> None:
    bought = Way(kind="own machines", words="", always_month=1.0, seconds=MONTH_S, at_once=4)
    for runs, servers in ((0.5, 1), (3.2, 1), (3.3, 2), (7.0, 3)):
        assert bought.machines(replace(RUN, requests_day=runs / RUNS.days)) == servers


def test_a_service_takes_what_is_known_of_the_type_or_its_family() -> None:
    assert "aws" in managed.providers()
    exact = managed.surcharge("aws", "g5.12xlarge")
    assert exact is not None
    assert (exact.ratio, exact.doubt) == (1.25, "")
    kin = managed.surcharge("aws", "p5.4xlarge")
    assert kin is not None
    assert kin.ratio == 1.15
    assert "taken as of p5.48xlarge" in kin.doubt
    assert managed.surcharge("a-cloud-without", "x") is None


WORK = """
train: {model: llama-3.1-8b, tokens: 20M, sequence: 2048, global_batch: 32, lora: 16}
limits: {deadline: 12h, accelerators: [L40S, H100-SXM]}
"""


def test_work_of_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "work.yaml").write_text(WORK)
    found = cli("place", str(tmp_path / "work.yaml"), "--runs", "3", "--json").json
    ways = {way["kind"]: way for way in found["ways"]}
    assert {"cloud machine", "spot machine", "managed service", "serverless GPU", "own machines",
            "edge device"} == set(ways)  # fmt: skip
    one = cli("plan", str(tmp_path / "work.yaml"), "--market", "on_demand", "--json").json
    assert ways["cloud machine"]["usd_month"] == pytest.approx(
        3 * one["best"]["cost_usd"], abs=0.02
    )
    assert ways["managed service"]["usd_month"] > ways["cloud machine"]["usd_month"]
    assert any("runs a month, own machines above" in text for text in found["crossovers"])
    ours = cli("place", str(tmp_path / "work.yaml"), "--keep", "own")
    assert ours.code == 0
    assert "Own machines: 1 server" in ours.out
    assert "yes → only machines of your own" in ours.out


SERVE = """
serve: {model: llama-3.1-8b, rate: 3/s, input: 600, output: 150, ttft: 1s p95, tpot: 60ms p95}
limits: {accelerators: [L40S]}
"""


def test_a_model_that_is_served(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(SERVE)
    found = cli("place", str(tmp_path / "chat.yaml"), "--json").json
    ways = {way["kind"]: way for way in found["ways"]}
    assert {"cloud machine", "spot machine", "managed service", "serverless GPU", "model API",
            "own machines", "edge device"} == set(ways)  # fmt: skip
    plan = cli("plan", str(tmp_path / "chat.yaml"), "--json").json["best"]
    rented = min(ways[kind]["usd_month"] for kind in ("spot machine", "cloud machine"))
    assert rented == pytest.approx(plan["usd_a_month"], abs=0.01)
    assert ways["managed service"]["usd_month"] > ways["cloud machine"]["usd_month"]
    assert found["best"] == found["path"][-1]["to"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--requests", "5k"), "leave --requests"),
        (("--users", "aws/us-east-1"), "leave --users"),
        (("--runs", "0"), "runs a month"),
        (("--runs", "-2"), "negative"),
    ],
)
def test_options_that_a_file_answers(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "work.yaml").write_text(WORK)
    ran = cli("place", str(tmp_path / "work.yaml"), *arguments)
    assert ran.code in (2, 3)
    assert words in ran.err


def test_which_workload_is_asked(cli: Cli) -> None:
    ran = cli("place", "--requests", "5k")
    assert ran.code == 2
    assert "missing --on, --seconds" in ran.err
    assert "Name a file" in ran.err


def test_nothing_is_an_answer_too(cli: Cli) -> None:
    ran = cli(*PLACE, "--latency", "0.1")
    assert ran.code == 3
    assert "nothing keeps every constraint" in ran.err
    assert "answers in" in ran.out
