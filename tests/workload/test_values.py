"""Workloads made in Python: derived facts, and what a value refuses about itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.workload.making import NOW
from tradewind import Checkpoint, Data, Job, Limits, Measured, Train, Workload
from tradewind.base.errors import InvalidValue
from tradewind.base.units import Micros
from tradewind.estimate.cases import STACKS as ESTIMATED
from tradewind.estimate.measurements import stack_of
from tradewind.estimate.question import RECOMPUTES, SHARDINGS
from tradewind.model import train as values


def train(**more: Any) -> Train:
    given: dict[str, Any] = {"model": "llama-3.1-8b", "sequence": 8192, "global_batch": 512} | more
    return Train(**given)


@pytest.mark.parametrize(
    ("made", "tokens", "samples", "steps", "per_step"),
    [
        (train(tokens=10**10), 10**10, 1_220_704, 2_385, 512),
        (train(steps=100), 100 * 512 * 8192, 51_200, 100, 512),
        (train(samples=1000), 1000 * 8192, 1000, 2, 512),
        (train(epochs=2.5, dataset_samples=1000), 2500 * 8192, 2500, 5, 512),
        (train(epochs=2, dataset_tokens=8192 * 600), 1200 * 8192, 1200, 3, 512),
        (train(epochs=9, dataset_samples=1_280_000, sequence=None), None, 11_520_000, 22_500, 512),
        (train(tokens=10**6, global_batch=None, global_batch_tokens=4_000_000), 10**6, 123, 1, 512),
        (train(steps=9, global_batch=None, global_batch_tokens=4_300_000), 9 * 2**22, 4608, 9, 512),
        (train(steps=9, global_batch=None, global_batch_tokens=5 * 10**6), 44974080, 5490, 9, 610),
        (train(tokens=10**10, steps=2500, global_batch=None, global_batch_tokens=4 * 10**6),
         10**10, 1_220_704, 2502, 488),
        (train(tokens=10**6, global_batch=None, global_batch_tokens=1), 10**6, 123, 123, 1),
        (train(tokens=10**10, steps=2_385), 10**10, 1_220_704, 2_385, 512),
    ],
)  # fmt: skip
def test_amounts(made: Train, tokens: int, samples: int, steps: int, per_step: int) -> None:
    whole = Workload(train=made)
    assert (whole.total_tokens, whole.total_steps, whole.sequences_per_step) == (
        tokens,
        steps,
        per_step,
    )
    assert made.total_samples == samples


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: train(), "how much training"),
        (lambda: train(tokens=0), "train.tokens: 0 is not more than 0"),
        (lambda: train(tokens="10B"), "train.tokens: '10B' is not a whole number"),
        (lambda: train(tokens=True), "True is not a whole number"),
        (lambda: train(tokens=10**30), "more than can be"),
        (lambda: train(tokens=1e9), "is not a whole number"),
        (lambda: train(steps=1, epochs=float("nan"), dataset_samples=1), "epochs: nan"),
        (lambda: train(steps=1, lora=8, qlora=8), "there is lora too"),
        (lambda: train(steps=1, precision="int3"), "'int3' is none of bf16"),
        (lambda: train(steps=1, global_batch_tokens=5), "there is global_batch_tokens too"),
        (lambda: train(steps=1, model=""), "train.model: '' is no text"),
        (lambda: train(steps=1, flash_attention=1), "neither true nor false"),
        (lambda: Measured(accelerator="T4"), "how long"),
        (lambda: Measured(accelerator="T4", hours=-1), "work.hours: -1 is not"),
        (lambda: Measured(accelerator="T4", hours=1, count=0), "work.on: 0"),
        (lambda: Data(uri=""), "data.uri"),
        (lambda: Data(uri="s3://a", region="eu-west-1"), "whose region"),
        (lambda: Checkpoint(every_s=0), "checkpoint.every: 0"),
        (lambda: Limits(budget=Micros(0)), "limits.budget: 0"),
        (lambda: Limits(markets=()), "an empty list allows nothing"),
        (lambda: Limits(markets=("sport",)), "'sport' is none of"),  # type: ignore[arg-type]
        (lambda: Limits(providers="aws"), "is not a tuple"),  # type: ignore[arg-type]
        (lambda: Limits(confidence=1.0), "between 0 % and 100 %"),
        (lambda: Limits(deadline=datetime(2026, 12, 1)), "no time zone"),  # noqa: DTZ001
        (lambda: Limits(deadline=NOW, within_s=5), "both a moment and a length"),
        (lambda: Limits(providers=("aws",), exclude=("a*",)), "is excluded too"),
        (lambda: Job(command=" "), "run.command"),
        (lambda: Workload(), "what is to do"),
        (lambda: Workload(name="Ä", work=Measured(accelerator="T4", hours=1)), "no name"),
        (lambda: Workload(train={"model": "x"}), "is no Train"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_cannot_be_meant_is_not_made(make: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        make()


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidValue) as caught:
        train(tokens=0, tp=0, precision="x")
    assert len(caught.value.message.splitlines()) == 3


def test_limits_decide_about_places_and_accelerators() -> None:
    limits = Limits(
        providers=("aws", "g*", "vast"),
        regions=("eu-*", "gcp/Europe-west4", "*/EU"),
        exclude=("aws/eu-west-2",),
        accelerators=("h100*", "A100-80GB"),
    )
    assert limits.allows("aws", "eu-west-1")
    assert not limits.allows("aws", "eu-west-2")
    assert not limits.allows("azure", "eu-west-1")
    assert limits.allows("gcp", "europe-west4")
    assert not limits.allows("gcp", "europe-west2")
    assert limits.allows("vast", "France/FR/EU")
    assert limits.allows_accelerator("H100-SXM")
    assert not limits.allows_accelerator("A100-40GB")
    assert Limits().allows("anyone", "anywhere")
    assert Limits().allows_accelerator("T4")


def test_deadlines() -> None:
    assert Limits().deadline_at(NOW) is None
    assert Limits(within_s=3600).deadline_at(NOW) == NOW + timedelta(hours=1)
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    assert Limits(deadline=moment).deadline_at(NOW) == moment


def test_values_are_frozen_and_can_be_keys() -> None:
    one, other = (Workload(train=train(steps=5)) for _ in range(2))
    assert {one: 1}[other] == 1


def test_words_mean_something_to_the_estimate() -> None:
    """The estimate takes any stack and answers for its nearest kin; ours must all be told apart."""
    assert {stack_of(name) for name in values.STACKS} == set(ESTIMATED) - {"megatron-preFA"}
    assert set(values.SHARDINGS) == set(SHARDINGS)
    assert set(values.RECOMPUTES) == set(RECOMPUTES)


def test_an_area_is_every_region_in_its_countries() -> None:
    """A region that is called `eu` is of who knows which country."""
    limits = Limits(regions=("EU", "us-east-1"), exclude=("aws/eu-west-3",))
    assert limits.allows("aws", "eu-central-1", "DE")
    assert limits.allows("aws", "us-east-1", "US")
    assert not limits.allows("aws", "eu-west-3", "FR")
    assert not limits.allows("aws", "eu-west-2", "GB")
    assert not limits.allows("coreweave", "eu", "")
    without = Limits(exclude=("US",))
    assert without.allows("gcp", "europe-west4", "NL")
    assert not without.allows("gcp", "us-east1", "US")
    assert not without.allows("vultr", "any", ""), "it may be there"
