"""Many questions about serving at once: model, layout, engine, hardware and load, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]
    Words = NDArray[np.str_]
    Codes = NDArray[np.intp]

MODES = ("offline", "static", "closed", "server")
_WORDS = ("family", "chip", "engine", "software", "precision", "mode", "model")


@dataclass(slots=True)
class Cases:
    """One entry a case in every column. Rates are per accelerator; bytes and seconds."""

    # -- the model
    params: Column
    expert_params: Column  # of all routed experts
    attention_params: Column
    table_params: Column  # the table of input tokens, which a step does not read
    active_params: Column  # that one token meets, without that table
    experts: Column
    top_k: Column
    layers: Column
    d_model: Column
    vocab: Column
    kv_heads: Column  # over how many ranks tensor parallelism can cut the cache
    kv_values: Column  # kept of a token by all layers together, without a window
    windowed: Column  # share of the cache that a window bounds
    window: Column
    prefill_width: Column  # FLOPs of attention for one pair of positions, all layers
    decode_width: Column
    # -- how it is held
    weight_bytes: Column
    kv_bytes: Column
    # -- how it is spread
    group: Column  # accelerators that share one copy of a layer: tensor or expert parallel
    stages: Column  # pipeline stages
    replicas: Column
    spread_attention: Column  # 1: each rank attends for its own sequences (data-parallel attention)
    prefill_group: Column  # accelerators of a worker that only prefills; 0: the same ones do both
    prefill_workers: Column
    speculative: Column  # 1: further tokens are guessed and checked, as published rows say it
    guesses: Column  # tokens guessed in each step, where a user says how many
    accepted: Column  # chance that a guess is right, if those before it are
    draft_params: Column  # of what guesses
    draft_layers: Column
    adapters: Column  # of low rank, that requests choose among
    adapter_params: Column  # of one of them
    # -- what it runs on
    peak: Column  # FLOP/s at the precision of the matrix products
    peak16: Column
    bandwidth: Column
    link: Column  # one direction, bytes/s, between the accelerators of a group
    memory: Column  # bytes
    year: Column  # of the software
    # -- the load
    input: Column
    output: Column
    cached: Column  # share of a prompt that a prefix cache holds
    batch: Column  # of a static batch; at most so many at once where it is offline; 0: not said
    concurrency: Column
    rate: Column  # requests a second offered to all replicas; inf: all at once; 0: the most
    mean: Column  # 1: latencies are means over a run that begins with a burst, 0: medians
    chunk: Column  # tokens of a prefill taken at once; 0: as the engine does
    decode_only: Column  # 1: throughput is of decoding alone
    family: Words  # of accelerators
    chip: Words
    engine: Words  # the family of engines
    software: Words  # as it was called
    precision: Words  # class of formats: 16, 8, 4
    mode: Words
    model: Words

    def __len__(self) -> int:
        return len(self.params)

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any] | Any]) -> Cases:
        """From named columns; a single value counts for every case."""
        import numpy as np

        unknown = set(columns) - {f.name for f in fields(cls)}
        if unknown:
            raise InvalidValue(f"cases of serving have no {sorted(unknown)[0]!r}")
        missing = [f.name for f in fields(cls) if f.name not in columns and f.name not in _USUAL]
        if missing:
            raise InvalidValue(f"cases of serving need {missing[0]!r}")
        arrays = {}
        for field in fields(cls):
            value = columns.get(field.name, _USUAL.get(field.name))
            kind = str if field.name in _WORDS else np.float64
            arrays[field.name] = np.atleast_1d(np.asarray(value, dtype=kind))
        size = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        return cls(**{name: np.broadcast_to(array, size) for name, array in arrays.items()})

    def take(self, mask: Any) -> Cases:
        return Cases(**{f.name: getattr(self, f.name)[mask] for f in fields(self)})


_USUAL: dict[str, Any] = {
    "stages": 1, "replicas": 1, "spread_attention": 0, "prefill_group": 0, "prefill_workers": 0,
    "speculative": 0, "guesses": 0, "accepted": 0, "draft_params": 0, "draft_layers": 0,
    "adapters": 0, "adapter_params": 0, "cached": 0,
    "windowed": 0, "window": 0, "batch": 0, "concurrency": 0, "rate": 0,
    "mean": 1, "decode_only": 0, "chunk": 0, "year": 2026.5, "model": "", "chip": "",
    "software": "",
}  # fmt: skip
