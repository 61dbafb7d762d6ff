"""Frozen values that the rest of the house passes around. Pure: no I/O, no clock."""

from tradewind.model.accelerator import Accelerator
from tradewind.model.account import Discount, Quota, Reservation, Scope
from tradewind.model.instance import InstanceType
from tradewind.model.observation import Observation
from tradewind.model.offer import MARKETS, Market, Offer, Price
from tradewind.model.rate import Rate

__all__ = [
    "MARKETS",
    "Accelerator",
    "Discount",
    "InstanceType",
    "Market",
    "Observation",
    "Offer",
    "Price",
    "Quota",
    "Rate",
    "Reservation",
    "Scope",
]
