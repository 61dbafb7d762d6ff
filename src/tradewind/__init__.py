"""Tradewind: finish GPU work on time, for the least money, on any cloud.

    import tradewind
    catalog = tradewind.catalog.load()
    for offer in catalog.offers(accelerator="H100-SXM", count=8, market="spot")[:5]:
        print(offer.provider, offer.region, offer.spot)

Sub-packages are imported when first touched, so `import tradewind` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind import catalog as catalog

__version__ = "0.1.0"
__all__ = ["__version__", "catalog"]


def __getattr__(name: str) -> Any:
    if name == "catalog":
        import importlib

        return importlib.import_module("tradewind.catalog")
    raise AttributeError(f"module 'tradewind' has no attribute {name!r}")
