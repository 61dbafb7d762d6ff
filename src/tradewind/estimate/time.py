"""How long a training step takes, by term. Pure, and vectorised over cases.

    step = (accumulation · micro + bubble + data-parallel + optimizer + fixed) · straggling · age
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
from tradewind.estimate.constants import Constants, among
from tradewind.estimate.weights import Weights

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column

_BANDWIDTH_USED = 0.8  # of the memory's peak, by kernels that only move bytes
_BYTES = 2  # of a value in 16 bits
_A100 = 312e12  # its peak, FLOP/s
_ASYNCHRONOUS = ("hopper", "blackwell")  # whose matrix units need kernels of their own
_PYTORCH = ("fsdp-eager", "fsdp-compile")
# From 2.11 on (March 2026), PyTorch prefers cuDNN's attention there; nanotron has its own.
_CUDNN_ATTENTION = 2026 + 2 / 12
# Software gets faster by the year; how, nobody knows beyond the next one.
_OLDEST, _NEWEST = 2022, 2027
_LINE_RATE = 0.9  # of a network, by the best collectives
_MISALIGNED = 0.78  # of the rate, where a shard is not whole tiles of 64: 94 of 120 TFLOP/s
_UNPACKING = 0.5  # of the memory's peak, by kernels that dequantise


@dataclass(slots=True)
class StepTime:
    """Seconds of one optimizer step on each device; the terms add up to `step`."""

    step: Column
    matrix: Column
    attention: Column
    elementwise: Column
    vocabulary: Column
    recompute: Column
    launch: Column  # what kernel launches add beyond the work, and a step of nothing
    tensor: Column
    context: Column
    expert: Column
    gather: Column  # what fetching sharded weights adds
    pipeline: Column  # transfers and bubble
    data: Column
    optimizer: Column
    contention: Column  # sharing the chip with collectives, and waiting for the slowest
    tokens_per_s: Column  # for each device


def step_time(cases: Cases, constants: Constants) -> StepTime:
    import numpy as np

    c, k, step = cases, constants, _Step(cases, constants)
    matrix, attention, elementwise = step.matrix(), step.attention(), step.elementwise()
    tensor, context, expert = step.tensor(), step.context(), step.expert()

    # -- a micro-batch on a stage
    forward = matrix + attention + elementwise + tensor + context + expert
    # Frozen weights need no gradient of their own, only what lies before them does.
    backward = (1 + step.trained) * matrix + 2.5 * attention
    backward = backward + k["backward_elementwise"] * elementwise
    backward = backward + tensor + 2 * context + expert
    again = np.where(c.recompute == 2, k["again"] * forward, 0)
    again = again + np.where(c.recompute == 1, attention + 0.3 * elementwise, 0)
    launches = step.launches() * (3 + (c.recompute == 2)) * np.where(c.trained < 1, 2, 1)
    hybrid = np.where(c.hybrid > 0, k["hybrid_layer"], 1)
    worked = (forward + backward + again) * hybrid
    unpacking = step.unpacking() * (2 + (c.recompute == 2))
    worked = worked + unpacking
    layer = _soft_max(worked, launches, k["launch_overlap"])
    stage = c.layers / c.pp
    vocabulary = step.vocabulary() * np.where(c.pp > 1, k["last_stage"], 1)
    compute = stage * layer + vocabulary
    arithmetic, moved, once_more = step.work()
    compute = compute + arithmetic + moved + once_more + c.work_launch

    # -- the whole step
    micro = _soft_max(compute, step.gather(), step.by_stack("overlap"))
    hop = step.hop()
    turns = c.accumulation + (c.pp - 1) / c.vp
    data, optimizer = step.data(2 / 3 * compute), step.optimizer()
    # Collectives take their share of the chip even where they hide, and the slowest is waited for.
    straggling = 1 + np.where(c.devices > 1, k["crowding"], 0)
    straggling = straggling + k["straggling"] * np.log2(np.maximum(c.devices / c.domain, 1))
    # Only the last stage has the vocabulary: micro-batches wait for it, and a bubble does not.
    bubble = (c.pp - 1) / c.vp * np.maximum(micro - vocabulary, 0)
    alone = c.accumulation * micro + bubble + turns * hop + data + optimizer + k["fixed"]
    total = alone * straggling
    aged = np.exp(k["progress"] * step.age)

    layers = c.accumulation * stage
    times = layers * hybrid
    terms = {
        "step": total,
        "matrix": times * (2 + step.trained) * matrix + c.accumulation * arithmetic,
        "attention": times * 3.5 * attention,
        "elementwise": times * (1 + k["backward_elementwise"]) * elementwise
        + layers * unpacking
        + c.accumulation * moved,
        "vocabulary": c.accumulation * vocabulary,
        "recompute": times * again + c.accumulation * once_more,
        "launch": layers * (layer - worked) + c.accumulation * c.work_launch + k["fixed"],
        "tensor": times * 2 * tensor,
        "context": times * 3 * context,
        "expert": times * 2 * expert,
        "gather": c.accumulation * (micro - compute),
        "pipeline": turns * hop + bubble,
        "data": data,
        "optimizer": optimizer,
        "contention": total - alone,
    }
    tokens = c.micro_batch * c.sequence * c.accumulation / (c.tp * c.pp * c.cp)
    return StepTime(
        **{name: term * aged for name, term in terms.items()},
        tokens_per_s=tokens / (total * aged),
    )


class _Step:
    """The terms of a step. Those of a layer are one forward pass of one micro-batch."""

    def __init__(self, c: Cases, k: Constants) -> None:
        import numpy as np

        self.c, self.k, self.by_stack = c, k, k.by_stack(c.stack)
        self.tokens = c.micro_batch * c.sequence / c.cp
        self.weights = Weights(c)
        self.held = (self.weights.layer * c.layers / c.pp + self.weights.embedding) / c.tp
        self.held = self.held + c.work_params
        self.trained = np.where(c.trained > 0, c.trained, 1)
        self.moe = c.experts > 0
        # Sizes that saturate an A100 are small for what came after it.
        self.relative = c.peak / _A100
        self.narrow = k["narrow_width"] * np.sqrt(self.relative) / c.d_model
        self.few = k["few_tokens"] * self.relative / self.tokens
        self.moved = c.bandwidth * _BANDWIDTH_USED
        # More watts for the same peak hold a higher clock.
        self.age = _NEWEST - np.clip(c.year, _OLDEST, _NEWEST)
        self.fed = c.power ** k["power"]
        # Megatron before 2022 did not shard what lies outside the tensor-parallel region.
        self.early = among(c.stack, ["megatron-preFA"])
        self.outside = c.d_model / np.where(self.early, 1, c.tp)
        self.inside = c.link * k["link_used"]
        # A fit may not talk a network past its line rate.
        self.across = c.network * np.minimum(k["network_used"], _LINE_RATE)

    def over(self, group: Column) -> Column:
        """The rate between so many neighbours: the link where it joins them, else the network."""
        import numpy as np

        found: Column = np.where(group <= self.c.domain, self.inside, self.across)
        return found

    # -- compute -----------------------------------------------------------------------------

    def matrix(self) -> Column:
        import numpy as np

        c, k = self.c, self.k
        inner = np.where(self.moe, c.d_ff_expert, c.d_ff) / c.tp
        thin = k["narrow_inner"] * np.sqrt(self.relative) / np.maximum(inner, 1)
        efficiency = k.matrix_efficiency(c) * self.by_stack("matrix") * self.fed
        # A stack's advantage is learned on some chips; on others it must not pass the peak.
        rate = c.peak * np.minimum(efficiency / (1 + self.narrow + thin + self.few), 1)
        rate = rate * np.where((c.d_model / c.tp % 64 > 0) | (inner % 64 > 0), _MISALIGNED, 1)
        dense = 2 * self.tokens * (self.weights.attention + self.weights.dense) / c.tp / rate
        # An expert sees its share of the tokens of all devices that share it.
        each = self.tokens * c.ep * c.experts_per_token / np.maximum(c.experts, 1)
        crowd = 1 + k["few_expert_tokens"] * np.sqrt(self.relative) / np.maximum(each, 1)
        progress = np.exp(k["expert_progress"] * (c.year - 2026))
        used = 2 * self.tokens * self.weights.experts_used / c.tp
        found: Column = dense + used * crowd / (rate * k["expert_matrix"] * progress)
        return found

    def attention(self) -> Column:
        import numpy as np

        c, k = self.c, self.k
        fused = c.flash > 0
        seen = np.where((c.causal > 0) & fused, 0.5, 1.0) * c.sequence
        seen = seen - c.windowed * np.maximum(seen - c.window, 0)
        flops = 4 * self.tokens * seen * c.n_heads * c.head_dim / c.tp
        short = k["short_attention"] * c.peak16 / _A100 / c.sequence
        flash = k.flash_efficiency(c) / (1 + short)
        # PyTorch brought kernels of the generation before to Hopper and what came after it.
        before = among(c.stack, _PYTORCH) & (c.year < _CUDNN_ATTENTION)
        older = (before | among(c.stack, ["nanotron"])) & among(c.generation, _ASYNCHRONOUS)
        flash = flash * np.where(older, k["older_attention"], 1) * self.fed
        # Kernels work on heads of whole tiles.
        tiles = np.where(fused, 32, 64)
        filled = c.head_dim / (np.ceil(c.head_dim / tiles) * tiles)
        work = flops / (c.peak16 * filled * np.where(fused, flash, k["unfused_efficiency"]))
        scores = c.micro_batch * c.n_heads / c.tp * c.sequence**2 * _BYTES
        work = work + np.where(fused, 0, scores * k["unfused_bytes"]) / self.moved
        found: Column = work * c.attending
        return found

    def elementwise(self) -> Column:
        import numpy as np

        c, k = self.c, self.k
        active = np.where(self.moe, c.d_ff_expert * c.experts_per_token + c.d_ff_shared, c.d_ff)
        active = (active * np.where(c.gated > 0, 1.5, 1) + 2 * c.n_heads * c.head_dim) / c.tp
        values = k["bytes_outside"] * self.outside + k["bytes_inside"] * active
        return self.tokens * c.value_bytes * values / self.moved

    def vocabulary(self) -> Column:
        """The output layer and the loss, both ways."""
        import numpy as np

        c, k = self.c, self.k
        efficiency = k.matrix_efficiency16(c) * self.by_stack("matrix") * self.fed
        rate = c.peak16 * np.minimum(efficiency / (1 + self.narrow + self.few), 1)
        work = (4 + 2 * self.trained) * self.tokens * c.d_model * c.vocab / c.tp / rate
        return work + self.tokens * c.vocab / c.tp * k["loss_bytes"] / self.moved

    def unpacking(self) -> Column:
        """Making 16-bit weights of a layer's quantised ones, before each use."""
        import numpy as np

        c = self.c
        if not (c.weight_bytes < 1).any():
            return np.zeros(len(c))
        bytes_each = np.where(c.weight_bytes < 1, c.weight_bytes + 2 * _BYTES, 0)
        found: Column = self.weights.layer / c.tp * bytes_each / (c.bandwidth * _UNPACKING)
        return found

    def work(self) -> tuple[Column, Column, Column]:
        """What is no transformer, both ways: arithmetic, bytes moved, and what is recomputed."""
        import numpy as np

        c, k = self.c, self.k
        if c.layers.all():
            nothing = np.zeros(len(c))
            return nothing, nothing, nothing
        rate = c.peak * k.matrix_efficiency(c) * self.by_stack("matrix") / (1 + self.narrow)
        arithmetic = c.micro_batch * (c.work_flops / c.peak + c.work_matrix / rate)
        moved = c.micro_batch * c.work_bytes * c.value_bytes / _BYTES / c.bandwidth
        again = np.select([c.recompute == 2, c.recompute == 1], [1 / 3, 0.1], 0.0)
        return arithmetic, moved, again * (arithmetic + moved)

    # -- traffic within a layer --------------------------------------------------------------

    def tensor(self) -> Column:
        import numpy as np

        c, k = self.c, self.k
        rate = np.where(c.tp <= c.domain, c.link * k["tensor_link_used"], self.across)
        sent = 2 * (c.tp - 1) / c.tp * self.tokens * c.d_model * _BYTES
        found: Column = 2 * sent / rate * self.by_stack("tensor")
        return found

    def context(self) -> Column:
        c = self.c
        sent = self.tokens * 2 * c.n_kv_heads * c.head_dim / c.tp * _BYTES * (c.cp - 1)
        return sent / self.over(c.cp * c.tp) * self.k["context_exposed"]

    def expert(self) -> Column:
        import numpy as np

        c, k = self.c, self.k
        values = self.tokens * c.experts_per_token * c.d_model * _BYTES / c.tp
        permuted = k["routing_passes"] * values / self.moved
        swapped = 2 * values * (c.ep - 1) / c.ep / self.over(c.ep * c.tp) * k["expert_exposed"]
        found: Column = np.where(self.moe, permuted + swapped, 0)
        return found

    def launches(self) -> Column:
        """The least that a pass over a layer takes, however little there is to compute."""
        import numpy as np

        c, k = self.c, self.k
        plain = self.by_stack("launch")
        shared = np.where(c.tp > 1, plain * self.by_stack("tensor_launch"), 0)
        experts = k["expert_launch"] * np.exp(-k["expert_progress"] * (c.year - 2026))
        found: Column = plain + shared + np.where(self.moe, experts, 0)
        return found

    # -- between stages and replicas ---------------------------------------------------------

    def replica_rate(self) -> Column:
        """Between data-parallel ranks: all that sit in a domain share its way out."""
        import numpy as np

        c = self.c
        ranks = np.maximum(np.minimum(c.domain, c.devices) / c.tp, 1)
        out = np.minimum(self.inside, self.across * np.minimum(ranks, c.dp))
        found: Column = np.where(c.devices > c.domain, out, self.inside)
        return found

    def gather(self) -> Column:
        """Fetching sharded weights twice, and scattering their gradients."""
        import numpy as np

        c = self.c
        rate = np.where(c.shard < c.dp, self.inside, self.replica_rate())
        each = 2 * np.minimum(c.weight_bytes, _BYTES) + _BYTES * self.trained
        once = self.held * each * (c.shard - 1) / c.shard / rate
        found: Column = np.where(c.zero == 3, once, 0)
        return found

    def hop(self) -> Column:
        import numpy as np

        c, k = self.c, self.k
        boundary = self.tokens * self.outside * _BYTES / self.over(c.tp * c.pp)
        once = 2 * (boundary + k["hop_latency"]) * c.vp * k["hop_exposed"]
        found: Column = np.where(c.pp > 1, once, 0)
        return found

    def data(self, behind: Column) -> Column:
        """What reducing gradients adds to the backward pass that it hides behind, the last one."""
        import numpy as np

        c, k = self.c, self.k
        # Sharded optimizers scatter 16-bit gradients and gather weights; others reduce 32-bit ones.
        each = np.where(self.early | (c.zero > 0), 4, 8)
        # nanotron scatters 32-bit ones, and only when all of them are there.
        nanotron = among(c.stack, ["nanotron"])
        last = nanotron & (c.zero > 0)
        each = np.where(last, 6, each)
        gradients = self.held * self.trained * each
        reduced = gradients * (c.dp - 1) / c.dp / self.replica_rate()
        # Sharded inside groups, the groups still reduce what each device has of the gradients.
        groups = c.dp / c.shard
        between = gradients / c.shard * (groups - 1) / groups / self.across
        reduced = np.where(c.zero == 3, between, reduced)
        # Scattered, they go round a ring of all ranks; reduced, up a tree of the machines. Others
        # send many layers at once, and what that takes hides.
        hops = np.where(c.zero > 0, c.dp - 1, np.log2(np.maximum(c.dp * c.tp / c.domain, 1)))
        late = np.where(nanotron, k["hop_of_ring"] * c.layers / c.pp * hops, 0)
        # Early Megatron began to reduce when all gradients were there.
        hiding = 1 + np.where(self.early | last, 0, self.by_stack("data"))
        exposed = _soft_max(behind, reduced, hiding) - behind
        found: Column = np.where(c.dp > 1, exposed + late, 0)
        return found

    def optimizer(self) -> Column:
        import numpy as np

        c = self.c
        own = self.held * self.trained / np.where(c.zero > 0, c.shard, 1)
        # Fitted to AdamW, which moves its 12 bytes, a weight and a gradient.
        others = (c.optimizer_bytes + np.maximum(c.weight_bytes, _BYTES) + _BYTES) / 16
        found: Column = own * others * self.k["optimizer_bytes"] / c.bandwidth
        return found


def _soft_max(first: Column, second: Column, power: Column | float) -> Column:
    total: Column = (first**power + second**power) ** (1 / power)
    return total
