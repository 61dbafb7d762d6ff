"""The Role that setup makes is enough for runs, and has nothing that runs do not use."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually
from tests.providers.kubernetes.machines import Rented
from tradewind.base import clock
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.kubernetes import rights
from tradewind.providers.kubernetes.rights import RBAC, Right

ACCOUNT = "controllers"
SUBJECT = {"kind": "ServiceAccount", "name": ACCOUNT}


@pytest.fixture
def limited(rented: Rented, cluster: Control, monkeypatch: pytest.MonkeyPatch) -> Rented:
    """Opened by an account that has the Role and nothing else."""
    monkeypatch.setattr(clock, "sleep", lambda seconds: None)
    space = rented.namespace
    inside = f"/apis/{RBAC}/v1/namespaces/{space}"
    cluster.make(f"/api/v1/namespaces/{space}/serviceaccounts", _named("ServiceAccount", "v1"))
    role = _named("Role", f"{RBAC}/v1") | {"rules": rights.rules(rights.RUNS)}
    cluster.make(f"{inside}/roles", role)
    binding = _named("RoleBinding", f"{RBAC}/v1") | {
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT},
        "subjects": [SUBJECT | {"namespace": space}],
    }
    cluster.make(f"{inside}/rolebindings", binding)
    token = cluster.account_token(space, ACCOUNT)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(token=token)))
    rented.provider = rented.again(nodes=False)
    cluster.forget_calls()
    return rented


def _named(kind: str, version: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": ACCOUNT}}


def asked(cluster: Control) -> set[tuple[str, str]]:
    found = set()
    for call in cluster.calls():
        if call["user"].endswith(f":{ACCOUNT}"):
            verb, _, resource = call["action"].partition(" ")
            found.add((verb, resource))
    return found


def allowed(several: tuple[Right, ...]) -> set[tuple[str, str]]:
    return {(verb, each.resource) for each in several for verb in each.verbs}


def test_runs_use_just_what_the_role_has(limited: Rented, cluster: Control) -> None:
    request = limited.request(2)
    for lost in ("create jobs", "create secrets", "create services"):
        cluster.lose(lost)  # so that the next one mends what the last one has made
        with pytest.raises(OutcomeUnknown):
            limited.provider.launch(request, 1)
    machines = limited.launched(request)
    waiting = limited.request(1, leg=2, resources={"nvidia.com/gpu": "64"})
    limited.provider.launch(waiting, 1)
    eventually(lambda: limited.queued(waiting))
    quota = _named("ResourceQuota", "v1") | {"spec": {"hard": {"pods": "1"}}}
    cluster.make(f"/api/v1/namespaces/{limited.namespace}/resourcequotas", quota)
    third = limited.request(1, leg=3)
    limited.provider.launch(third, 1)

    def refused() -> bool:
        cluster.advance(5)
        found = limited.queued(third)
        return found is not None and "exceeded quota" in found.reason  # which only events say

    eventually(refused)
    limited.provider.withdraw([waiting.launch_id, third.launch_id])
    limited.provider.terminate([each.machine_id for each in machines])
    for rank in (0, 1):
        limited.ended(request, rank)

    def tidied() -> bool:
        limited.provider.list_machines()
        limited.provider.tidy()
        return not cluster.names("jobs.batch", limited.namespace)

    eventually(tidied)
    assert asked(cluster) == allowed(rights.RUNS)
