"""The constants of the formulas: what each means, where it starts, and how far it may stray.

A constant is positive and fitted in its logarithm. `spread` is the standard deviation of our prior
belief in it, in the logarithm: an accelerator or stack with few measurements stays near where it
starts, which is what its kin show. One whose spread is 0 is what it is: fitting it was worth
nothing to rows that were left out. The fitted values lie in `data/calibration.json`, with the
sources they were fitted to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.estimate.cases import GENERATIONS, STACKS, Cases

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column, Flags, Words

FILE = Path(__file__).parent / "data" / "calibration.json"


@dataclass(frozen=True, slots=True)
class Prior:
    start: float
    spread: float
    unit: str
    meaning: str


PRIORS: dict[str, Prior] = {
    "narrow_width": Prior(250, 0.6, "", "width at which an A100's matrix rate halves"),
    "narrow_inner": Prior(100, 0.6, "", "the same for the inner width of a shard"),
    "few_tokens": Prior(120, 0.6, "tokens", "the same for the tokens in a micro-batch"),
    "short_attention": Prior(500, 1.0, "tokens", "sequence at which an A100's attention halves"),
    "older_attention": Prior(0.7, 0.4, "", "PyTorch's fused attention on Hopper and later"),
    "progress": Prior(0.03, 0.5, "/year", "how fast software gets faster"),
    "power": Prior(0.7, 0.4, "power", "matrix rate by the watts of a chip for its peak"),
    "unfused_efficiency": Prior(0.5, 0, "of peak", "attention as separate matrix products"),
    "unfused_bytes": Prior(6, 0.5, "passes", "how often unfused attention moves its scores"),
    "hybrid_layer": Prior(1.3, 0, "", "a recurrence's layer against its weights' work"),
    "bytes_outside": Prior(10, 0, "passes", "over d_model values by norms and residuals"),
    "bytes_inside": Prior(4, 0.5, "passes", "over inner values by activations and rotations"),
    "backward_elementwise": Prior(1.6, 0, "× forward", "elementwise work going back"),
    "loss_bytes": Prior(8, 0, "bytes", "moved for each logit by the loss, both ways"),
    "expert_matrix": Prior(0.6, 0.4, "", "matrix rate of experts against dense layers"),
    "few_expert_tokens": Prior(200, 0.8, "tokens", "of an expert at which its rate halves"),
    "routing_passes": Prior(6, 0.6, "passes", "over the tokens sent to experts, a direction"),
    "expert_launch": Prior(1.5e-3, 0.8, "s", "launching one pass over a layer's experts, 2026"),
    "expert_progress": Prior(0.3, 0.5, "/year", "how fast software for experts gets faster"),
    "expert_exposed": Prior(0.3, 0.6, "", "share of expert traffic that is not hidden"),
    "tensor_link_used": Prior(0.7, 0, "", "share of the link that tensor traffic reaches"),
    "link_used": Prior(0.75, 0, "", "share of the link that other traffic reaches"),
    "network_used": Prior(0.75, 0.3, "", "share of the network that traffic reaches"),
    "context_exposed": Prior(0.3, 0.7, "", "share of context-parallel traffic not hidden"),
    "hop_exposed": Prior(0.7, 0, "", "share of pipeline transfers not hidden"),
    "hop_latency": Prior(3e-5, 0, "s", "a pipeline transfer of nothing"),
    "last_stage": Prior(1.0, 0, "", "of the vocabulary's time that holds the pipeline up"),
    "hop_of_ring": Prior(3e-5, 0.7, "s", "a layer's gradients, each rank they pass unhidden"),
    "optimizer_bytes": Prior(22, 0, "bytes", "moved for each parameter by the optimizer"),
    "launch_overlap": Prior(3, 0, "power", "how well launching hides behind the work"),
    "fixed": Prior(5e-3, 1.0, "s", "a step of nothing"),
    "again": Prior(0.85, 0.15, "× forward", "a forward pass that is computed again"),
    "crowding": Prior(0.08, 0.5, "", "slower for sharing the chip with collectives"),
    "straggling": Prior(0.01, 0.4, "", "slower with every doubling of the nodes"),
    "block_scales": Prior(1.0, 0, "", "mxfp8 against fp8"),
}

MEMORY_PRIORS: dict[str, Prior] = {
    "eager_gradient_bytes": Prior(6, 0.2, "bytes", "of a gradient: 32 bits, and 16 on its way"),
    "fused_gradient_bytes": Prior(2, 0.15, "bytes", "of a gradient, reduced in 16 or 32 bits"),
    "sharded_gradient_bytes": Prior(4, 0.2, "bytes", "of a gradient of sharded weights"),
    "fp8_copy_bytes": Prior(1, 0.4, "bytes", "of a weight's copies in 8 bits"),
    "eager_width_bytes": Prior(16, 0.4, "bytes", "kept for each d_model value, token and layer"),
    "eager_whole_bytes": Prior(4, 0.3, "bytes", "the same, and not divided by tensor parallelism"),
    "fused_width_bytes": Prior(8, 0.15, "bytes", "kept with fused kernels"),
    "eager_gated_bytes": Prior(8, 0.3, "bytes", "kept for each inner value of a gated layer"),
    "fused_gated_bytes": Prior(6, 0.15, "bytes", "the same with fused kernels"),
    "plain_bytes": Prior(4, 0.1, "bytes", "kept for each inner value of a plain layer"),
    "score_bytes": Prior(5, 0.3, "bytes", "kept for each unfused attention score"),
    "selective_share": Prior(0.4, 0.2, "", "of activations that selective recompute keeps"),
    "megatron_selective_share": Prior(0.7, 0.1, "", "the same of Megatron's, which is lighter"),
    "quantised_factor": Prior(1.5, 0.2, "×", "activations where weights are quantised"),
    "eager_logit_bytes": Prior(14, 0.05, "bytes", "kept for each logit by an eager loss"),
    "sharded_logit_bytes": Prior(10, 0.05, "bytes", "the same by nanotron's, partly in place"),
    "fused_logit_bytes": Prior(5, 0.3, "bytes", "the same by a fused one"),
    "kept_logit_bytes": Prior(4, 0.15, "bytes", "of the micro-batch before, until the next ends"),
    "waiting_layers": Prior(0.8, 0.4, "layers", "more, kept by a micro-batch in a pipeline"),
    "buffer_gb": Prior(0.8, 0.1, "GB", "buffers of collectives"),
    "context_gb": Prior(0.8, 0.1, "GB", "the driver's context and libraries"),
    "xla_context_gb": Prior(0.3, 0.3, "GB", "the same of XLA, with the buffers of collectives"),
    "fragmentation": Prior(1.04, 0.005, "×", "of what comes and goes, what the allocator wastes"),
    "usable_memory": Prior(0.97, 0.005, "of memory", "what can be filled before training fails"),
    "peak_spread": Prior(0.1, 0.5, "", "how far peaks lie from their estimates, in logarithms"),
}
PRIORS |= MEMORY_PRIORS

# What kin start from: measured generations lend to those that are not.
_EFFICIENCY = {
    "pascal": 0.7, "volta": 0.6, "turing": 0.55, "ampere": 0.8, "ada": 0.7, "hopper": 0.72,
    "blackwell": 0.55, "cdna": 0.45, "rdna": 0.4, "gaudi": 0.55, "neuron": 0.5,
    # TPUs come the nearer to their peak, the more bytes of memory they have for it.
    "tpu-v2": 0.8, "tpu-v3": 0.8, "tpu-v4": 0.9, "tpu-v5e": 0.9, "tpu-v5p": 0.95, "tpu-v6e": 0.65,
    "tpu-v7x": 0.82,
}  # fmt: skip
for _generation, _start in _EFFICIENCY.items():
    _spread = 0.1 if _generation.startswith("tpu") else 0.25
    PRIORS[f"efficiency16.{_generation}"] = Prior(
        _start, _spread, "of peak", "matrix work, 16 bits"
    )
for _generation, _start in _EFFICIENCY.items():
    PRIORS[f"flash.{_generation}"] = Prior(
        0.45 if _start > 0.5 else 0.3,
        0.0 if _generation.startswith("tpu") else 0.2,
        "of peak",
        "fused attention, long",
    )
for _generation, _start in {"hopper": 0.55, "blackwell": 0.5, "ada": 0.5, "cdna": 0.45}.items():
    PRIORS[f"efficiency8.{_generation}"] = Prior(_start, 0.25, "of peak", "matrix work, 8 bits")
# What stacks differ in, and which of them share a value: each has its own, or is of a group.
_EACH = {stack: stack for stack in STACKS}
_KERNELS = {stack: "xla" if stack.startswith("xla") else "torch" for stack in STACKS}
_KERNEL_LAUNCHES = {stack: "xla" if stack.startswith("xla") else stack for stack in STACKS}
_MEGATRON = {stack: stack if stack == "megatron" else "other" for stack in STACKS}
_ALL = dict.fromkeys(STACKS, "any")
SHARED: dict[str, Mapping[str, str]] = {
    "matrix": _EACH,
    "launch": _KERNEL_LAUNCHES,
    "tensor": _MEGATRON,
    "tensor_launch": _ALL,
    "data": _ALL,
    "overlap": _KERNELS,
}


def _by_stack(name: str, group: str) -> Prior:
    xla = group.startswith("xla")
    matrix = 1.3 if group == "megatron" else 1.0
    return {
        "matrix": Prior(matrix, 0.15, "", "matrix rate against other stacks"),
        "launch": Prior(2e-5 if xla else 3e-4, 0.6, "s", "launching one pass's kernels"),
        "tensor": Prior(0.6, 0.5, "", "share of tensor traffic that is not hidden"),
        "tensor_launch": Prior(1.0, 0.8, "", "more launching with tensor parallelism"),
        "data": Prior(0.5, 0.6, "power", "how well gradient traffic hides"),
        "overlap": Prior(1.5 if xla else 3.0, 0.4, "power", "how well weight gathering hides"),
    }[name]


for _name, _groups in SHARED.items():
    for _group in dict.fromkeys(_groups.values()):
        PRIORS[f"{_name}.{_group}"] = _by_stack(_name, _group)


def stacks_of(name: str) -> Sequence[str]:
    """The stacks that a constant is about; all where it is not about any."""
    kind, _, group = name.partition(".")
    groups = SHARED.get(kind, {})
    return [stack for stack in STACKS if groups.get(stack, group) == group]


class Constants:
    """Values by name, and the tables that formulas look up by generation and stack.

    A value may also be a column (n, 1) of values to try at once: every formula then answers with n
    rows of cases.
    """

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = {name: values.get(name, prior.start) for name, prior in PRIORS.items()}
        self._placed: tuple[Words, Any] | None = None

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def by_stack(self, stacks: Words) -> Callable[[str], Column]:
        index = _index(stacks, STACKS, STACKS[0])

        def column(name: str) -> Column:
            return self._table([f"{name}.{SHARED[name][stack]}" for stack in STACKS])[..., index]

        return column

    def _table(self, names: Sequence[str]) -> Column:
        """Their values, along the last axis."""
        import numpy as np

        values = np.broadcast_arrays(*(np.atleast_1d(self.values[name]) for name in names))
        found: Column = np.concatenate(values, axis=-1)
        return found

    def matrix_efficiency(self, cases: Cases) -> Column:
        import numpy as np

        eight = self._by_generation(cases, "efficiency8", "efficiency16")
        eight = eight * np.where(cases.fp8 == 2, self["block_scales"], 1)
        found: Column = np.where(cases.fp8 > 0, eight, self.matrix_efficiency16(cases))
        return found

    def matrix_efficiency16(self, cases: Cases) -> Column:
        return self._by_generation(cases, "efficiency16", "efficiency16")

    def flash_efficiency(self, cases: Cases) -> Column:
        return self._by_generation(cases, "flash", "flash")

    def _by_generation(self, cases: Cases, name: str, otherwise: str) -> Column:
        own = [f"{name}.{g}" for g in GENERATIONS]
        kin = [f"{otherwise}.{g}" for g in GENERATIONS]
        table = self._table([o if o in self.values else k for o, k in zip(own, kin, strict=True)])
        if self._placed is None or self._placed[0] is not cases.generation:
            # Looked up once for all that depends on it.
            self._placed = cases.generation, _index(cases.generation, GENERATIONS, "ampere")
        found: Column = table[..., self._placed[1]]
        return found


def _index(words: Words, known: Sequence[str], otherwise: str) -> Any:
    """Of each word its place among the known ones."""
    import numpy as np

    single = _once(words)
    found = np.full(len(single), known.index(otherwise), dtype=np.intp)
    for name in set(single.tolist()) & set(known):
        found[single == name] = known.index(name)
    return np.broadcast_to(found, words.shape)


def among(words: Words, names: Sequence[str]) -> Flags:
    """Which of the words are among the names."""
    import numpy as np

    return np.broadcast_to(np.isin(_once(words), names), words.shape)


def _once(words: Words) -> Words:
    """A column that has one value for all cases is looked at once."""
    return words[:1] if words.strides == (0,) else words


@cache
def calibration() -> Mapping[str, Any]:
    """The calibration that came with the package."""
    loaded: Mapping[str, Any] = json.loads(FILE.read_text())
    return loaded


def fitted() -> Constants:
    return Constants(calibration()["constants"])
