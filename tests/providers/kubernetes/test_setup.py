"""Setting clusters up for a store, and checking them: what is made, shown and refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from tests.cli.conftest import Cli, cli, home  # noqa: F401
from tests.cloud.faces.kubernetes.control import Control
from tests.cloud.faces.kubernetes.server import running
from tradewind import store as stores
from tradewind.api import rented
from tradewind.base import clock
from tradewind.base.errors import NotFound
from tradewind.catalog import files
from tradewind.providers.kubernetes import labels, rights
from tradewind.providers.kubernetes.footprint import KEY, Footprint, decoded
from tradewind.providers.kubernetes.offers import look

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("cluster"), bodies="none") as found:
        yield found


@pytest.fixture
def space(request: pytest.FixtureRequest) -> str:
    name = str(request.node.name).replace("_", "-").replace("[", "-")
    return name.strip("]")[:40].strip("-")


@pytest.fixture
def kubeconfig(cluster: Control, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The administrator's."""
    path = cluster.kubeconfig(path=tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return path


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "shared" / "store").as_uri()


@pytest.fixture
def claim(cluster: Control, space: str, tmp_path: Path) -> str:
    """A shared folder, and the namespace that it is in."""
    cluster.namespace(space)
    made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"}}
    spec = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": "shared",
    }
    cluster.make(f"/api/v1/namespaces/{space}/persistentvolumeclaims", made | {"spec": spec})
    return f"shared:{tmp_path / 'shared'}"


def user(cluster: Control, name: str, space: str, *more: dict[str, Any]) -> str:
    """A token of somebody who may do in one namespace what runs need."""
    cluster.make(
        f"{RBAC}/namespaces/{space}/roles",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": name},
            "rules": [*rights.rules(rights.RUNS), *more],
        },
    )
    cluster.make(
        f"{RBAC}/namespaces/{space}/rolebindings",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        },
    )
    return cluster.token(name)


