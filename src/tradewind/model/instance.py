"""A type of machine that a provider sells, without where or for how much."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    provider: str
    name: str
    accelerator: str
    accelerator_count: float
    vcpus: float | None
    memory_gb: float | None
    local_nvme_gb: float | None
    network_gbps: float | None
    intra_node_link: str
    link_gbytes_per_s: float | None
    nvlink: bool
    rdma_type: str
    rdma_gbps_per_node: float | None
    spot_possible: bool
    spot_notice_s: int | None
    bare_metal: bool
    on_demand_price_known: bool
    status: str
    evidence: str
    note: str
