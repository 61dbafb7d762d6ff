"""Training that must be done: a model, how much of it, and how."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from tradewind.model import checks
from tradewind.model.checks import Fault
from tradewind.model.shape import Shape, Work

PRECISIONS = ("bf16", "fp16", "fp8", "mxfp8", "fp32", "pure-bf16")
STACKS = (
    "megatron", "nemo", "deepspeed", "nanotron", "torchtitan", "fsdp-eager", "fsdp-compile", "ddp",
    "maxtext", "xla-gpu", "xla-tpu",
)  # fmt: skip
OPTIMIZERS = (
    "adamw", "adam", "adamw-8bit", "adafactor", "lamb", "lion", "muon", "sgd", "sgd-momentum",
)  # fmt: skip
SHARDINGS = ("none", "zero1", "zero2", "zero3", "hybrid")
RECOMPUTES = ("none", "selective", "full")
_AMOUNTS = ("tokens", "samples", "epochs", "steps")
_AGREE = 0.01  # amounts given twice may differ by rounding
_NEAR = 1.05  # a batch in tokens and a power of two that may be meant: 2**20 is 1.049 million


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """A model and how much training. A sample is a sequence, where there are sequences.

    How much is said by at least one of `tokens`, `samples`, `steps`, and `epochs` with the size of
    the dataset; what is said twice must agree within 1 %. Of a layout, None is chosen for you.
    """

    model: str | Shape | Work
    """A known name, the path of a config.json, a profile or a shape, or a shape itself."""
    tokens: int | None = None
    samples: int | None = None
    epochs: float | None = None
    steps: int | None = None
    dataset_samples: int | None = None
    dataset_tokens: int | None = None
    sequence: int | None = None
    """Tokens; None for a model that has none, such as a ResNet."""
    global_batch: int | None = None
    """Samples in an optimizer step; either this or `global_batch_tokens`."""
    global_batch_tokens: int | None = None
    precision: str = "bf16"
    stack: str | None = None
    optimizer: str = "adamw"
    lora: int | None = None
    """The rank of adapters on frozen weights."""
    qlora: int | None = None
    """The same on weights of four bits."""
    micro_batch: int | None = None
    activation_checkpointing: str | None = None
    sharding: str | None = None
    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    flash_attention: bool = True
    measured: str | None = None
    """The path of one's own measurements, which sharpen the estimate."""

    def __post_init__(self) -> None:
        checks.raise_any("train", self.faults(checks.fields_of(self)))

    @property
    def sequences_per_step(self) -> int:
        """Samples in an optimizer step. A batch in tokens is a target: the nearest whole number."""
        found = _per_step(checks.fields_of(self))
        assert found is not None
        return found

    @property
    def total_samples(self) -> int:
        return ceil(next(iter(_in_samples(checks.fields_of(self)).values())))

    @property
    def total_tokens(self) -> int | None:
        """None for a model without sequences."""
        if self.tokens is not None:
            return self.tokens
        return self.total_samples * self.sequence if self.sequence else None

    @property
    def amounts(self) -> dict[str, float]:
        """All of the training in each unit that it can be told in."""
        tokens = self.total_tokens
        found = {"samples": float(self.total_samples)}
        if tokens is not None:
            found = {"tokens": float(tokens)}  # there a sample is a sequence: no unit of anybody's
        return found if self.epochs is None else found | {"epochs": self.epochs}

    @property
    def total_steps(self) -> int:
        return ceil(self.total_samples / self.sequences_per_step)

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        """`wrong`: fields that were given but could not be read, and are not missing."""
        seen = {name for name in values if values[name] is not None} | set(wrong)
        bad = []
        for fault in _train_ranges(values):
            bad.append(fault.field)
            yield fault
        if "model" not in seen:
            yield Fault("model", "it is missing: what is to be trained?")
        if not seen & {"global_batch", "global_batch_tokens"}:
            yield Fault(
                "global_batch",
                "it is missing: it changes what is learnt, so it is never chosen for you",
                "write 512 (sequences) or 4M tokens",
            )
        if not seen & {*_AMOUNTS, "dataset", "dataset_samples", "dataset_tokens"}:
            yield Fault(
                "tokens",
                "how much training? tokens, samples, steps, or epochs with dataset is missing",
            )
        datasets = seen & {"dataset", "dataset_samples", "dataset_tokens"}
        if "epochs" in seen and not datasets:
            yield Fault("epochs", "epochs of what? dataset is missing", "dataset: 1.28M samples")
        if datasets and "epochs" not in seen:
            yield Fault("dataset", "it counts only with epochs, which is missing", "epochs: 1")
        if {"lora", "qlora"} <= seen:
            yield Fault("qlora", "there is lora too; adapters are on whole or on 4-bit weights")
        for one, other in (
            ("global_batch", "global_batch_tokens"),
            ("dataset_samples", "dataset_tokens"),
        ):
            if values.get(one) is not None and values.get(other) is not None:
                yield Fault(one, f"there is {other} too; give one of them")
        if "sequence" not in seen:
            for name in ("tokens", "global_batch_tokens", "dataset_tokens"):
                if values.get(name) is not None:
                    field = name.removesuffix("_tokens")
                    yield Fault(field, "it counts tokens, so sequence (its length) is needed")
        if not bad:
            yield from _disagreements(values)


