"""Where the estimator's benches find accelerators and shapes for the rows of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tradewind import catalog
from tradewind.errors import InvalidValue, NotFound
from tradewind.estimate import columns, registry
from tradewind.model import Accelerator


def finders() -> tuple[
    Callable[[str, float | None], Accelerator], Callable[[str], Mapping[str, float] | None]
]:
    known = catalog.load(account=False)

    def accelerator(name: str, memory_gb: float | None) -> Accelerator:
        exact = known.names.canonical(name, memory_gb)
        return known.accelerators[exact or known.names.resolve(name).names[0]]

    def shape(name: str) -> Mapping[str, float] | None:
        try:
            return columns.of_shape(registry.find(name.replace("_", "-")))
        except (NotFound, InvalidValue):
            return None

    return accelerator, shape
