"""A profile and the registry tell the same of one model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch")

from tests.catalog.small import REAL
from tests.torch import wellknown
from tradewind.base.errors import InvalidValue
from tradewind.estimate import registry
from tradewind.estimate.answer import answer
from tradewind.estimate.columns import parameters
from tradewind.estimate.question import Question
from tradewind.torch.profiling.profile import profile

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "factory", "micro"),
    [
        ("gpt2", wellknown.gpt2, 8),
        ("llama-3.2-1b", wellknown.llama_1b, 2),
        ("resnet-50", wellknown.resnet50, 128),
    ],
)
def test_a_profile_agrees_with_the_registry(
    name: str, factory: Callable[[], Any], micro: int
) -> None:
    known, counted = registry.find(name), profile(factory, name=name)
    assert parameters(counted) == pytest.approx(parameters(known), rel=0.25)  # one head or two
    for chip in ("A100-80GB", "H100-SXM", "L4", "B200"):
        for stack in ("fsdp-compile", "fsdp-eager"):
            asked: dict[str, Any] = {
                "accelerator": REAL.accelerators[chip], "per_node": 8, "global_batch": 2048,
                "micro_batch": micro, "stack": stack, "sharding": "zero3", "recompute": "none",
            }  # fmt: skip
            split: dict[str, Any] = {} if name == "resnet-50" else {"tp": 1, "pp": 1}
            first = answer(Question(model=known, **asked, **split))
            second = answer(Question(model=counted, **asked))
            assert second.step_s == pytest.approx(first.step_s, rel=0.4), (chip, stack)
            # An eager loss in 32 bits keeps more of its logits than these models' own does.
            near = 0.35 if stack == "fsdp-compile" else 0.5
            assert second.memory_gb["peak"] == pytest.approx(first.memory_gb["peak"], rel=near)


def test_inference_is_no_training() -> None:
    counted = profile(wellknown.gpt2, forward_only=True)
    with pytest.raises(InvalidValue, match="no backward pass"):
        answer(Question(model=counted, accelerator=REAL.accelerators["A10G"]))
