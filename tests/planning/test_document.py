"""Saved plans: what is written is read, and nothing else is."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.base.errors import BadFile
from tradewind.base.units import Micros
from tradewind.model import Checkpoint, Data, Job, Limits, Measured, Train, Workload
from tradewind.model.plan import Plan
from tradewind.model.shape import Work
from tradewind.planning import document

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
PLAN = Plan(
    provider="aws", region="us-east-1", zone="use1-az4", instance_type="p5.48xlarge",
    accelerator="H100-SXM", accelerator_count=8, nodes=2, own=False, markets=("spot", "on_demand"),
    layout={"dp": 16, "sharding": "zero3"}, layout_words="dp 16, zero3", precision="bf16",
    stack="fsdp-compile", samples_per_s=17.3, memory_gb=70.1, capacity_gb=80.0, hours=11.123456789,
    hours_low=9.0, hours_high=14.0, cost=Micros(1_234_567_891), cost_low=Micros(999_999_999),
    cost_high=Micros(1_500_000_001), chance=0.93, work_hours=10.0, startup_hours=0.2,
    on_demand_hours=1.5, spot_hours=9.5, interruptions=2.5, checkpoint_every_s=600,
    checkpoint_bytes=10**11, costs={"spot": 1_234_567_890, "egress": 1},
    price_hour={"spot": 23_456_789}, price_as_of="2026-10-10", price_source="a list",
    band="it was measured",
)  # fmt: skip
TRAIN = Workload(
    name="w",
    train=Train(model="llama-3.1-8b", tokens=10**10, sequence=8192, global_batch_tokens=4 * 10**6),
    data=Data(uri="s3://b/x", size_bytes=1, provider="aws", region="us-east-1"),
    checkpoint=Checkpoint(every_s=60),
    limits=Limits(
        deadline=NOW, budget=Micros(5), regions=("eu-*",), markets=("spot",), confidence=0.9
    ),
    run=Job(command="torchrun train.py\necho done", setup="pip install x"),
)
OTHER = Workload(work=Measured(accelerator="A100-80GB", count=8, step_s=0.35, steps=7, scales=True))
SHAPED = Workload(
    train=Train(
        model=Work(
            name="mine", kind="conv", params=7, forward_flops_per_sample=1.5,
            activation_bytes_per_sample=2.5, moved_bytes_per_sample=3.5, sample="image",
            input="224×224",
        ),
        samples=10, global_batch=2,
    )
)  # fmt: skip


@pytest.mark.parametrize("workload", [TRAIN, OTHER, SHAPED], ids=["train", "work", "shape"])
def test_round_trip(workload: Workload) -> None:
    saved = document.read(document.save(PLAN, workload, made_at=NOW), "plan.json")
    assert saved == document.Saved(plan=PLAN, workload=workload, made_at=NOW)


@given(st.integers(0, 10**15))
def test_money_is_exact(micros: int) -> None:
    from dataclasses import replace

    plan = replace(PLAN, cost=Micros(micros), costs={"spot": micros})
    assert document.read(document.save(plan, OTHER, made_at=NOW), "p").plan == plan


def changed(path: str, value: Any) -> str:
    root = json.loads(document.save(PLAN, TRAIN, made_at=NOW))
    *above, last = path.split(".")
    inner = root
    for name in above:
        inner = inner[name]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(root)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON"),
        ("[]", "no saved plan"),
        ("{}", "no saved plan"),
        ("[" * 100_000, "no JSON"),
        ('{"kind": "tradewind-plan", "format": 1}', "lacks"),
        (changed("format", 2), "format 2, and this Tradewind reads 1"),
        (changed("format", ...), "format null"),
        (changed("extra", 1), "'extra' that is not known"),
        (changed("made_at", "2026-11-15"), "made_at has no time zone"),
        (changed("made_at", 5), "made_at is no date"),
        (changed("plan", []), "plan has no fields"),
        (changed("plan.nodes", ...), "plan lacks nodes"),
        (changed("plan.nodes", "2"), "plan.nodes is no number"),
        (changed("plan.nodes", True), "plan.nodes is no number"),
        (changed("plan.own", 1), "plan.own"),
        (changed("plan.hours", None), "plan.hours is no number"),
        (changed("plan.hours", float("nan")), "no JSON"),
        (changed("plan.cost_usd", "much"), "plan.cost_usd is no number"),
        (changed("plan.costs_usd", {"spot": "x"}), "plan.costs_usd.spot is no number"),
        (changed("plan.markets", "spot"), "plan.markets is no list"),
        (changed("plan.provider", 3), "plan.provider is no text"),
        (changed("workload.train.tokens", -1), "tokens"),
        (changed("workload.train.tokens", "10B"), "tokens"),
        (changed("workload.train.model", {"layers": 3}), "workload.train.model"),
        (changed("workload.train.model", {"layers": "3"}), "workload.train.model.layers"),
        (changed("workload.limits.markets", ["futures"]), "futures"),
        (changed("workload.limits.deadline", "soon"), "workload.limits.deadline"),
        (changed("workload.run", 7), "workload.run has no fields"),
        (changed("workload.train", ...), "train"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(BadFile) as caught:
        document.read(text, "plan.json")
    assert caught.value.message.startswith("plan.json: ")
    assert words in caught.value.message
    assert caught.value.hint


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["train", "model", "limits"]), inner)
        ),
    )
)
def test_nothing_else_escapes(value: Any) -> None:
    for path in ("workload", "workload.train", "workload.limits", "plan.layout", "plan.markets"):
        with suppress(BadFile):
            assert isinstance(document.read(changed(path, value), "p"), document.Saved)
