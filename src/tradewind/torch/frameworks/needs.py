"""What a framework must be, to be taken part in: installed, and of a kind that is understood."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from tradewind.base.errors import InvalidValue, MissingExtra


def needed(*names: str, pip: str) -> Any:
    """The first of these modules that is installed."""
    for name in names:
        try:
            return import_module(name)
        except ImportError as error:
            if error.name is None or not name.startswith(error.name):
                raise
    raise MissingExtra(f"{names[0]} is not installed", hint=f"pip install {pip}")


def sharded_otherwise(models: Iterable[Any]) -> str | None:
    """What holds a model's parameters in a way that would be saved wrongly, if something does."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    for model in models:
        for module in model.modules():
            if isinstance(module, FullyShardedDataParallel):
                return "FullyShardedDataParallel"
            if type(module).__module__.startswith("deepspeed."):
                return "DeepSpeed"
    return None


def refuse(what: str | None, hint: str) -> None:
    if what is not None:
        raise InvalidValue(f"{what} is not supported", hint=hint)
