"""The loop that moves runs forward: observe → decide → record → perform → record."""

from tradewind.controller.controller import Controller

__all__ = ["Controller"]
