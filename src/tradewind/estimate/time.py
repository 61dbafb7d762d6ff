"""How long a training step takes, by term. Pure, and vectorised over cases.

    step = ((accumulation + (pp − 1)/vp) · micro + data-parallel + optimizer + fixed) · straggling
    micro = ‖ layers/pp · layer + vocabulary, weight gathering ‖ + pipeline transfer
    layer = ‖ matrix + attention + elementwise + tensor/context/expert traffic, kernel launches ‖

‖a, b‖ is a soft maximum: what overlaps costs little more than the longer of the two. Matrix work
runs at the peak times an efficiency of the accelerator's generation, precision and software stack
that saturates with the width of the matrices and the tokens in a micro-batch. The constants are
fitted to published measurements (`calibrate.py`); their priors and meaning are in `constants.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import Constants

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column

_BANDWIDTH_USED = 0.8  # of the memory's peak, by kernels that only move bytes
_BYTES = 2  # of a value in 16 bits


@dataclass(slots=True)
class StepTime:
    """Seconds of one optimizer step on each device; the terms add up to `step` but for overlap."""

    step: Column
    matrix: Column
    attention: Column
    elementwise: Column
    vocabulary: Column
    recompute: Column
    launch: Column  # what kernel launches add beyond the work
    tensor: Column
    context: Column
    expert: Column
    gather: Column  # what fetching sharded weights adds
    pipeline: Column  # transfers and bubble
    data: Column
    optimizer: Column
    tokens_per_s: Column  # for each device


def step_time(cases: Cases, constants: Constants) -> StepTime:
    import numpy as np

    c, k = cases, constants
    by_stack = k.by_stack(c.stack)
    tokens = c.micro_batch * c.sequence / c.cp
    weights = _Weights(c)
    moe = c.experts > 0

    # -- compute, forward, one layer of one micro-batch
    relative = c.peak / 312e12  # sizes that saturate an A100 are small for what came after it
    inner = np.where(moe, c.d_ff_expert, c.d_ff) / c.tp
    narrow = k["narrow_width"] * np.sqrt(relative) / c.d_model
    narrow_inner = k["narrow_inner"] * np.sqrt(relative) / np.maximum(inner, 1)
    few = k["few_tokens"] * relative / tokens
    efficiency = k.matrix_efficiency(c) * by_stack("matrix")
    rate = c.peak * efficiency / (1 + narrow + narrow_inner + few)
    matrix = 2 * tokens * (weights.attention + weights.dense) / c.tp / rate
    expert_rate = rate * k["expert_matrix"] * np.exp(k["expert_progress"] * (c.year - 2026))
    matrix += 2 * tokens * weights.experts_used / c.tp / expert_rate
    seen = np.where(c.causal > 0, np.where(c.flash > 0, 0.5, 1.0), 1.0) * c.sequence
    attention_flops = 4 * tokens * seen * c.n_heads * c.head_dim / c.tp
    flash = k.flash_efficiency(c) / (1 + k["short_attention"] / c.sequence)
    attention_rate = np.where(c.flash > 0, flash, k["unfused_efficiency"])
    attention = attention_flops / (c.peak16 * attention_rate)
    moved = c.bandwidth * _BANDWIDTH_USED
    scores = c.micro_batch * c.n_heads / c.tp * c.sequence**2 * _BYTES
    attention += np.where(c.flash > 0, 0, scores * k["unfused_bytes"]) / moved
    attention = attention * np.where(c.hybrid > 0, k["hybrid_attention"], 1)
    # Megatron before 2022 did not shard what lies outside the tensor-parallel region.
    outside = c.d_model / np.where(c.stack == "megatron-preFA", 1, c.tp)
    active = np.where(moe, c.d_ff_expert * c.experts_per_token + c.d_ff_shared, c.d_ff)
    active = (active * np.where(c.gated > 0, 1.5, 1) + 2 * c.n_heads * c.head_dim) / c.tp
    passed = tokens * _BYTES * (k["bytes_outside"] * outside + k["bytes_inside"] * active)
    elementwise = by_stack("elementwise") * passed / moved

    # -- traffic within a layer, forward
    inside = c.link * k["link_used"]
    across = c.network * k["network_used"]
    tp_rate = np.where(c.tp <= c.domain, c.link * k["tensor_link_used"], across)
    sent = 2 * (c.tp - 1) / c.tp * tokens * c.d_model * _BYTES
    tensor = 2 * (sent / tp_rate * by_stack("tensor") + by_stack("tensor_latency") * (c.tp - 1))
    tensor = np.where(c.tp > 1, tensor, 0)
    ring = np.where(c.cp * c.tp <= c.domain, inside, across)
    context = tokens * 2 * c.n_kv_heads * c.head_dim / c.tp * _BYTES * (c.cp - 1) / ring
    context = context * k["context_exposed"]
    swap = np.where(c.ep * c.tp <= c.domain, inside, across)
    dispatched = 2 * tokens * c.experts_per_token * c.d_model * _BYTES * (c.ep - 1) / c.ep
    routing = k["routing"] * np.exp(-k["routing_progress"] * (c.year - 2026))
    expert = np.where(moe, dispatched / swap * k["expert_exposed"] + routing, 0)

    # -- a micro-batch on a stage
    forward = matrix + attention + elementwise + tensor + context + expert
    backward = 2 * matrix + 2.5 * attention + k["backward_elementwise"] * elementwise
    backward = backward + tensor + 2 * context + expert
    again = np.where(c.recompute == 2, forward, 0)
    again = again + np.where(c.recompute == 1, attention + 0.3 * elementwise, 0)
    passes = 3 + (c.recompute == 2)
    launches = by_stack("launch") * passes
    worked = (forward + backward + again) * np.where(c.hybrid > 0, k["hybrid_layer"], 1)
    layer = _soft_max(worked, launches, 4)
    stage = c.layers / c.pp
    vocabulary_rate = c.peak16 * k.matrix_efficiency16(c) * by_stack("matrix") / (1 + narrow + few)
    vocabulary = 6 * tokens * c.d_model * c.vocab / c.tp / vocabulary_rate
    vocabulary += tokens * c.vocab / c.tp * k["loss_bytes"] / moved
    compute = stage * layer + vocabulary * np.where(c.pp > 1, k["last_stage"], 1)

    # -- weights and gradients between devices
    held = weights.held / c.tp
    spans = c.devices > c.domain
    ranks = np.maximum(np.minimum(c.domain, c.devices) / c.tp, 1)
    dp_rate = np.where(spans, np.minimum(inside, across * np.minimum(ranks, c.dp)), inside)
    local = (c.zero == 3) & (c.shard < c.dp)
    gathered = held * _BYTES * (c.shard - 1) / c.shard / np.where(local, inside, dp_rate)
    gather = np.where(c.zero == 3, 3 * gathered, 0)
    micro = _soft_max(compute, gather, by_stack("overlap"))
    boundary = tokens * outside * _BYTES / np.where(c.tp * c.pp <= c.domain, inside, across)
    hop = np.where(c.pp > 1, 2 * (boundary + k["hop_latency"]) * c.vp * k["hop_exposed"], 0)
    turns = c.accumulation + (c.pp - 1) / c.vp
    reduced = held * 4 * 2 * (c.dp - 1) / c.dp / dp_rate
    far = np.maximum(c.dp * c.tp / c.domain - 1, 0)
    data = reduced * by_stack("data") + by_stack("data_latency") * stage * far
    data = np.where((c.dp > 1) & (c.zero < 3), data, 0)
    optimizer = held / np.where(c.zero > 0, c.shard, 1) * k["optimizer_bytes"] / c.bandwidth
    nodes = np.maximum(c.devices / c.domain, 1)
    straggling = 1 + k["straggling"] * np.log2(nodes)
    step = (turns * (micro + hop) + data + optimizer + k["fixed"]) * straggling

    times = turns * stage
    return StepTime(
        step=step,
        matrix=times * 3 * matrix,
        attention=times * 3.5 * attention,
        elementwise=times * (1 + k["backward_elementwise"]) * elementwise,
        vocabulary=turns * vocabulary,
        recompute=times * again,
        launch=times * (layer - worked),
        tensor=times * 2 * tensor,
        context=times * 3 * context,
        expert=times * 2 * expert,
        gather=turns * (micro - compute),
        pipeline=turns * hop + (c.pp - 1) / c.vp * micro,
        data=data,
        optimizer=optimizer,
        tokens_per_s=c.micro_batch * c.sequence * c.accumulation / step / (c.tp * c.pp * c.cp),
    )


class _Weights:
    """Weights of one layer, and those that a device holds before tensor parallelism."""

    def __init__(self, c: Cases) -> None:
        import numpy as np

        matrices = np.where(c.gated > 0, 3, 2)
        self.attention = c.d_model * c.head_dim * (2 * c.n_heads + 2 * c.n_kv_heads)
        self.dense = c.d_model * c.d_ff * matrices
        expert = c.d_model * c.d_ff_expert * matrices
        shared = c.d_model * c.d_ff_shared * matrices
        self.experts_used = expert * c.experts_per_token + shared
        every = expert * c.experts / c.ep + shared
        self.held = (self.attention + self.dense + every) * c.layers / c.pp + c.vocab * c.d_model


def _soft_max(first: Column, second: Column, power: Column | float) -> Column:
    total: Column = (first**power + second**power) ** (1 / power)
    return total
