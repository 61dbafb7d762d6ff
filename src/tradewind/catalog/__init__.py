"""What can be bought: accelerators, types of machines, and what they cost where.

from tradewind import catalog

offers = catalog.load().offers(accelerator="H100-SXM", count=8, region="eu-*", market="spot")
offers[0].provider, offers.price(0).micros_hour
offers.left_out                        # {'stale': 12, …}: what matched but was not trusted
"""

from tradewind.catalog.catalog import Catalog
from tradewind.catalog.files import load
from tradewind.catalog.query import Selection

__all__ = ["Catalog", "Selection", "load"]
