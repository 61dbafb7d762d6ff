from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from tradewind import catalog
from tradewind.base.errors import InvalidValue
from tradewind.bench.inference import finder
from tradewind.estimate import registry
from tradewind.estimate.serving.onepass import Answer, Question, ask
from tradewind.model import Accelerator

MODELS = ("bert-base", "vit-l-16", "resnet-50", "stable-diffusion-xl", "whisper-large-v3", "t5-3b")
LOADS = [1, 2, 3, 7, 16, 100, 1000, 20_000]


@cache
def accelerators() -> Mapping[str, Accelerator]:
    return catalog.load(account=False).accelerators


def question(model: str, chip: str = "A100-80GB", **changed: Any) -> Question:
    asked = Question(model=registry.find(model), accelerator=accelerators()[chip])
    return replace(asked, **changed)


def mean(found: Answer) -> float:
    return found.latency_ms["mean"] or float("inf")


@pytest.mark.parametrize("model", MODELS)
def test_more_at_once_is_never_quicker_nor_smaller(model: str) -> None:
    found = [ask(question(model, concurrency=clients)) for clients in LOADS]
    for fewer, more in pairwise(found):
        assert mean(more) >= mean(fewer)
        assert more.requests_per_s >= fewer.requests_per_s * (1 - 1e-9)
        assert more.memory_gb["activations"] >= fewer.memory_gb["activations"]
        assert more.batch <= more.most_at_once


@pytest.mark.parametrize("model", MODELS)
def test_a_higher_rate_is_never_quicker_and_in_the_end_too_much(model: str) -> None:
    most = ask(question(model)).most_requests_per_s
    shares = (0.01, 0.1, 0.3, 0.6, 0.9, 0.99)
    found = [ask(question(model, rate=share * most)) for share in shares]
    for lower, higher in pairwise(found):
        assert higher.stable
        assert mean(higher) >= mean(lower)
        assert (higher.latency_ms["p99"] or 0) >= (lower.latency_ms["p99"] or 0)
    over = ask(question(model, rate=1.01 * most))
    assert not over.stable
    assert over.latency_ms == {"mean": None, "p99": None}
    assert mean(ask(question(model, rate=0.9 * most, count=4))) <= mean(found[-2])


@pytest.mark.parametrize(
    ("model", "chip", "weights", "tokens", "milliseconds"),
    [  # MLPerf inference, one stream, 90th percentiles
        ("bert-large", "H100-PCIe", "int8", 384, 1.35),
        ("bert-large", "A40", "int8", 384, 2.15),
        ("bert-large", "A2", "int8", 384, 8.55),
        ("resnet-50", "L4", "int8", None, 0.387),
        ("resnet-50", "L40", "int8", None, 0.319),
    ],
)
def test_a_lone_request_takes_as_long_as_was_published(
    model: str, chip: str, weights: str, tokens: int | None, milliseconds: float
) -> None:
    asked = Question(
        model=registry.find(model), accelerator=finder()(chip), weights=weights, engine="tensorrt",
        input=tokens,
    )  # fmt: skip
    assert mean(ask(asked)) == pytest.approx(milliseconds, rel=0.45)


def test_what_is_more_takes_longer() -> None:
    def alone(model: str, **changed: Any) -> float:
        return mean(ask(question(model, **changed)))

    assert alone("bert-base", input=512) > alone("bert-base", input=64)
    assert alone("t5-3b", output=200) > 1.5 * alone("t5-3b", output=100)
    twice = alone("stable-diffusion-xl", steps=40) / alone("stable-diffusion-xl", steps=20)
    assert twice == pytest.approx(2, rel=0.01)
    assert alone("stable-diffusion-xl") > alone("stable-diffusion-xl", guided=False)


@pytest.mark.parametrize(
    ("model", "changed", "says"),
    [
        ("bert-base", {"input": 513}, "512"),
        ("bert-base", {"output": 5}, "--output"),
        ("bert-base", {"steps": 5}, "--steps"),
        ("resnet-50", {"input": 5}, "--input"),
        ("whisper-small", {"input": 5}, "--input"),
        ("bert-base", {"weights": "fp8"}, "fp8"),
        ("bert-base", {"rate": 0.0}, "0 requests"),
        ("bert-base", {"rate": float("nan")}, "requests a second"),
        ("bert-base", {"concurrency": 0}, "concurrency"),
        ("bert-base", {"engine": "foo"}, "foo"),
    ],
)
def test_what_means_nothing_is_refused(model: str, changed: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        ask(question(model, **changed))


def test_what_does_not_fit_says_so() -> None:
    found = ask(question("t5-11b", chip="T4"))
    assert not found.fits
    assert found.most_at_once == 0
