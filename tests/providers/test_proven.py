"""What the store says of accounts, projects, clusters and hosts is no proof: whoever may write the
store may write it, and whoever makes the next pass may do more there than they."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.lifecycle.builders import a_request
from tests.providers.kubernetes import builders
from tradewind import store as stores
from tradewind.api import fleet
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.model import places
from tradewind.providers import registry
from tradewind.providers.base import Refused
from tradewind.providers.gcp import footprint as gcp
from tradewind.providers.gcp import proven
from tradewind.providers.gcp.setup import roles, things
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.cluster import OneCluster
from tradewind.providers.kubernetes.objects import Account, Meta
from tradewind.providers.lambda_cloud import footprint as lambdas
from tradewind.providers.lambda_cloud.api import SshKey
from tradewind.providers.lambda_cloud.provider import LambdaMachines
from tradewind.providers.slurm import names, script
from tradewind.providers.slurm.footprint import Cluster
from tradewind.providers.slurm.login import Login
from tradewind.providers.ssh.there import machines

STORE = "gs://runs/team"
CALLED = gcp.name(STORE)
RIGHT = gcp.Footprint(
    project="example.com:research-1",
    bucket="runs",
    bucket_location="us-central1",
    service_account=things.email(STORE, "example.com:research-1"),
    network=CALLED,
    subnets={"us-central1": CALLED},
    zones={"us-central1": ("us-central1-a",)},
    role=roles.base(STORE),
    fast_subnets={"us-central1": (f"{CALLED}-fast-1",)},
)


def test_google_s_names_are_made_again() -> None:
    cloud = registry.rentable("gcp")
    cloud.check(RIGHT, STORE)
    own = "projects/example.com:research-1/global/images/family/mine"
    cloud.check(replace(RIGHT, image=own), STORE)
    lent = replace(RIGHT, bucket="", bucket_provider="aws", bucket_location="us-west-2")
    elsewhere = gcp.name("s3://runs")
    lent = replace(
        lent, service_account=things.email("s3://runs", RIGHT.project), network=elsewhere,
        subnets={"us-central1": elsewhere}, role=roles.base("s3://runs"), fast_subnets={},
    )  # fmt: skip
    cloud.check(lent, "s3://runs")


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("project", "another-project"),
        ("project", "../../x"),
        ("bucket", "others"),
        ("service_account", "owner@research-1.example.com.iam.gserviceaccount.com"),
        ("network", "default"),
        ("role", "owner"),
        ("subnets", {"us-central1": "default"}),
        ("fast_subnets", {"us-central1": ("default",)}),
        ("zones", {"us-central1": ("europe-west4-a",)}),
        ("zones", {"us-central1": ("us-central1-a/../b",)}),
        ("image", "projects/somebody/global/images/family/mine"),
        ("image", "https://example.com/image"),
    ],
)
def test_what_google_s_setup_never_writes(what: str, value: Any) -> None:
    with pytest.raises(BadFile, match=r"providers/gcp.json|image") as error:
        registry.rentable("gcp").check(replace(RIGHT, **{what: value}), STORE)
    assert "tradewind setup gcp" in (error.value.hint or "")


def test_setup_takes_no_image_that_would_be_refused_later() -> None:
    proven.check_image("projects/ubuntu-os-cloud/global/images/family/ubuntu-2404", "p")
    with pytest.raises(InvalidValue, match="neither of the project p"):
        proven.check_image("projects/somebody/global/images/family/mine", "p")


def test_a_record_that_differs_makes_that_provider_unusable_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores.open(str(tmp_path))
    store.replace(places.footprint("gcp"), RIGHT.encoded())  # of another store
    monkeypatch.setattr("tradewind.api.clouds.suits", lambda cloud, url: cloud.name == "gcp")
    found = fleet.providers(store)
    assert isinstance(found["gcp"], fleet.Unusable)
    assert not isinstance(found[registry.LOCAL], fleet.Unusable)


FORMS: dict[str, dict[str, Any]] = {
    "ssh": {"hosts": {"box": {"target": "me@box", "region": "hosts", "gpus": {}}}},
    "slurm": {"clusters": {"lab": {"user": "me", "folder": "/home/me/x"}}},
    "kubernetes": {
        "clusters": {
            "home": {"context": "c", "server": "s", "namespace": "n", "service_account": "a"}
        }
    },
    "lambda": {
        "ssh_key": "mine", "ssh_key_id": "1", "regions": ["us-west-1"], "bucket_provider": "aws"
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("cloud", "path", "value"),
    [
        ("ssh", ("hosts", "box", "target"), "-oProxyCommand=sh"),
        ("ssh", ("hosts", "box", "python_at"), "/x'; sh; '"),
        ("ssh", ("hosts", "box", "address"), "a b"),
        ("ssh", ("folder",), "../../x"),
        ("slurm", ("clusters", "lab", "folder"), "x\ny"),
        ("slurm", ("clusters", "lab", "login"), "-oProxyCommand=sh"),
        ("slurm", ("clusters", "lab", "user"), ""),
        ("kubernetes", ("clusters", "home", "namespace"), "../kube-system"),
        ("kubernetes", ("clusters", "home", "service_account"), "a/b"),
        ("kubernetes", ("clusters", "home", "grace_s"), 10**9),
        ("lambda", ("image",), "a b"),
        ("lambda", ("regions",), ["us west"]),
    ],
)
def test_what_would_be_an_option_or_another_path_is_refused(
    cloud: str, path: tuple[str, ...], value: Any
) -> None:
    rentable = registry.rentable(cloud)
    record = json.decode(json.encode(FORMS[cloud]))
    rentable.decoded(json.encode(record))
    at = record
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    with pytest.raises(BadFile, match=f"providers/{cloud}.json"):
        rentable.decoded(json.encode(record))


def test_a_host_without_this_store_s_folder_launches_nothing(tmp_path: Path) -> None:
    asked = {"machine": {"machine_id": "ssh-box.run-1-1-0"}}
    refused = machines.launch(tmp_path / "home" / "0123", asked)
    assert refused["refused"] == "not_allowed"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("is_set_up", [True, False])
def test_a_cluster_of_slurm_is_submitted_to_where_setup_has_been(
    is_set_up: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in {"squeue": "", "sacct": "", "sbatch": f"touch {tmp_path}/submitted"}.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    folder = tmp_path / "jobs"
    folder.mkdir()
    called = names.Name(owner="abcdefgh", run_id="run-1", leg=1)
    if is_set_up:
        (folder / names.mark("abcdefgh")).touch()
    cluster = Cluster(user="me", folder=str(folder))
    text = script.launch(cluster, called, ["--parsable"], {"batch.sh": "true"})
    answers = Login("").ask(text)
    assert (answers["ours"].code == 0) is is_set_up
    assert (tmp_path / "submitted").exists() is is_set_up
    assert (folder / called.text).exists() is is_set_up


class Accounts:
    """Of a cluster: the one there is, and what is noted at it."""

    def __init__(self, notes: dict[str, str] | None) -> None:
        self.notes = notes

    def find(self, path: str, kind: type, doing: str) -> Any:
        if kind is not Account or self.notes is None:
            return None
        assert path == "/api/v1/namespaces/research/serviceaccounts/tradewind-pods"
        return Account(Meta(annotations=self.notes))

    def create(self, *asked: Any) -> Any:
        raise InterruptedError("it goes on to make the leg")


@pytest.mark.parametrize("notes", [None, {}, {labels.used_by("another"): "runs"}])
def test_pods_run_as_nobody_whom_setup_has_not_noted(notes: dict[str, str] | None) -> None:
    def launched(client: Any) -> None:
        cluster = OneCluster("home", builders.a_cluster(), builders.OWNER, client)
        cluster.launch(builders.an_order(), dict)

    with pytest.raises(Refused, match="service account tradewind-pods") as error:
        launched(Accounts(notes))
    assert error.value.kind == ("not_found" if notes is None else "not_allowed")
    with pytest.raises(InterruptedError):
        launched(Accounts({labels.used_by(builders.OWNER): "runs"}))


class Keys:
    """Lambda's, of one account."""

    key_from = "LAMBDA_API_KEY"

    def ssh_keys(self) -> list[SshKey]:
        return [SshKey(id="1", name="mine", public_key=""), SshKey(id="2", name="x", public_key="")]

    def offers(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(("key", "number"), [("mine", "3"), ("x", "1")])
def test_lambda_s_key_is_one_of_the_account_by_name_and_id(key: str, number: str) -> None:
    record = lambdas.decoded(json.encode(FORMS["lambda"]))
    way = replace(a_request().way, region="us-west-1", instance_type="gpu_1x_a10", nodes=1)

    def launched(record: Any) -> None:
        rented = LambdaMachines(Keys(), record, "s3://runs", lambda *_: None)  # type: ignore[arg-type]
        rented.launch_one(replace(a_request(), way=way), 0, 1, "")

    with pytest.raises(Refused, match="SSH key") as error:
        launched(replace(record, ssh_key=key, ssh_key_id=number))
    assert error.value.kind == "not_allowed"
    with pytest.raises(Refused, match="no machines of the type"):
        launched(record)
