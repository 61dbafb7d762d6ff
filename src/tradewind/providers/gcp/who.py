"""Which machine this is, by the metadata server. It travels with first.py: nothing but the standard
library, and `fetch(address, method, **headers)`.

Of a machine of Compute Engine the rank is the end of its name: machines that are bought together
have all else in common. A worker of a TPU slice is named by Google; its slice's name is in its
metadata, and so are its number, and the addresses of all workers."""

from __future__ import annotations

import os
from typing import Any

METADATA = os.environ.get("GCE_METADATA_HOST") or "169.254.169.254"


def who(fetch: Any) -> dict[str, Any]:
    def asked(name: str) -> str:
        address = f"http://{METADATA}/computeMetadata/v1/instance/{name}"
        found: str = fetch(address, Metadata_Flavor="Google").decode().strip()
        return found

    name, zone = asked("name"), asked("zone").rpartition("/")[2]
    host = asked("network-interfaces/0/ip")
    if name.startswith("tw-"):
        rank = int(name.rpartition("-")[2])
        return {"machine_id": f"gcp-{zone}-{name}", "rank": rank, "host": host}
    rank = int(asked("attributes/agent-worker-number"))
    # unknown:unknown:10.128.0.7,unknown:unknown:10.128.0.8
    workers = asked("attributes/worker-network-endpoints").split(",")
    return {
        "machine_id": f"gcp-tpu-{zone}-{asked('attributes/tradewind-slice')}-w{rank}",
        "rank": rank,
        "host": host,
        "variables": {
            "TPU_WORKER_ID": str(rank),
            "TPU_WORKER_HOSTNAMES": ",".join(each.split(":")[2] for each in workers),
        },
    }