ACCOUNTS = {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get", "create"]}


@pytest.fixture
def setup(url: str, claim: str, space: str, kubeconfig: Path) -> tuple[str, ...]:
    return (
        *("setup", "kubernetes", "--store", url, "--context", "test"),
        *("--namespace", space, "--volume", claim),
    )


def record(url: str) -> Footprint:
    return decoded(stores.open(url).get(KEY))


def made(cluster: Control, space: str) -> set[str]:
    """What bears our label, by kind."""
    kinds = (
        "serviceaccounts",
        "networkpolicies.networking.k8s.io",
        "resourcequotas",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
    )
    return {
        f"{kind.partition('.')[0]}/{each['metadata']['name']}"
        for kind in kinds
        for each in cluster.objects(kind, space)
        if each["metadata"].get("labels", {}).get(labels.MANAGED) == labels.OURS
    }


def test_set_up_again_and_removed(
    cli: Cli, cluster: Control, url: str, space: str, setup: tuple[str, ...]  # noqa: F811
) -> None:  # fmt: skip
    asked = cli(*setup)
    assert (asked.code, "add --yes" in asked.err) == (2, True), asked.err
    assert made(cluster, space) == set()
    quota = ("--quota", "nvidia.com/gpu=16", "--quota", "requests.memory=2048Gi")
    done = cli(*setup, "--yes", *quota)
    assert done.code == 0, done.err
    owner = labels.owner_of(url)
    assert made(cluster, space) == {
        "serviceaccounts/tradewind",
        "serviceaccounts/tradewind-controller",
        f"networkpolicies/tradewind-{owner[:8]}",
        "roles/tradewind-controller",
        "rolebindings/tradewind-controller",
        "resourcequotas/tradewind",
    }
    (role,) = [
        each
        for each in cluster.objects("roles.rbac.authorization.k8s.io", space)
        if each["metadata"]["name"] == "tradewind-controller"
    ]
    assert role["rules"] == rights.rules((*rights.RUNS, *rights.SEEN))
    found = record(url)
    (name,) = found.clusters
    one = found.clusters[name]
    assert (name, one.context, one.namespace, one.server) == ("test", "test", space, cluster.url)
    assert (one.identity, one.nodes, found.bucket_provider) == ("volume", True, "")
    assert cluster.admin not in found.encoded().decode() + done.out
    # As API servers write it back; the equipment's keeps it as it was sent.
    path = f"/api/v1/namespaces/{space}/resourcequotas/tradewind"
    written = {"spec": {"hard": {"requests.memory": "2Ti"}}}
    assert cluster.ask("PATCH", path, written, sort="application/merge-patch+json")[0] == 200
    assert "nothing to do" in cli(*setup, *quota).out
    assert cli("doctor", "kubernetes", "--store", url).code == 0
    gone = cli("teardown", "kubernetes", "--store", url, "--yes")
    assert gone.code == 0, gone.err
    assert made(cluster, space) == set()
    assert space in cluster.names("namespaces")
    assert "nothing to do" in cli("teardown", "kubernetes", "--store", url).out


def test_a_claim_that_is_not_there_stops_setup_before_anything_is_made(
    cli: Cli, cluster: Control, space: str, kubeconfig: Path, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    url = (tmp_path / "shared" / "b").as_uri()
    setup = ("setup", "kubernetes", "--store", url, "--namespace", space)
    missing = cli(*setup, "--volume", f"gone:{tmp_path / 'shared'}", "--yes")
    assert (missing.code, f"namespace {space} of test has no volume claim gone" in missing.err) == (
        3,
        True,
    )
    assert space not in cluster.names("namespaces")


def test_what_is_printed_is_taken_by_the_cluster(
    cli: Cli, cluster: Control, space: str, kubeconfig: Path  # noqa: F811
) -> None:  # fmt: skip
    printed = cli(
        *("setup", "kubernetes", "--store", "gs://b/x", "--namespace", space, "--print", "yaml"),
        *("--identity", "gke:a@p.iam.gserviceaccount.com", "--quota", "pods=5", "--read-nodes"),
    )
    assert printed.code == 0, printed.err
    objects = list(yaml.safe_load_all(printed.out))
    assert [each["kind"] for each in objects] == [
        "Namespace", "ServiceAccount", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding",
        "ClusterRole", "ClusterRoleBinding", "ResourceQuota",
    ]  # fmt: skip
    notes = objects[1]["metadata"]["annotations"]
    assert notes == {
        "iam.gke.io/gcp-service-account": "a@p.iam.gserviceaccount.com",
        labels.used_by(labels.owner_of("gs://b/x")): "runs",
    }
    assert "*" not in printed.out
    for each in objects:
        status, answer, _ = cluster.ask(
            "POST", f"{_folder(each, space)}?fieldValidation=Strict", each
        )
        assert status == 201, answer


def _folder(thing: dict[str, Any], space: str) -> str:
    group = thing["apiVersion"]
    base = "/api/v1" if group == "v1" else f"/apis/{group}"
    plural = {"NetworkPolicy": "networkpolicies"}.get(thing["kind"], f"{thing['kind'].lower()}s")
    inside = thing["metadata"].get("namespace")
    return f"{base}/namespaces/{inside}/{plural}" if inside else f"{base}/{plural}"


def test_rights_in_one_namespace_are_enough(
    cli: Cli, cluster: Control, url: str, claim: str, space: str, kubeconfig: Path  # noqa: F811
) -> None:  # fmt: skip
    token = user(cluster, f"ann-{space}", space, ACCOUNTS)
    cluster.kubeconfig(token, context="ann", path=kubeconfig)
    setup = (
        *("setup", "kubernetes", "--store", url, "--context", "ann", "--namespace", space),
        *("--volume", claim, "--accelerator", "h100:8", "--yes"),
    )
    done = cli(*setup)
    assert done.code == 0, done.err
    assert "not made, since it may not be" in done.out
    assert "they may not be read; runs are planned by what --accelerator has told" in done.out
    assert made(cluster, space) == {"serviceaccounts/tradewind"}
    one = record(url).clusters["ann"]
    assert (one.nodes, one.accelerators) == (False, ("h100:8",))
    told = cli("doctor", "kubernetes", "--store", url)
    assert (told.code, "as setup was told" in told.out) == (0, True), told.out
    assert "we may do all that runs need" in told.out
    with pytest.raises(NotFound) as unknown:
        look.offering(
            replace(record(url), clusters={"ann": replace(one, accelerators=())}), lambda _: {}
        )
    assert unknown.value.message.startswith("nodes of ann may not be read"), "and may be there"
    catalog = files.load(account=False)
    offers = rented.On(stores.open(url), ["kubernetes"]).catalog(catalog, clock.now())
    assert len(offers.offers(provider="kubernetes", accelerator="h100-sxm", count=8)) == 1


def test_without_the_rights_it_says_who_can_give_them(
    cli: Cli, cluster: Control, url: str, claim: str, space: str, kubeconfig: Path  # noqa: F811
) -> None:  # fmt: skip
    cluster.kubeconfig(cluster.token("nobody"), context="nobody", path=kubeconfig)
    refused = cli(
        *("setup", "kubernetes", "--store", url, "--context", "nobody"),
        *("--namespace", space, "--volume", claim, "--yes"),
    )
    assert refused.code == 5
    assert f"may not use namespace {space}" in refused.err
    assert "--print yaml | kubectl apply -f -" in " ".join(refused.err.split())
    elsewhere = cli(
        *("setup", "kubernetes", "--store", url, "--context", "nobody", "--namespace", "wrong"),
        *("--volume", claim, "--yes"),
    )
    assert (elsewhere.code, "may not use namespace wrong" in elsewhere.err) == (5, True)


def test_several_clusters_in_one_store(
    cli: Cli, cluster: Control, url: str, setup: tuple[str, ...], kubeconfig: Path, claim: str,  # noqa: F811
    space: str,
) -> None:  # fmt: skip
    assert cli(*setup, "--yes").code == 0
    cluster.kubeconfig(context="gke_project_us-central1-a_second", path=kubeconfig)
    more = cli(
        *("setup", "kubernetes", "--store", url, "--context", "gke_project_us-central1-a_second"),
        *("--namespace", space, "--volume", claim, "--queue", "", "--yes"),
    )
    assert more.code == 0, more.err
    assert list(record(url).clusters) == ["test", "second"]
    again = cli("setup", "kubernetes", "--store", url, "--image", "a/b:1", "--yes")
    assert again.code == 0, again.err
    assert {each.image for each in record(url).clusters.values()} == {"a/b:1"}
    assert {each.namespace for each in record(url).clusters.values()} == {space}


def test_gates_need_to_know_what_is_free(
    cli: Cli, cluster: Control, url: str, space: str, setup: tuple[str, ...], kubeconfig: Path  # noqa: F811
) -> None:  # fmt: skip
    token = user(cluster, f"gus-{space}", space, ACCOUNTS, *rights.rules(rights.GATES))
    cluster.kubeconfig(token, context="gus", path=kubeconfig)
    limited = tuple("gus" if each == "test" else each for each in setup)
    refused = cli(*limited, "--accelerator", "h100:8", "--gates", "--yes")
    assert refused.code == 5, refused.out
    assert "may not list nodes, list pods in all of gus" in " ".join(refused.err.split())
    done = cli(*setup, "--gates", "--yes")
    assert done.code == 0, done.err
    assert record(url).clusters["test"].gates
    (role,) = [
        each
        for each in cluster.objects("roles.rbac.authorization.k8s.io", space)
        if each["metadata"]["name"] == "tradewind-controller"
    ]
    assert rights.rules(rights.GATES)[0] in role["rules"]


S3 = ("--store", "s3://b/x")
WRONG = [
    (("--store", "memory://x"), 2, "pods cannot reach the store"),
    ((*S3, "--namespace", "Not_One"), 2, "--namespace Not_One is not the name"),
    ((*S3, "--image", "no image"), 2, "--image no image is not the name of a container image"),
    ((*S3, "--identity", "me"), 2, "--identity me is none that pods can have"),
    ((*S3, "--identity", "eks:arn:role"), 2, "is none that pods can have"),
    ((*S3, "--identity", "aks"), 2, "names no client id"),
    ((*S3, "--identity", "eks", "--store-secret", "s"), 2, "pods are one somebody"),
    ((*S3, "--volume", "shared"), 2, "is no CLAIM:/PATH"),
    (("--store", "file:///a/b", "--volume", "c:/d"), 2, "is not below /d"),
    ((*S3, "--accelerator", "h100;8"), 2, "is no [TYPE=]NAME[:COUNT][:spot]"),
    ((*S3, "--quota", "gpus"), 2, "is no RESOURCE=AMOUNT"),
    ((*S3, "--grace", "2h"), 2, "--grace 2h is not between"),
    ((*S3, "--tolerate", "a=b"), 2, "is not the key of a taint"),
]


@pytest.mark.parametrize(("words", "code", "said"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_what_cannot_be_meant_is_refused(
    cli: Cli, words: tuple[str, ...], code: int, said: str  # noqa: F811
) -> None:  # fmt: skip
    refused = cli("setup", "kubernetes", *words, "--print", "yaml")
    assert (refused.code, said in " ".join(refused.err.split())) == (code, True), refused.err


def test_clusters_that_cannot_be_asked(
    cli: Cli, cluster: Control, url: str, setup: tuple[str, ...], kubeconfig: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    def said(code: int, *words: str) -> None:
        ran = cli(*setup, "--yes")
        assert ran.code == code, ran.err
        assert all(each in " ".join(ran.err.split()) for each in words), ran.err

    gone = tuple("gone" if each == "test" else each for each in setup)
    ran = cli(*gone, "--yes")
    assert (ran.code, "has no context gone" in ran.err) == (3, True)
    assert "kubectl config get-contexts" in " ".join(ran.err.split())
    cluster.kubeconfig(cluster.token("old", lives_s=0), context="test", path=kubeconfig)
    said(5, "Unauthorized", "log in", "tradewind doctor kubernetes")
    missing = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}
    }
    cluster.kubeconfig(user=missing, context="test", path=kubeconfig)
    said(5, "no-such-plugin")
    cluster.kubeconfig(context="test", path=kubeconfig, server="https://127.0.0.1:1")
    said(6, "is https://127.0.0.1:1 reachable from here")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    said(3, "there is no kubeconfig at")
    kubeconfig.write_text("no: [yaml")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    said(5, "cannot be understood")


def test_what_setup_is_told_of_must_be_there(
    cli: Cli, cluster: Control, url: str, setup: tuple[str, ...], space: str  # noqa: F811
) -> None:  # fmt: skip
    for words, code, said in (
        (("--jobset",), 3, "--jobset: jobset is not installed"),
        (("--queue", "team"), 3, "--queue: kueue is not installed"),
    ):
        cluster.dials(jobset=False, kueue=False)
        ran = cli(*setup, *words, "--yes")
        assert (ran.code, said in ran.err) == (code, True), ran.err
    cluster.dials(jobset=True, kueue=True)
    ran = cli(*setup, "--queue", "team", "--yes")
    assert (ran.code, "has no LocalQueue team" in ran.err) == (3, True), ran.err
    both = cli(*setup, "--gates", "--volcano", "--yes")
    assert (both.code, "--gates and --volcano" in both.err) == (2, True), both.err
    done = cli(*setup, "--jobset", "--yes")
    assert done.code == 0, done.err
    assert "not used: --queue does" in done.out
    assert record(url).clusters["test"].jobset
