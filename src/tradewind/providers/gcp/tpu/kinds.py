"""What a slice of TPUs is, by the catalog's name for it (`tpu-v5litepod-16`). Pure.

How many workers (TPU VMs) a slice has, from cloud.google.com/tpu/docs/v2 to v6e: v2, v3, v4 and v5p
are named by their cores, eight of which are one worker; v5e and v6e by their chips, of which up to
eight are in one worker, and four in each of several. Runtimes are those for JAX and PyTorch on
cloud.google.com/tpu/docs/runtimes. Newer generations (v7) are not sold by this API.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from tradewind.model.run import Way
from tradewind.providers.base import Refused
from tradewind.providers.gcp.facts import TPU

RUNTIMES = {
    "v2": "tpu-ubuntu2204-base",
    "v3": "tpu-ubuntu2204-base",
    "v4": "tpu-ubuntu2204-base",
    "v5litepod": "v2-alpha-tpuv5-lite",
    "v5p": "v2-alpha-tpuv5",
    "v6e": "v2-alpha-tpuv6e",
}
_BY_CORES = ("v2", "v3", "v4", "v5p")
_CORES = 8
"""Of a worker."""
_ALONE, _EACH = 8, 4
"""Chips of a worker, where there is one, and where there are several."""
_NAME = re.compile(rf"{TPU}(?P<generation>[a-z0-9]+)-(?P<size>[1-9]\d*)")


class Slice(Struct, frozen=True, kw_only=True):
    accelerator_type: str
    """As Google calls it."""
    runtime: str
    workers: int


def kind(instance_type: str) -> Slice:
    found = _NAME.fullmatch(instance_type)
    if found is None or found["generation"] not in RUNTIMES:
        raise Refused("not_found", f"{instance_type} is no slice of TPUs that we know of")
    size = int(found["size"])
    if found["generation"] in _BY_CORES:
        many = -(-size // _CORES)
    else:
        many = 1 if size <= _ALONE else -(-size // _EACH)
    return Slice(
        accelerator_type=instance_type.removeprefix(TPU),
        runtime=RUNTIMES[found["generation"]],
        workers=many,
    )


def workers(instance_type: str) -> int:
    """One, of a slice that we do not know."""
    try:
        return kind(instance_type).workers
    except Refused:
        return 1


def by_worker(way: Way) -> Way:
    """A way of so many slices as one of all their workers, each at its part of the price."""
    each = kind(way.instance_type).workers
    nodes, price = way.nodes * each, round(way.price / each)
    return replace(way, nodes=nodes, workers=each, price=price)
