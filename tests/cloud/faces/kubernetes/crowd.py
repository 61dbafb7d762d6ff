"""A cluster with many pods of ours, to measure a controller's pass on:

    python -m tests.cloud.faces.kubernetes.crowd --state DIR [--pods 10000] [--nodes 5000] COMMAND …

fills a cluster without bodies, sets a store in DIR up there, and runs the command with
`KUBECONFIG` and `STORE` in its environment, as `sh -c 'tradewind bench controller --provider
kubernetes --store "$STORE"'`. Each pod is a leg of a run of its own, made from the product's own
manifests; what they are told is left out, since nothing runs in them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.cloud.faces.kubernetes.control import Control
from tests.cloud.faces.kubernetes.server import running
from tests.eventually import eventually
from tests.providers.kubernetes.builders import PLACE, a_request
from tests.providers.kubernetes.machines import SMALL, footprint
from tradewind import store as stores
from tradewind.api import clouds
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.footprint import KEY, Footprint
from tradewind.providers.kubernetes.manifests import leg
from tradewind.providers.kubernetes.manifests.order import Order

NAMESPACE = "crowd"
_PATH = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


def job(made: Footprint, owner: str, number: int) -> dict[str, Any]:
    request = a_request(run_id=f"run-{number:06d}", layout=SMALL)
    body = leg.made(Order(PLACE, made.clusters[PLACE], labels.owner_of(owner), request))
    body["metadata"]["annotations"][labels.READY] = "true"
    body["spec"]["suspend"] = False
    for volume in body["spec"]["template"]["spec"]["volumes"]:
        if "secret" in volume:
            volume["secret"]["optional"] = True
    return body


def fill(cluster: Control, made: Footprint, owner: str, pods: int) -> None:
    """And wait until all of them run."""
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda n: cluster.make(_PATH, job(made, owner, n)), range(pods)):
            pass
    within_s = 60.0 + pods / 5
    eventually(lambda: _running(cluster) == pods, within_s=within_s)


def _running(cluster: Control) -> int:
    found = cluster.objects("pods", NAMESPACE)
    return sum(each["status"].get("phase") == "Running" for each in found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cloud.faces.kubernetes.crowd")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    with running(given.state.resolve() / "cluster", bodies="none", nodes=False) as cluster:
        cluster.fill(given.nodes, "node-", {"cpu": "8", "memory": "32Gi"})
        cluster.namespace(NAMESPACE)
        store = stores.open((given.state.resolve() / "store").as_uri())
        made = footprint(cluster, NAMESPACE)
        store.replace(KEY, made.encoded())
        fill(cluster, made, clouds.owner(store), given.pods)
        env = os.environ | {"KUBECONFIG": str(cluster.kubeconfig()), "STORE": store.url}
        sys.exit(subprocess.run(given.command, env=env).returncode)


if __name__ == "__main__":
    main()
