"""Frozen values that the rest of the house passes around. Pure: no I/O, no clock."""

from tradewind.model.accelerator import Accelerator
from tradewind.model.instance import InstanceType
from tradewind.model.offer import MARKETS, Market, Offer, Price
from tradewind.model.rate import Rate

__all__ = ["MARKETS", "Accelerator", "InstanceType", "Market", "Offer", "Price", "Rate"]
