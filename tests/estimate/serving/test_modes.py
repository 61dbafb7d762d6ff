from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.estimate.serving.questions import cases
from tradewind.estimate.serving import chips, modes, passes
from tradewind.estimate.serving.cases import MODES, Cases
from tradewind.estimate.serving.constants import TERMS, Constants, fitted

LOADS = 2.0 ** np.arange(12)
LAYOUTS: list[Mapping[str, Any]] = [
    {},
    {"model": "llama-3.1-70b", "weights": "fp8"},  # nearly fills its memory
    {"model": "mixtral-8x7b", "group": 2},
    {"model": "deepseek-r1", "chip": "B200", "weights": "fp4", "group": 8, "spread_attention": 1},
    {"model": "deepseek-r1", "chip": "H200", "weights": "fp8", "group": 8, "prefill_group": 8,
     "prefill_workers": 2},
]  # fmt: skip


def seen(asked: Cases, constants: Constants | None = None) -> modes.Seen:
    return modes.predict(asked, (constants or fitted()).terms(asked))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("output", [20, 1000])
def test_more_clients_never_lower_a_latency(layout: Mapping[str, Any], output: int) -> None:
    for constants in (fitted(), Constants({})):
        found = seen(cases(**layout, concurrency=LOADS, output=output), constants)
        for latency in (found.tpot, found.ttft):
            assert (np.diff(latency) >= -1e-6 * latency[1:]).all()
        assert (np.diff(found.running) >= -1e-6).all()


@pytest.mark.parametrize("layout", LAYOUTS[:4])
def test_a_higher_rate_never_lowers_a_latency(layout: Mapping[str, Any]) -> None:
    found = seen(cases(**layout, mode="server", rate=0.1 * LOADS))
    for latency in (found.tpot, found.ttft):
        assert (np.diff(latency) >= -1e-6 * latency[1:]).all()


def test_more_replicas_never_raise_a_latency() -> None:
    replicas = np.array([1.0, 2, 4, 8])
    found = seen(cases(concurrency=256, replicas=replicas))
    assert (np.diff(found.tpot) <= 0).all()
    assert (np.diff(found.ttft) <= 0).all()
    assert (np.diff(found.tokens_per_s) >= 0).all()


@pytest.mark.parametrize("mode", MODES)
def test_longer_prompts_are_never_quicker(mode: str) -> None:
    lengths = np.array([100.0, 400, 1600, 6400])
    found = seen(cases(input=lengths, mode=mode, batch=16, rate=1.0))
    assert (np.diff(found.tpot) >= 0).all()
    assert (np.diff(found.ttft) >= 0).all()


def test_where_weights_nearly_fill_the_memory_throughput_collapses() -> None:
    """A 70B model in 8 bits on one H100: per accelerator several times less than on two."""
    one, two = (
        seen(
            cases("llama-3.1-70b", weights="fp8", kv_bytes=1.0, group=group, mode="offline",
                  input=2048, output=2048, engine="trtllm", software="trtllm")
        ).tokens_per_s[0]
        / group
        for group in (1, 2)
    )  # fmt: skip
    assert 1.8 < two / one < 8


def test_decoding_alone_reads_the_weights_once_a_token() -> None:
    """With nothing but reading, a step is bytes over bandwidth."""
    nothing = {name: -40.0 for name in TERMS if name not in ("all", "weights", "roofline")}
    plain = Constants(nothing | {"weights": -np.log(TERMS["weights"].start)})
    asked = cases(input=1, output=2, batch=1, mode="static")
    read = (8.03e9 - 128_256 * 4096) * 2
    assert seen(asked, plain).tpot[0] == pytest.approx(read / 3.35e12, rel=0.01)


def test_experts_touched_grow_from_those_of_one_token_to_all() -> None:
    tokens = np.array([1.0, 10, 100, 10_000])
    share = passes.touched(cases("mixtral-8x7b"), tokens)
    assert share[0] == pytest.approx(2 / 8)
    assert (np.diff(share) > 0).all()
    assert share[-1] == pytest.approx(1)
    assert (passes.touched(cases(), tokens) == 1).all()


def test_little_s_law_holds_of_clients() -> None:
    found = seen(cases(concurrency=LOADS))
    stay = found.ttft + 200 * found.tpot
    assert found.tokens_per_s / 200 * stay == pytest.approx(LOADS, rel=0.02)


def test_a_replica_never_runs_more_than_its_cache_holds() -> None:
    asked = cases("llama-3.1-70b", weights="fp8", concurrency=LOADS)
    terms = fitted().terms(asked)
    assert (seen(asked).running <= modes.capacity(asked, terms) + 1e-9).all()


def test_a_run_begins_with_a_burst_which_means_count_and_medians_do_not() -> None:
    plain = Constants({})
    mean, median = (
        seen(cases(concurrency=np.array([1.0, 8, 64]), mean=of), plain).ttft for of in (1.0, 0.0)
    )
    assert mean[0] == pytest.approx(median[0])  # one client is no burst
    assert (np.diff(mean - median) > 0).all()


def test_ports_are_slower_the_older_they_are() -> None:
    parts = Constants({"all.away progress.away": 0.5})
    years = np.array([2024.5, 2026.5])
    for engine, family, slower in (
        ("vllm", "cdna", True), ("vllm", "hopper", False), ("atom", "cdna", False),
        ("llama.cpp", "apple", False), ("llama.cpp", "xe", True), ("mlc-llm", "rdna", False),
    ):  # fmt: skip
        asked = cases(engine=engine, family=family, year=years)
        old, new = seen(asked, parts).tpot / seen(asked, Constants({})).tpot
        assert new == pytest.approx(1.0)
        assert bool(old > 1.5) is slower


def test_an_engine_by_layers_has_one_die_of_a_card_at_work() -> None:
    card = chips.extra()["MI250"]
    whole, half = (chips.columns(card, "fp16", 1.0, by_layers=it) for it in (False, True))
    for rate in ("peak", "peak16", "bandwidth"):
        assert half[rate] == whole[rate] / 2
    assert half["memory"] == whole["memory"]
