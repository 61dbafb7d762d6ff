"""Where the estimator's benches find accelerators and shapes for the rows of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tradewind import catalog
from tradewind.errors import InvalidValue, NotFound
from tradewind.estimate import columns, registry
from tradewind.model import Accelerator
from tradewind.model.shape import Work

# Measured, and the same chip as one that the catalog knows: only the memory differs.
_SAME_CHIP = {"Quadro RTX 8000": "Quadro-RTX6000"}


def work(name: str) -> Work | None:
    try:
        found = registry.find(name)
    except NotFound:
        return None
    return found if isinstance(found, Work) else None


def finders() -> tuple[
    Callable[[str, float | None], Accelerator], Callable[[str], Mapping[str, float] | None]
]:
    known = catalog.load(account=False)

    def accelerator(name: str, memory_gb: float | None) -> Accelerator:
        name = _SAME_CHIP.get(name, name)
        exact = known.names.canonical(name, memory_gb)
        return known.accelerators[exact or known.names.resolve(name).names[0]]

    def shape(name: str) -> Mapping[str, float] | None:
        try:
            return columns.of_shape(registry.find(name.replace("_", "-")))
        except (NotFound, InvalidValue):
            return None

    return accelerator, shape
