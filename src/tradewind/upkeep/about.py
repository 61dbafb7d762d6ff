"""What doctor looks at, in this order. Apart from the checks, so that a help text needs none of
them."""

from __future__ import annotations

from tradewind.providers import registry

ABOUT = (
    *("computer", "parts", "gpus", "prices", "budgets", "store", "credentials"),
    *registry.RENTED,
    *("clocks", "runs", "orphans"),
)
HERE = ("computer", "parts", "gpus")
"""What `doctor local` looks at: all that machines on this computer stand on."""
