"""A plan for clusters, and what of it they can have: nodes as offers, ways with what pods ask for,
images, identities, and a shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cloud.faces.kubernetes.control import Control
from tests.cloud.faces.kubernetes.server import running as running_cluster
from tests.providers.kubernetes.nodes import H100, REGION, TYPE
from tradewind import store as stores
from tradewind.api import clouds, rented, submit
from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.catalog import ratecard
from tradewind.cli import app
from tradewind.model.run import Machine, Spec, Way
from tradewind.model.usage import Rates
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.cloud import CLOUD, Kubernetes
from tradewind.providers.kubernetes.footprint import KEY, Cluster, Footprint
from tradewind.providers.kubernetes.manifests.placement import placement

WORK = """name: small
work: {on: 1xH100-SXM, hours: 1}
limits: {deadline: 10h}
run: {command: python train.py%s}
"""


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    """Two nodes with eight GPUs each, one of them spot."""
    with running_cluster(tmp_path_factory.mktemp("gpus"), nodes=False) as found:
        labels = {TYPE: "p5.48xlarge", REGION: "us-east-1", **H100}
        has = {"cpu": "96", "memory": "1000Gi", "nvidia.com/gpu": "8"}
        found.add("steady", has, labels)
        found.add("spot", has, labels | {"karpenter.sh/capacity-type": "spot"})
        found.namespace("team")
        yield found


@pytest.fixture
def cluster(gpus: Control, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cluster:
    monkeypatch.setenv("KUBECONFIG", str(gpus.kubeconfig(path=tmp_path / "kubeconfig")))
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    return Cluster(
        context="test",
        server=gpus.url,
        namespace="team",
        service_account="default",
        nodes=True,
        identity="volume",
        volume="shared",
        volume_path=str(tmp_path),
    )


@pytest.fixture
def url(tmp_path: Path, cluster: Cluster) -> str:
    """A store that is set up."""
    url = (tmp_path / "store").as_uri()
    keep(url, cluster)
    return url


def keep(url: str, *several: Cluster) -> None:
    named = {f"c{number}": each for number, each in enumerate(several, 1)}
    stores.open(url).replace(KEY, Footprint(clusters=named).encoded())


def planned(url: str, tmp_path: Path, more: str = "") -> tuple[rented.On, Spec]:
    path = tmp_path / "work.yaml"
    path.write_text(WORK % more)
    on = rented.On(stores.open(url), ["kubernetes"])
    return on, submit.spec_of(submit.wanted(path, on), local=False, on=on)


def test_nodes_are_planned_with_and_ways_say_what_pods_ask_for(url: str, tmp_path: Path) -> None:
    on, spec = planned(url, tmp_path)
    assert {way.region for way in spec.ways} == {"c1"}
    assert {way.market for way in spec.ways} == {"spot", "on_demand"}
    assert on.rejected == []
    one = next(way for way in spec.ways if way.instance_type == "p5.48xlarge-1of8")
    assert one.price > 1_000_000  # of p5.48xlarge in the catalog, an eighth
    asked = one.layout["kubernetes"]
    assert asked["resources"]["nvidia.com/gpu"] == "1"
    assert asked["image"].startswith("pytorch/pytorch:")
    assert (one.pass_s, one.rates, one.facts.queues) == (0, None, True)
    steady = next(way for way in spec.ways if way.market == "on_demand")
    assert steady.layout["kubernetes"]["absent"] == ["karpenter.sh/capacity-type"]
    for way in spec.ways:  # as manifests read it
        found = placement(stored(url), way)
        assert (found.image, found.resources) == (
            way.layout["kubernetes"]["image"],
            way.layout["kubernetes"]["resources"],
        )


def stored(url: str) -> Cluster:
    found: Footprint = CLOUD.decoded(stores.open(url).get(KEY))
    return found.clusters["c1"]


def test_a_job_may_name_its_image(url: str, tmp_path: Path, cluster: Cluster) -> None:
    _, spec = planned(url, tmp_path, ", image: example.com/team/train:7")
    assert {way.layout["kubernetes"]["image"] for way in spec.ways} == {"example.com/team/train:7"}
    keep(url, replace(cluster, image="own/base:1"))
    _, spec = planned(url, tmp_path)
    assert {way.layout["kubernetes"]["image"] for way in spec.ways} == {"own/base:1"}


def test_secrets_of_a_job_are_those_of_its_namespace(url: str, tmp_path: Path) -> None:
    _, spec = planned(url, tmp_path, ", secrets: {A: 'kubernetes-secret:hf#token'}")
    assert spec.ways[0].layout["kubernetes"]["secrets"] == ["hf"]
    with pytest.raises(InvalidValue, match="pods cannot look up a secret of aws-ssm"):
        planned(url, tmp_path, ", secrets: {A: 'aws-ssm:/x'}")


def test_a_quota_of_nothing_is_said_before_anything_is_bought(
    gpus: Control, url: str, tmp_path: Path
) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    hard = {"spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}
    path = "/api/v1/namespaces/team/resourcequotas"
    gpus.make(path, quota | hard)
    try:
        nothing = r"allows 0 of requests.nvidia.com/gpu, and \d are"
        with pytest.raises(NotFound, match=nothing) as caught:
            planned(url, tmp_path)
        assert "describe resourcequota" in str(caught.value.hint)
        found = list(CLOUD.checks(footprint(url), known=True, store_url=url))
        assert [each.what for each in found if each.level == "broken"] == [
            "the quota none allows 0 of requests.nvidia.com/gpu",
            "the volume claim shared is not there",
        ][::-1]
    finally:
        gpus.ask("DELETE", f"{path}/none")


def footprint(url: str) -> Footprint:
    found: Footprint = CLOUD.decoded(stores.open(url).get(KEY))
    return found


def test_nodes_that_have_gone_since_the_plan_are_left_out(
    url: str, tmp_path: Path, gpus: Control
) -> None:
    _, spec = planned(url, tmp_path)
    found = CLOUD.usable(footprint(url), [_of(spec.ways[0], "p4d.24xlarge")], url)
    assert found.ways == ()
    assert found.rejected[0].kind == "not_offered"
    too_many = CLOUD.usable(footprint(url), [replace(spec.ways[0], nodes=400)], url)
    assert "and 400 are needed" in too_many.rejected[0].words
    elsewhere = CLOUD.usable(footprint(url), [replace(spec.ways[0], region="c9")], url)
    assert elsewhere.rejected[0].kind == "no_setup"


def _of(way: Way, instance_type: str) -> Way:
    return replace(way, instance_type=instance_type)


def test_what_is_in_use_waits_and_that_is_said(gpus: Control, url: str, tmp_path: Path) -> None:
    asks = {"cpu": "1", "nvidia.com/gpu": "8"}
    container = {
        "name": "c",
        "image": "x",
        "command": ["true"],
        "resources": {"requests": asks, "limits": asks},
    }
    gpus.make(
        "/api/v1/namespaces/default/pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "busy"},
            "spec": {"nodeName": "steady", "containers": [container]},
        },
    )
    try:
        on, spec = planned(url, tmp_path)
        words = " ".join(on.warnings)
        ways = [way for way in spec.ways if way.market == "on_demand"]
        if ways:
            assert "free now, and 1 are needed; it waits for the others, unpaid" in words
        found = {o.instance_type: o for o in kubernetes().offers(footprint(url), _types).offers}
        assert {each.free for each in found.values()} <= {0, 1, 2, 4, 8}
        free = [
            each.free
            for each in kubernetes().offers(footprint(url), _types).offers
            if each.market == "on_demand"
        ]
        assert free == [0, 0, 0, 0]
    finally:
        gpus.ask("DELETE", "/api/v1/namespaces/default/pods/busy?gracePeriodSeconds=0")


def kubernetes() -> Kubernetes:
    assert isinstance(CLOUD, Kubernetes)
    return CLOUD


def _types(provider: str) -> dict[str, Any]:
    return {}


def test_nodes_that_are_cordoned_are_said_to_be(gpus: Control, url: str, tmp_path: Path) -> None:
    def cordon(on: bool) -> None:
        body = {"spec": {"unschedulable": on}}
        for name in ("steady", "spot"):
            sort = "application/merge-patch+json"
            assert gpus.ask("PATCH", f"/api/v1/nodes/{name}", body, sort=sort)[0] == 200

    cordon(True)
    try:
        with pytest.raises(NotFound, match="are cordoned, not ready or leaving") as caught:
            planned(url, tmp_path)
        assert "steady" in caught.value.message
    finally:
        cordon(False)
    assert planned(url, tmp_path)[1].ways


def test_one_cluster_that_does_not_answer_does_not_stop_the_others(
    url: str, tmp_path: Path, cluster: Cluster, gpus: Control
) -> None:
    keep(url, cluster, replace(cluster, context="gone"))
    on, spec = planned(url, tmp_path)
    assert {way.region for way in spec.ways} == {"c1"}
    assert any("no context gone" in words for words in on.warnings)
    keep(url, replace(cluster, context="gone"))
    with pytest.raises(NotFound, match="no context gone"):
        planned(url, tmp_path)
    keep(url, replace(cluster, server="https://elsewhere:6443"))
    with pytest.raises(NoAccess, match="was set up as https://elsewhere"):
        planned(url, tmp_path)


def test_a_cluster_without_accelerators_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_cluster(tmp_path / "plain", nodes=False) as plain:
        plain.add("cpu", {"cpu": "8", "memory": "32Gi"}, {})
        monkeypatch.setenv("KUBECONFIG", str(plain.kubeconfig()))
        monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
        url = (tmp_path / "store").as_uri()
        keep(
            url,
            Cluster(
                context="test",
                server=plain.url,
                namespace="default",
                service_account="default",
                identity="volume",
            ),
        )
        with pytest.raises(NotFound, match="no node of c1 has an accelerator") as refused:
            planned(url, tmp_path)
        assert "device plugin" in str(refused.value.hint)
        assert "tradewind doctor kubernetes" in str(refused.value.hint)


# -- who pods are, and what links they begin by ----------------------------------------------------


@pytest.mark.parametrize(
    ("identity", "url", "lent"),
    [("", "s3://b/x", True), ("workload", "s3://b/x", False), ("secret", "s3://b/x", False),
     ("volume", "file:///x", False), ("", "gs://b", True)],
)  # fmt: skip
def test_passes_are_lent_where_pods_are_nobody(identity: str, url: str, lent: bool) -> None:
    cluster = Cluster(
        context="c", server="s", namespace="n", service_account="a", identity=identity
    )
    found = Footprint(clusters={"one": cluster}, bucket_provider="aws", bucket_region="us-east-1")
    assert clouds.is_lent(CLOUD, url, found) == lent
    spec = Spec(name="x", work=1.0, ways=(_way(),))
    priced = CLOUD.priced(found, spec, _way(), ratecard.card())
    assert bool(priced.pass_s) == lent
    assert isinstance(priced.rates, Rates)


def _way() -> Way:
    return Way(
        provider="kubernetes", region="one", zone="", instance_type="t", market="on_demand",
        nodes=1, price=1, rate=1.0, start_s=1.0,
        layout={"kubernetes": {"resources": {"google.com/tpu": "4"}}},
    )  # fmt: skip


def test_links_of_a_folder_are_its_files_and_of_a_bucket_are_signed_by_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = CLOUD.links(None, tmp_path.as_uri())
    links.check()
    (tmp_path / "kits").mkdir()
    (tmp_path / "kits" / "a").write_text("kit")
    import urllib.request

    with urllib.request.urlopen(links.get("kits/a", 60)) as answer:
        assert answer.read() == b"kit"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    link = CLOUD.links(None, "s3://bucket/prefix").put("runs/r/x", 700)
    assert "bucket/prefix/runs/r/x?" in link
    assert "X-Amz-Expires=700" in link
    assert "X-Amz-Signature=" in link
    assert "secret" not in link


def test_a_shell_is_kubectl_exec(url: str, gpus: Control) -> None:
    job = "tw-run-1-0123456789"
    machine = Machine(
        machine_id=labels.machine_id("c1", job, 0),
        launch_id="l", run_id="r", leg=1, rank=0, launched_s=1,
    )  # fmt: skip
    found = kubernetes()
    with pytest.raises(NotFound, match=r"no pod of .* with rank 0 is running"):
        found.shell_at(footprint(url), machine, "", [])
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "labels": {"batch.kubernetes.io/job-name": job, labels.INDEX: "0"},
        },
        "spec": {"containers": [{"name": "job", "image": "x", "command": ["sleep", "9"]}]},
    }
    gpus.make("/api/v1/namespaces/team/pods", pod)
    from tests.eventually import eventually

    def running() -> bool:
        phases = [each["status"].get("phase") for each in gpus.objects("pods", "team")]
        return phases == ["Running"]

    eventually(running)
    assert found.shell_at(footprint(url), machine, "", ["nvidia-smi"]) == [
        *("kubectl", "--context", "test", "--namespace", "team", "exec", "a", "--", "nvidia-smi")
    ]
    assert "-it" in found.shell_at(footprint(url), machine, "", [])
    with pytest.raises(InvalidValue, match="--key is for ssh"):
        found.shell_at(footprint(url), machine, "key", [])
    gpus.ask("DELETE", "/api/v1/namespaces/team/pods/a?gracePeriodSeconds=0")


def test_tradewind_plan_weighs_the_nodes_of_a_store(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "work.yaml"
    path.write_text(WORK % "")
    command = ["plan", str(path), "--provider", "kubernetes"]
    assert app.run(command) != 0
    capsys.readouterr()
    assert app.run([*command, "--store", url, "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert (best["provider"], best["region"]) == ("kubernetes", "c1")
