"""Many questions at once: what is to be trained, how it is spread, and on what, as columns.

The planner asks for millions of estimates, so everything here is an array with one entry a case,
and the formulas in `time.py` and `memory.py` work on whole columns. `Cases.of` fills what is left
out with what it usually is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Words = NDArray[np.str_]

# What a software stack is called here; others are taken as their nearest kin.
STACKS = (
    "megatron",
    "megatron-preFA",
    "nanotron",
    "fsdp-eager",
    "fsdp-compile",
    "xla-gpu",
    "xla-tpu",
)
GENERATIONS = (
    "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna", "rdna", "gaudi",
    "neuron", "tpu-v2", "tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7x",
)  # fmt: skip


@dataclass(slots=True)
class Cases:
    """One entry a case in every column. Rates are per accelerator; sizes in bytes and seconds."""

    # -- the model: a transformer's shape, per layer
    layers: Column
    d_model: Column
    n_heads: Column
    n_kv_heads: Column
    head_dim: Column
    d_ff: Column  # of a dense layer; 0 where every layer has experts
    gated: Column
    vocab: Column
    tied: Column
    causal: Column
    experts: Column
    experts_per_token: Column
    d_ff_expert: Column
    d_ff_shared: Column
    hybrid: Column  # 1 where most attention is replaced by a recurrence
    mixing: Column  # weights that mix tokens, a layer; 0 where the heads tell them
    attending: Column  # share of the layers that attend at all
    window: Column  # positions that a windowed layer looks back
    windowed: Column  # share of the layers that have the window
    sequence: Column
    # -- how it is spread
    dp: Column
    tp: Column
    pp: Column
    vp: Column  # pipeline chunks on each device
    cp: Column
    ep: Column
    zero: Column  # 0 none, 1 optimizer, 2 and gradients, 3 and weights
    shard: Column  # over how many devices the state is sharded (dp, or less for hybrid sharding)
    micro_batch: Column
    accumulation: Column
    recompute: Column  # 0 none, 1 selective, 2 full
    flash: Column
    trained: Column  # share of the weights that is trained: 1, or little for LoRA
    weight_bytes: Column  # of a weight as it is held: 2, or less if quantised
    optimizer_bytes: Column  # of a trained weight: 12 for AdamW with a 32-bit copy
    mixed: Column  # 1 where weights of 2 bytes have a 32-bit copy, 0 where they are all there is
    value_bytes: Column  # of an activation: 2, or 4 where everything is in 32 bits
    fused: Column  # 1 where kernels are fused (Megatron, compiled, XLA), 0 for eager PyTorch
    # -- a model that is no transformer with a shape, by what a sample costs; then layers are 0
    work_params: Column
    work_flops: Column  # of a training step, as many as would take the time at the full peak
    work_matrix: Column  # of a training step, at the rate of a transformer's matrices
    work_bytes: Column  # moved by a training step in 16 bits, at the memory's full rate
    work_kept: Column  # activations kept for the backward pass, in 16 bits
    work_passing: Column  # bytes a sample that live at the worst moment, whatever is recomputed
    work_launch: Column  # seconds of a micro-batch of nothing
    # -- what it runs on
    peak: Column  # dense FLOP/s at the precision of the matrix work
    peak16: Column  # dense FLOP/s at 16 bits: attention and the vocabulary stay there
    bandwidth: Column  # memory, bytes/s
    power: Column  # watts for its peak, against the usual chip of its generation
    link: Column  # one direction between devices of a domain, bytes/s
    network: Column  # one direction to other domains, bytes/s for each device
    domain: Column  # devices that `link` joins: a node, a rack, a TPU slice
    memory_gb: Column
    year: Column  # of the software
    fp8: Column  # 1 fp8, 2 with block scales (mxfp8)
    generation: Words
    chip: Words  # its name, for what is known of it
    stack: Words

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def devices(self) -> Column:
        return self.dp * self.tp * self.pp * self.cp

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any] | Any]) -> Cases:
        """From named columns; a single value counts for every case."""
        import numpy as np

        unknown = set(columns) - {f.name for f in fields(cls)}
        if unknown:
            raise InvalidValue(f"cases have no {sorted(unknown)[0]!r}")
        filled = {name: columns.get(name, default) for name, default in _USUAL.items()}
        missing = [name for name, value in filled.items() if value is None]
        if missing:
            raise InvalidValue(f"cases need {missing[0]!r}")
        arrays = {}
        for name, value in filled.items():
            kind = str if name in _WORDS else np.float64
            arrays[name] = np.atleast_1d(np.asarray(value, dtype=kind))
        size = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        # A single value is not copied for every case.
        return cls(**{name: np.broadcast_to(array, size) for name, array in arrays.items()})

    def take(self, mask: Any) -> Cases:
        import numpy as np

        size = len(self.layers[mask])

        def taken(column: Any) -> Any:
            if column.strides == (0,):  # one value for all stays one
                return np.broadcast_to(column[:1], size)
            return column[mask]

        return Cases(**{f.name: taken(getattr(self, f.name)) for f in fields(self)})


_WORDS = ("generation", "chip", "stack")
CURRENT = 2026.5  # software of no date is what one installs now: PyTorch 2.11 or later
# None: must be said.
_USUAL: dict[str, Any] = {
    "layers": None, "d_model": None, "n_heads": None, "n_kv_heads": None, "head_dim": None,
    "d_ff": None, "gated": 0, "vocab": None, "tied": 0, "causal": 1,
    "experts": 0, "experts_per_token": 0, "d_ff_expert": 0, "d_ff_shared": 0, "hybrid": 0,
    "mixing": 0, "attending": 1, "window": 0, "windowed": 0, "sequence": None,
    "dp": 1, "tp": 1, "pp": 1, "vp": 1, "cp": 1, "ep": 1, "zero": 0, "shard": 1,
    "micro_batch": 1, "accumulation": 1, "recompute": 0, "flash": 1,
    "trained": 1, "weight_bytes": 2, "optimizer_bytes": 12, "mixed": 1, "value_bytes": 2,
    "fused": 1,
    "work_params": 0, "work_flops": 0, "work_matrix": 0, "work_bytes": 0, "work_kept": 0,
    "work_passing": 0, "work_launch": 0,
    "peak": None, "peak16": None, "bandwidth": None, "power": 1, "link": None, "network": None,
    "domain": 8,
    "memory_gb": None, "year": CURRENT, "fp8": 0, "generation": None, "chip": "",
    "stack": "megatron",
}  # fmt: skip
