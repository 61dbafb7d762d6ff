from __future__ import annotations

import warnings
from pathlib import Path

import pytest


def scalars(folder: Path, name: str = "loss") -> list[tuple[int, float]]:
    """Steps and values, as TensorBoard itself reads them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
        read = accumulators.EventAccumulator(str(folder), size_guidance={"scalars": 0})
        read.Reload()
    return [(event.step, event.value) for event in read.Scalars(name)]