def _train_ranges(values: Mapping[str, Any]) -> Iterator[Fault]:
    model = values.get("model")
    if not isinstance(model, Shape | Work):
        yield from checks.text(values, "model")
    yield from checks.whole(values, "tokens", "samples", "steps", "sequence", "global_batch")
    yield from checks.whole(values, "global_batch_tokens", field="global_batch")
    yield from checks.whole(values, "dataset_samples", "dataset_tokens", field="dataset")
    yield from checks.positive(values, "epochs")
    yield from checks.whole(values, "lora", "qlora", "micro_batch", "tp", "pp", "cp", "ep")
    yield from checks.choice(values, "precision", PRECISIONS)
    yield from checks.choice(values, "stack", STACKS)
    yield from checks.choice(values, "optimizer", OPTIMIZERS)
    yield from checks.choice(values, "sharding", SHARDINGS)
    yield from checks.choice(values, "activation_checkpointing", RECOMPUTES)
    yield from checks.flag(values, "flash_attention")
    yield from checks.text(values, "measured")


def _disagreements(values: Mapping[str, Any]) -> Iterator[Fault]:
    per_step = _per_step(values)
    found = _in_samples(values)
    if len(found) > 1:
        (first, one), *others = found.items()
        for name, other in others:
            if abs(one - other) > max(_AGREE * one, per_step or 1):
                yield Fault(
                    name,
                    f"it makes {other:,.0f} samples, but {first} makes {one:,.0f}",
                    "leave one of them out",
                )
    micro = values.get("micro_batch")
    if micro is not None and per_step is not None and micro > per_step:
        yield Fault("micro_batch", f"{micro} is more than the {per_step} of a global batch")


def _per_step(values: Mapping[str, Any]) -> int | None:
    """Sequences in an optimizer step. Tokens are a target: 4M of them are likely meant to be 2**22,
    and 512 sequences can be divided among accelerators where 488 hardly can."""
    samples, tokens = values.get("global_batch"), values.get("global_batch_tokens")
    sequence = values.get("sequence")
    if samples is not None:
        return int(samples)
    if tokens is None or not sequence:
        return None
    whole = max(1, (2 * int(tokens) + int(sequence)) // (2 * int(sequence)))
    if values.get("steps") is not None and any(values.get(name) for name in _AMOUNTS[:3]):
        return whole  # what is said twice must agree as it is written
    above = 1 << whole.bit_length()
    for even in (above, above // 2):
        if max(even / whole, whole / even) <= _NEAR:
            return even
    return whole


def _in_samples(values: Mapping[str, Any]) -> dict[str, float]:
    """Every way in which the amount was given, as samples; the first of them counts."""
    given = {name: value for name, value in values.items() if value is not None}
    sequence, per_step = given.get("sequence"), _per_step(values)
    found: dict[str, float] = {}
    if "tokens" in given and sequence:
        found["tokens"] = given["tokens"] / sequence
    if "samples" in given:
        found["samples"] = given["samples"]
    if "epochs" in given and "dataset_samples" in given:
        found["epochs"] = given["epochs"] * given["dataset_samples"]
    elif "epochs" in given and "dataset_tokens" in given and sequence:
        found["epochs"] = given["epochs"] * given["dataset_tokens"] / sequence
    if "steps" in given and per_step is not None:
        found["steps"] = given["steps"] * per_step
    return found
