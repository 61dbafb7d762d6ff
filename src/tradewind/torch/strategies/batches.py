"""Batches as scripts have them: tensors, or tables and rows of them, cut along their samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradewind.base.errors import InvalidValue


def samples(batch: Any) -> int:
    """How many there are: the length of the first tensor that has one."""
    found = _first(batch)
    if found is None:
        raise InvalidValue(
            f"a batch is a {type(batch).__name__} without tensors that have samples",
            hint="give tensors, or tuples, lists and tables of them, samples first",
        )
    return int(found.shape[0])


def _first(batch: Any) -> Any:
    if hasattr(batch, "shape") and hasattr(batch, "to"):
        return batch if batch.ndim else None
    inside = batch.values() if isinstance(batch, Mapping) else batch
    if isinstance(inside, (str, bytes)) or not hasattr(inside, "__iter__"):
        return None
    return next((found for each in inside if (found := _first(each)) is not None), None)


def mapped(batch: Any, change: Callable[[Any], Any]) -> Any:
    """With every tensor changed. Tables and rows of other classes become plain ones, except named
    tuples."""
    if hasattr(batch, "shape") and hasattr(batch, "to"):
        return change(batch)
    if isinstance(batch, Mapping):
        return {key: mapped(each, change) for key, each in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(mapped(each, change) for each in batch))
    if isinstance(batch, (list, tuple)):
        made = [mapped(each, change) for each in batch]
        return made if isinstance(batch, list) else tuple(made)
    return batch


def moved(batch: Any, device: Any) -> Any:
    return mapped(batch, lambda tensor: tensor.to(device, non_blocking=True))


def cut(batch: Any, sizes: list[int]) -> list[Any]:
    """Into parts of so many samples. What is not as long as the batch goes to each whole."""
    if len(sizes) == 1:
        return [batch]
    many, parts, at = sum(sizes), [], 0
    for size in sizes:
        first, last = at, at + size

        def part(tensor: Any, first: int = first, last: int = last) -> Any:
            return tensor[first:last] if tensor.ndim and tensor.shape[0] == many else tensor

        parts.append(mapped(batch, part))
        at = last
    return parts


def sizes(many: int, micro: int | None) -> list[int]:
    """Micro-batches of `micro` samples, and what is left."""
    if micro is None or micro >= many:
        return [many]
    return [micro] * (many // micro) + ([many % micro] if many % micro else [])


def even(many: int, parts: int) -> list[int]:
    """In so many parts, as alike as can be."""
    return [many // parts + (number < many % parts) for number in range(parts)]


class Task:
    """What is computed of a batch. `loss(output, target)` gives the mean over samples; without it
    the model's output has a loss, as those of transformers have. `split(batch)` gives inputs and
    target where the batch is not such a pair, a table with labels, or one tensor that is both."""

    def __init__(self, loss: Any, split: Any) -> None:
        for name, each in (("loss", loss), ("split", split)):
            if each is not None and not callable(each):
                raise InvalidValue(f"{name} is a {type(each).__name__} and no function")
        self.given = loss
        self._split = split

    def parts(self, batch: Any) -> tuple[Any, Any]:
        if self._split is not None:
            inputs, target = self._split(batch)
            return inputs, target
        if isinstance(batch, Mapping):
            if self.given is None or "labels" not in batch:
                return batch, batch
            return {k: v for k, v in batch.items() if k != "labels"}, batch["labels"]
        if isinstance(batch, (list, tuple)):
            if len(batch) < 2:
                return (batch[0], batch[0]) if batch else (batch, batch)
            return (batch[0] if len(batch) == 2 else tuple(batch[:-1])), batch[-1]
        return batch, batch

    def loss(self, model: Any, batch: Any) -> Any:
        inputs, target = self.parts(batch)
        output = called(model, inputs)
        if self.given is not None:
            return self.given(output, target)
        found = output.get("loss") if isinstance(output, Mapping) else None
        found = found if found is not None else getattr(output, "loss", None)
        if found is None:
            raise InvalidValue(
                f"the model gives a {type(output).__name__} without a loss",
                hint="say how it is computed: prepare(…, loss=lambda output, target: …)",
            )
        return found


def called(model: Any, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, (list, tuple)):
        return model(*inputs)
    return model(inputs)
