"""What a measurement's `interconnect` says of the network, in the words people use. Pure.

    nvlink; ib 400Gb/s/gpu          pcie; 100GbE          nvlink; roce 8x200 Gbps/node
    nvl72; ib 800Gb/s/gpu           nvlink; 4xHDR         nvlink; efa 3200Gb/s/node

Parts are divided by semicolons; one about the inside of a machine is no network. Several ports are
those of a machine, and so is a rate that does not say for whom, unless it is what each such
accelerator usually has.
"""

from __future__ import annotations

import re

_INSIDE = re.compile(r"nvlink|nvswitch|nvl\d|pcie|xgmi|infinity fabric|\bici\b")
_INFINIBAND = {"qdr": 32, "fdr": 56, "edr": 100, "hdr": 200, "ndr": 400, "xdr": 800}
_RATE = re.compile(
    r"(?:(?P<ports>\d+)\s*[x×]\s*)?"
    r"(?:(?P<rate>\d+(?:\.\d+)?)\s*(?P<unit>tbit/s|tb/s|tbps|gbit/s|gb/s|gbps|gbe|gbytes/s|gib/s|g\b)"
    rf"|(?P<name>{'|'.join(_INFINIBAND)})\b)"
    r"\s*(?P<whom>(?:/|per )\s*(?:node|machine|host|vm|gpu|device|accelerator|chip))?",
    re.IGNORECASE,
)
_FABRICS = ("nvl72", "roce", "efa", "omni-path", "tcp", "slingshot", "ethernet", "dcn", "ib")
_EACH = re.compile("gpu|device|accelerator|chip")
_PLAIN_ETHERNET_GBPS = 100  # of a machine, where no more is said
# One direction of sixteen lanes, by what accelerators of that time came with, bytes/s.
_PCIE = {"pascal": 12e9, "volta": 12e9, "turing": 12e9, "hopper": 50e9, "blackwell": 50e9}
_USUAL_PCIE = 25e9


def network_gbps(text: str, per_node: float, usual: float) -> float:
    """Gbit/s to other machines for each device, `usual` where nothing is said."""
    parts = [part for part in text.lower().split(";") if not _INSIDE.search(part)]
    for part in parts:
        found = _RATE.search(part)
        if found is None:
            continue
        rate = float(_INFINIBAND[found["name"]] if found["name"] else found["rate"])
        unit = found["unit"] or ""
        rate *= 1000 if unit.startswith("t") else 8 if unit in ("gbytes/s", "gib/s") else 1
        whom = found["whom"] or ""
        rate *= float(found["ports"] or 1)
        unsaid = not whom and not found["ports"] and rate == usual
        return rate if unsaid or _EACH.search(whom) else rate / per_node
    if any(re.search(r"ethernet|\btcp\b", part) for part in parts):
        return min(_PLAIN_ETHERNET_GBPS / per_node, usual)
    return usual


def fabric(text: str) -> str:
    """What kind of network it is, in one word."""
    plain = text.lower()
    return next((word for word in _FABRICS if word in plain), "unstated")


def link(text: str, generation: str, usual: float) -> float:
    """Bytes/s between devices of a machine: no more than PCIe's where it has nothing else."""
    inside = text.lower()
    if "pcie" in inside and not re.search("nvlink|nvswitch|nvl|xgmi", inside):
        return min(usual, _PCIE.get(generation, _USUAL_PCIE))
    return usual
