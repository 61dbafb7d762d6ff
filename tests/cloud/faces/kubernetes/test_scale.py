"""As many pods and nodes as a large cluster has."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import urllib3

from tests.cloud.faces.kubernetes.asking import get, job, jobs_at, pods_at
from tests.cloud.faces.kubernetes.control import Obj
from tests.cloud.faces.kubernetes.server import running
from tests.eventually import eventually

NODES, JOBS, RANKS = 5000, 1250, 8


@pytest.mark.long
def test_ten_thousand_pods_on_five_thousand_nodes(tmp_path: Path) -> None:
    with running(tmp_path, bodies="none", nodes=False) as cluster:
        cluster.fill(NODES, "node", {"nvidia.com/gpu": "8"})
        (tmp_path / "ca.pem").write_text(cluster.authority)
        pool = urllib3.PoolManager(ca_certs=str(tmp_path / "ca.pem"))
        headers = {"Authorization": f"Bearer {cluster.admin}", "Content-Type": "application/json"}
        for at in range(JOBS):
            made = job(f"job-{at}", count=RANKS, gpus=4)
            made["spec"]["template"]["metadata"] = {"labels": {"own": "yes"}}
            url = cluster.url + jobs_at("default")
            answer = pool.request("POST", url, body=json.dumps(made), headers=headers)
            assert answer.status == 201, answer.data

        def listed() -> list[Obj]:
            found, more = [], ""
            while True:
                query = f"?labelSelector=own%3Dyes&limit=500&continue={more}"
                page = get(cluster, pods_at("default") + query)
                found += page["items"]
                more = page["metadata"].get("continue", "")
                if not more:
                    return found

        def all_run() -> bool:
            pods = listed()
            running = [each for each in pods if each["status"]["phase"] == "Running"]
            return len(running) == JOBS * RANKS

        eventually(all_run, within_s=300)
        by_node = Counter(each["spec"]["nodeName"] for each in listed())
        assert sum(by_node.values()) == JOBS * RANKS
        assert max(by_node.values()) <= 2
        assert cluster.status()["troubles"] == []
