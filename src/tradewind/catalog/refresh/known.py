"""What we know of the types that providers sell, before they are asked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tradewind.catalog.table import Row
from tradewind.model import InstanceType

Known = dict[str, dict[str, InstanceType]]
"""Provider → name → type."""


def known_types(described: Iterable[InstanceType], rows: Iterable[Row]) -> Known:
    """All that are described, and the CPU-only types that have an offer among `rows`.

    The catalog describes machines with accelerators; of the others it knows what their offers say.
    Without them a source would have to guess which of a provider's hundreds are ours to renew.
    """
    known: Known = {}
    for kind in described:
        known.setdefault(kind.provider, {})[kind.name] = kind
    offered: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if not row["accelerator"] and not row.get("retired"):
            offered.setdefault((row["provider"], row["instance_type"]), []).append(row)
    for (provider, name), offers in offered.items():
        known.setdefault(provider, {}).setdefault(name, _cpu_only(offers))
    return known


def _cpu_only(offers: Sequence[Row]) -> InstanceType:
    first = offers[0]
    return InstanceType(
        provider=first["provider"],
        name=first["instance_type"],
        accelerator="",
        accelerator_count=0,
        vcpus=first["vcpus"],
        memory_gb=first["memory_gb"],
        local_nvme_gb=first["local_nvme_gb"],
        network_gbps=first["network_gbps"],
        intra_node_link="",
        link_gbytes_per_s=None,
        nvlink=False,
        rdma_type="",
        rdma_gbps_per_node=None,
        spot_possible=any(offer.get("spot") is not None for offer in offers),
        spot_notice_s=None,
        bare_metal=False,
        on_demand_price_known=any(offer.get("on_demand") is not None for offer in offers),
        status="current",
        evidence="its offers",
        note="",
    )
