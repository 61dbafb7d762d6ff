"""Answers that are lost, refused or late; and who we are to a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually
from tests.providers.kubernetes.machines import Rented
from tradewind.base import clock
from tradewind.base.errors import NoAccess, NotFound
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.kubernetes import client
from tradewind.providers.kubernetes.client import Client


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "sleep", lambda seconds: None)


@pytest.mark.parametrize("call", ["create jobs", "create secrets", "create services", "patch jobs"])
@pytest.mark.parametrize("how", ["lost", "failed", "failed after"])
def test_each_call_of_a_launch_cut_off_once(
    rented: Rented, cluster: Control, call: str, how: str
) -> None:
    request = rented.request(2)
    if how == "lost":
        cluster.lose(call)
    else:
        cluster.fail(call, after=how == "failed after")
    with pytest.raises(OutcomeUnknown):
        rented.provider.launch(request, 1)
    listing = rented.provider.list_machines()
    assert len(listing.machines) in (0, 2), "all or none"
    rented.provider.launch(request, 1)
    machines = eventually(lambda: rented.machines(request))
    assert [each.rank for each in machines] == [0, 1]
    assert len(cluster.names("jobs.batch", rented.namespace)) == 1
    assert len(cluster.names("secrets", rented.namespace)) == 1


@pytest.mark.parametrize("call", ["patch jobs", "delete pods"])
@pytest.mark.parametrize("how", ["lost", "failed"])
def test_each_call_of_an_end_cut_off_once(
    rented: Rented, cluster: Control, call: str, how: str
) -> None:
    request = rented.request(2)
    machines = rented.launched(request)
    names = [each.machine_id for each in machines]
    cluster.lose(call) if how == "lost" else cluster.fail(call)
    with pytest.raises(OutcomeUnknown):
        rented.provider.terminate(names)
    rented.provider.terminate(names)
    for rank in (0, 1):
        assert rented.ended(request, rank).ended_by == ""


@pytest.mark.parametrize("call", ["list pods", "list jobs", "list nodes"])
def test_questions_are_asked_again(rented: Rented, cluster: Control, call: str) -> None:
    request = rented.request()
    rented.launched(request)
    cluster.lose(call)
    cluster.fail(call, "ServiceUnavailable", status=503)
    assert rented.machines(request)


def test_too_often_is_asked_again_and_then_refused(rented: Rented, cluster: Control) -> None:
    cluster.fail("create jobs", "TooManyRequests", status=429)
    assert rented.provider.launch(rented.request(), 1) == ()
    cluster.fail("create jobs", "TooManyRequests", status=429, count=3)
    with pytest.raises(Refused) as caught:
        rented.provider.launch(rented.request(leg=2), 1)
    assert caught.value.kind == "throttled"


def test_the_server_is_restarted(rented: Rented, cluster: Control) -> None:
    request = rented.request()
    rented.launched(request)
    cluster.restart(0.5)
    failed = 0

    def back() -> bool:
        nonlocal failed
        try:
            return bool(rented.machines(request)) and failed > 0
        except (Refused, OutcomeUnknown):
            failed += 1
            return False

    eventually(back)


def test_pages_that_were_forgotten_are_begun_anew(
    rented: Rented, cluster: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = rented.request(3)
    rented.launched(request)
    found = Client("test")
    path = f"/api/v1/namespaces/{rented.namespace}/pods"
    asked = client.Client.get
    pages = 0

    def get(self: Client, path: str, kind: type, doing: str, query: object = None) -> object:
        nonlocal pages
        pages += 1
        if pages == 2:
            cluster.compact()
        return asked(self, path, kind, doing, query)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "get", get)
    listed = found.all(path, dict, "listing pods", page=2)
    assert len(listed) == 3
    assert pages == 4


def test_a_name_that_another_has(rented: Rented, cluster: Control) -> None:
    request = rented.request()
    rented.provider.launch(request, 1)
    (job,) = cluster.names("jobs.batch", rented.namespace)
    path = f"/apis/batch/v1/namespaces/{rented.namespace}/jobs/{job}"
    body = {"metadata": {"annotations": {"tradewind.dev/launch-id": "another"}}}
    cluster.ask("PATCH", path, body, sort="application/merge-patch+json")
    with pytest.raises(Refused, match="not ours") as caught:
        rented.provider.launch(request, 1)
    assert caught.value.kind == "not_allowed"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('jobs.batch "x" is forbidden: exceeded quota: q, requested: pods=1', "no_quota"),
        ('jobs.batch is forbidden: User "a" cannot create resource "jobs"', "not_allowed"),
        ("unable to create new content in namespace a because it is being terminated", "not_found"),
        ('admission webhook "kyverno" denied the request: no', "not_allowed"),
    ],
)
def test_refusals_are_of_our_kinds(
    rented: Rented, cluster: Control, message: str, kind: str
) -> None:
    cluster.fail("create jobs", "Forbidden", status=403, message=message)
    with pytest.raises(Refused) as caught:
        rented.provider.launch(rented.request(), 1)
    assert caught.value.kind == kind
    assert caught.value.hint
    assert message in caught.value.message


def test_a_namespace_that_is_not_there(cluster: Control) -> None:
    rented = Rented(cluster, "nowhere")
    assert rented.provider.list_machines().machines == ()
    with pytest.raises(Refused) as caught:
        rented.provider.launch(rented.request(), 1)
    assert caught.value.kind == "not_found"
    assert "setup kubernetes" in str(caught.value.hint)


def test_a_cluster_that_was_not_set_up(rented: Rented) -> None:
    request = rented.request()
    with pytest.raises(Refused, match="no cluster") as caught:
        rented.again().launch(
            type(request)(
                launch_id="l",
                run_id="r",
                leg=1,
                way=type(request.way)(
                    provider="kubernetes", region="elsewhere", zone="", instance_type="x",
                    market="on_demand", nodes=1, price=0, rate=1.0, start_s=1.0,
                ),
                hard_stop_s=60,
            ),
            1,
        )  # fmt: skip
    assert caught.value.kind == "not_found"


# Who we are.


def test_one_who_may_read_no_nodes(rented: Rented, cluster: Control) -> None:
    """With the rights of one namespace alone."""
    space = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{rented.namespace}"
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": ["batch"], "resources": ["jobs"],
         "verbs": ["create", "delete", "get", "list", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete", "list"]},
        {"apiGroups": [""], "resources": ["secrets", "services"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get"]},
    ]  # fmt: skip
    meta = {"apiVersion": f"{group}/v1", "metadata": {"name": "us"}}
    cluster.make(f"{space}/roles", meta | {"kind": "Role", "rules": rules})
    ann = {"kind": "User", "name": "ann", "apiGroup": group}
    bound = {"roleRef": {"kind": "Role", "name": "us", "apiGroup": group}, "subjects": [ann]}
    cluster.make(f"{space}/rolebindings", meta | {"kind": "RoleBinding"} | bound)
    cluster.kubeconfig(cluster.token("ann"), context="ann", path=Path(client_config()))
    rented.provider = rented.again(context="ann")
    request = rented.request(2)
    machines = rented.launched(request)
    rented.provider.terminate([each.machine_id for each in machines])
    rented.ended(request)
    rented.ended(request, 1)

    def tidied() -> bool:
        rented.provider.list_machines()
        rented.provider.tidy()
        return not cluster.names("jobs.batch", rented.namespace)

    eventually(tidied)


def client_config() -> str:
    import os

    return os.environ["KUBECONFIG"]


def test_a_login_that_was_renewed_meanwhile(rented: Rented, cluster: Control) -> None:
    path = Path(client_config())
    cluster.kubeconfig(cluster.token("bea", ["system:masters"]), context="bea", path=path)
    asking = Client("bea")
    asking.get("/version", dict, "asking")
    cluster.expire("bea")
    with pytest.raises(NoAccess, match="Unauthorized") as caught:
        asking.get("/api/v1/nodes", dict, "asking")
    assert "log in" in str(caught.value.hint)
    assert "`tradewind doctor kubernetes`" in str(caught.value.hint)
    cluster.kubeconfig(cluster.token("bea", ["system:masters"]), context="bea", path=path)
    asking.get("/api/v1/nodes", dict, "asking")


def test_a_certificate(cluster: Control) -> None:
    user = cluster.certificate("cleo", ["system:masters"])
    cluster.kubeconfig(context="cleo", path=Path(client_config()), user=user)
    assert Client("cleo").get("/version", dict, "asking")


def plugin(tmp_path: Path, text: str) -> dict[str, object]:
    program = tmp_path / "plugin.py"
    program.write_text(text)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(program)],
            "interactiveMode": "Never",
        }
    }


def test_a_plugin_that_makes_tokens(cluster: Control, tmp_path: Path) -> None:
    token = cluster.token("dora", ["system:masters"])
    said = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }
    user = plugin(tmp_path, f"import json; print(json.dumps({said!r}))")
    cluster.kubeconfig(context="dora", path=Path(client_config()), user=user)
    assert Client("dora").get("/api/v1/nodes", dict, "asking")


@pytest.mark.parametrize("broken", ["missing", "failing"])
def test_a_plugin_that_does_not_work(cluster: Control, tmp_path: Path, broken: str) -> None:
    user = plugin(tmp_path, "import sys; sys.exit('token expired: run gcloud auth login')")
    if broken == "missing":
        user["exec"]["command"] = "no-such-auth-plugin"  # type: ignore[index]
    cluster.kubeconfig(context="eve", path=Path(client_config()), user=user)
    with pytest.raises(NoAccess, match="context eve has no login") as caught:
        Client("eve")
    assert ("no-such-auth-plugin" if broken == "missing" else "") in caught.value.message


def test_contexts_that_cannot_be_used(
    cluster: Control, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match="has no context gone") as caught:
        Client("gone")
    assert "test" in caught.value.choices
    assert "kubectl config get-contexts" in str(caught.value.hint)
    with pytest.raises(NoAccess, match="was set up as https://elsewhere") as moved:
        Client("test", server="https://elsewhere")
    assert "setup" in str(moved.value.hint)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(NotFound, match="there is no kubeconfig") as caught:
        Client("test")
    assert "aws eks update-kubeconfig" in str(caught.value.hint)
    with pytest.raises(NoAccess, match="the cluster that this is run in"):
        Client("")
    (tmp_path / "none").write_text("contexts: [7]\n")
    with pytest.raises((NoAccess, NotFound)):
        Client("test")
    (tmp_path / "none").write_text("{:\n")
    with pytest.raises(NoAccess, match="cannot be understood"):
        Client("test")


def test_a_server_that_is_not_there(cluster: Control) -> None:
    cluster.kubeconfig(context="off", path=Path(client_config()), server="https://127.0.0.1:9")
    with pytest.raises(Refused) as caught:
        Client("off").get("/version", dict, "asking")
    assert caught.value.kind == "throttled"
    assert "reachable" in str(caught.value.hint)
