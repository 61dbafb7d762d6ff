"""What must hold of every answer, whatever was asked."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.small import REAL
from tradewind.base.errors import InvalidValue
from tradewind.estimate import lora, registry
from tradewind.estimate.advice import advise
from tradewind.estimate.answer import Answer, answer, cases
from tradewind.estimate.layouts import layouts
from tradewind.estimate.memory import GB
from tradewind.estimate.optimizers import STATE
from tradewind.estimate.question import Question
from tradewind.model.shape import Shape

TRANSFORMERS = ["llama-3.1-8b", "gpt2", "mixtral-8x7b", "bert-large-uncased", "t5-3b", "vit-b-16"]
OTHERS = ["resnet-50", "stable-diffusion-xl", "efficientnet-b4", "gnmt", "dit-xl-2", "ncf"]
CHIPS = ["H100-SXM", "A100-40GB", "T4", "V100-16GB", "RTX4090", "TPU-v5e", "MI300X", "K80", "trn1"]


def chip(name: str) -> Any:
    return REAL.accelerators[REAL.names.one(name)]


def question(model: str = "llama-3.1-8b", on: str = "H100-SXM", **more: Any) -> Question:
    return Question(model=registry.find(model), accelerator=chip(on), **({"per_node": 8} | more))


questions = st.builds(
    question,
    st.sampled_from(TRANSFORMERS + OTHERS),
    st.sampled_from(CHIPS),
    per_node=st.sampled_from([1, 2, 4, 6, 8]),
    nodes=st.sampled_from([1, 2, 3, 16]),
    global_batch=st.sampled_from([None, 288, 2304, 4608]),
    optimizer=st.sampled_from(list(STATE)),
    recompute=st.sampled_from([None, "none", "selective", "full"]),
    sharding=st.sampled_from([None, "none", "zero1", "zero2", "zero3", "hybrid"]),
    flash=st.booleans(),
)


def peak(found: Answer) -> float:
    return found.memory_gb["peak"]


@given(questions)
def test_nothing_negative_nan_or_infinite_comes_out(asked: Question) -> None:
    if isinstance(asked.model, Shape) or not asked.batch % asked.devices:
        found = answer(asked)
    else:
        with pytest.raises(InvalidValue, match="cannot be divided"):
            answer(asked)
        return
    numbers = [v for v in asdict(found).values() if isinstance(v, float)]
    for number in [*numbers, *found.memory_gb.values(), *found.seconds.values()]:
        assert math.isfinite(number)
        assert number >= -1e-9
    assert found.samples_per_s == pytest.approx(asked.batch / found.step_s)
    assert sum(found.seconds.values()) == pytest.approx(found.step_s)
    assert found.low_samples_per_s < found.samples_per_s < found.high_samples_per_s
    assert found.high_samples_per_s * found.utilisation <= 1.001 * found.samples_per_s
    lay = found.layout
    assert lay.dp * lay.tp * lay.pp * lay.cp == asked.devices
    assert lay.dp * lay.micro_batch * lay.accumulation == asked.batch
    assert (found.tokens_per_s is None) == (found.sequence is None and found.sample != "token")


@given(questions)
def test_more_nodes_never_need_more_memory_each(asked: Question) -> None:
    fewer = replace(asked, global_batch=9216, micro_batch=1, sharding="zero3", nodes=2)
    if isinstance(asked.model, Shape):
        fewer = replace(fewer, tp=1, pp=1, ep=1)
    more = replace(fewer, nodes=4)
    assert peak(answer(more)) <= peak(answer(fewer)) * 1.001


@given(questions, st.sampled_from(["llama-3.1-8b", "gpt2", "t5-3b"]))
def test_longer_sequences_are_never_faster_for_each_token(asked: Question, name: str) -> None:
    fixed = replace(asked, model=registry.find(name), per_node=8, nodes=1, tp=1, pp=1, cp=1)
    short = replace(fixed, sequence=1024, micro_batch=8, global_batch=256)
    long = replace(fixed, sequence=8192, micro_batch=1, global_batch=32)
    one, other = answer(short).tokens_per_s, answer(long).tokens_per_s
    assert one is not None
    assert other is not None
    assert other <= one * 1.001


@given(questions, st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "gpt2"]), st.booleans())
def test_adapters_never_need_more_than_full_training(
    asked: Question, name: str, quantised: bool
) -> None:
    full = replace(
        asked, model=registry.find(name), per_node=8, nodes=1, global_batch=256, tp=1, pp=1,
        cp=1, ep=1, micro_batch=1, recompute="none", sharding="none",
    )  # fmt: skip
    # Four bits pay where there are weights to speak of.
    adapted = replace(full, lora=8, quantised=quantised and name != "gpt2")
    first, second = answer(full), answer(adapted)
    assert peak(second) <= peak(first)
    assert second.trained_parameters < 0.1 * first.trained_parameters
    if not quantised and name != "gpt2":  # the more kernels slow small work down
        assert second.samples_per_s >= first.samples_per_s * 0.999


@given(questions)
def test_a_larger_optimizer_never_needs_less(asked: Question) -> None:
    fixed = replace(asked, global_batch=9216, micro_batch=1, sharding="none", recompute="none")
    if isinstance(asked.model, Shape):
        fixed = replace(fixed, tp=1, pp=1, cp=1, ep=1)
    found = [
        peak(answer(replace(fixed, optimizer=name)))
        for name in sorted(STATE, key=STATE.__getitem__)
    ]
    assert found == sorted(found)


@given(questions)
@settings(max_examples=20)
def test_advice_is_what_the_changed_question_answers(asked: Question) -> None:
    try:
        found = answer(asked)
    except InvalidValue:
        return
    for each in advise(asked, found):
        assert each.fits
        assert each.peak_gb <= found.usable_gb
        assert not found.fits or each.speedup > 1.02
        assert "{" not in each.change


def test_the_best_layout_is_the_fastest_that_fits() -> None:
    asked = question("llama-2-70b", nodes=8)
    best = answer(asked)
    assert best.fits
    for fixed in ({"tp": 1}, {"tp": 8}, {"recompute": "full"}, {"sharding": "zero1"}):
        assert answer(replace(asked, **fixed)).samples_per_s <= best.samples_per_s


def test_matrices_never_pass_the_peak() -> None:
    for stack in ("megatron", "fsdp-compile"):
        asked = question(
            "gpt3-175b", "A100-80GB", nodes=64, stack=stack, recompute="none", sequence=2048
        )
        found = answer(asked)
        matrices = 6 * 12 * 96 * 12_288**2 * asked.batch * 2048 / asked.devices
        assert found.seconds["matrix"] >= 0.999 * matrices / 312e12


def test_cases_have_one_entry_a_layout() -> None:
    asked = question(nodes=2)
    ways = layouts(asked)
    assert len(cases(asked, ways)) == len(ways) == len(set(ways))


def test_long_sequences_are_split_and_experts_spread() -> None:
    long = answer(question("llama-3.1-8b", sequence=131_072, global_batch=8, nodes=4))
    assert long.layout.cp > 1
    sparse = layouts(question("mixtral-8x7b"))
    assert {way.ep for way in sparse} == {1, 2, 4, 8}
    assert all(way.dp % way.ep == 0 for way in sparse)


def test_hybrid_sharding_stays_inside_a_node() -> None:
    found = answer(question("llama-3.1-8b", nodes=4, sharding="hybrid"))
    assert found.layout.shard == 8 // found.layout.tp
    slow: dict[str, Any] = {
        "network_gbps": 10.0,
        "tp": 1,
        "pp": 1,
        "micro_batch": 1,
        "recompute": "none",
    }
    whole = answer(question("llama-3.1-8b", nodes=4, sharding="zero3", **slow))
    hybrid = answer(question("llama-3.1-8b", nodes=4, sharding="hybrid", **slow))
    assert hybrid.samples_per_s > whole.samples_per_s
    assert peak(hybrid) > peak(whole)


def test_32_bits_take_more_of_everything() -> None:
    fixed: dict[str, Any] = {
        "tp": 1,
        "pp": 1,
        "micro_batch": 1,
        "sharding": "none",
        "recompute": "none",
    }
    half, single = (answer(question("gpt2", precision=p, **fixed)) for p in ("pure-bf16", "fp32"))
    assert single.samples_per_s < half.samples_per_s
    assert single.memory_gb["activations"] == pytest.approx(2 * half.memory_gb["activations"])


def test_what_is_not_said_is_usual() -> None:
    assert question("gpt2").length == 1024
    assert question("llama-3.1-8b").length == 4096
    assert question("vit-b-16").length == 197
    assert question("resnet-50").length == 1
    assert question(per_node=6, nodes=1).batch == 258
    assert question(nodes=100).batch == 800
    assert answer(question("gpt2", "T4")).precision == "fp16"
    assert answer(question("gpt2", "K80", per_node=1)).precision == "fp32"
    assert answer(question("gpt2", "TPU-v5e")).stack == "xla-tpu"
    assert answer(question("gpt2", "trn1")).stack == "xla-tpu"
    assert answer(question("gpt2")).stack == "fsdp-compile"
    assert answer(question("gpt2", stack="maxtext")).stack == "xla-gpu"


def test_adapters_are_as_many_as_people_count() -> None:
    """PEFT prints 41,943,040 for Llama-3-8B at rank 16 on all linear layers."""
    llama = registry.find("llama-3-8b")
    assert isinstance(llama, Shape)
    assert lora.trained_share(llama, 16) * 8_030_261_248 == pytest.approx(41_943_040, rel=1e-3)


def test_published_speeds_of_other_models() -> None:
    """ResNet-50 on eight A100: published at 1,400 to 2,700 images a second each."""
    found = answer(question("resnet-50", "A100-80GB", global_batch=2048))
    assert 1_300 < found.samples_per_s / 8 < 3_000
    assert found.sample == "image"


@pytest.mark.parametrize(
    "name",
    [
        "llama-3.1-8b",
        "mixtral-8x7b",
        "llama-4-maverick-17b-128e",
        "t5-3b",
        "bert-large-uncased",
        "vit-b-16",
    ],
)
def test_the_weights_held_are_those_of_the_model(name: str) -> None:
    asked = question(name, per_node=1, sharding="none", recompute="none", micro_batch=1)
    found = answer(asked)
    assert found.memory_gb["weights"] == pytest.approx(4 * found.parameters / GB, rel=0.06)
    pure = answer(replace(asked, precision="pure-bf16"))
    assert pure.memory_gb["weights"] == pytest.approx(found.memory_gb["weights"] / 2)
