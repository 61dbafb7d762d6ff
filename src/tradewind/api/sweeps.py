"""A sweep over parameters: one run for each combination of values. A job finds its own in the
environment, and reports find them in the run's tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tradewind.model import sweeps

if TYPE_CHECKING:
    from tradewind.model.run import Spec

combinations = sweeps.combinations


def of(spec: Spec, values: dict[str, str]) -> Spec:
    """The run of one combination."""
    sweeps.check(values, spec.job.get("secrets", {}))
    env = {**spec.job.get("env", {}), **values}
    return replace(spec, job=spec.job | {"env": env}, tags=spec.tags | values)
