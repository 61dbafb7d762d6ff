"""Frozen values that the rest of the house passes around. Pure: no I/O, no clock.

Each lives in a file of its own and is imported when first named: making a dataclass takes
milliseconds, and a command needs only a few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind.model.accelerator import Accelerator
    from tradewind.model.account import Discount, Quota, Reservation, Scope
    from tradewind.model.instance import InstanceType
    from tradewind.model.job import Job
    from tradewind.model.limits import Limits
    from tradewind.model.machines import Machines
    from tradewind.model.observation import Observation
    from tradewind.model.offer import MARKETS, Market, Offer, Price
    from tradewind.model.rate import Rate
    from tradewind.model.train import Train
    from tradewind.model.workload import Checkpoint, Data, Measured, Workload

__all__ = [
    "MARKETS",
    "Accelerator",
    "Checkpoint",
    "Data",
    "Discount",
    "InstanceType",
    "Job",
    "Limits",
    "Machines",
    "Market",
    "Measured",
    "Observation",
    "Offer",
    "Price",
    "Quota",
    "Rate",
    "Reservation",
    "Scope",
    "Train",
    "Workload",
]

_HOME = {
    "Accelerator": "accelerator",
    "Checkpoint": "workload",
    "Data": "workload",
    "Discount": "account",
    "InstanceType": "instance",
    "Job": "job",
    "Limits": "limits",
    "Machines": "machines",
    "MARKETS": "offer",
    "Market": "offer",
    "Measured": "workload",
    "Observation": "observation",
    "Offer": "offer",
    "Price": "offer",
    "Quota": "account",
    "Rate": "rate",
    "Reservation": "account",
    "Scope": "account",
    "Train": "train",
    "Workload": "workload",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tradewind.model' has no attribute {name!r}")
    value = getattr(import_module(f"tradewind.model.{_HOME[name]}"), name)
    globals()[name] = value
    return value
