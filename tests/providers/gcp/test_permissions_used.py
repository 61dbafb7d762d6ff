"""Printed roles against what is really asked: with them alone all works, and no permission is in
them that is not seen being used here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
import urllib3

from tests.cloud.faces.google.control import Control, running
from tests.providers.gcp import machines
from tests.providers.gcp.setups import plan_setup, plan_teardown
from tradewind import store as stores
from tradewind.model.finding import BROKEN
from tradewind.model.run import Request
from tradewind.providers.gcp.api import Compute, Google
from tradewind.providers.gcp.checks import checks
from tradewind.providers.gcp.footprint import name
from tradewind.providers.gcp.limits.usable import usable
from tradewind.providers.gcp.provider import Both, ComputeProvider
from tradewind.providers.gcp.setup import roles
from tradewind.providers.gcp.setup.make import Wish
from tradewind.providers.gcp.setup.printed import printed
from tradewind.providers.gcp.tpu.api import Tpu
from tradewind.providers.gcp.tpu.provider import TpuProvider
from tradewind.store.base import Pieced, Store

pytestmark = pytest.mark.slow

STORE = "gs://my-bucket/tw"
FAMILY = "ours"
PART = bytes(8 << 20)
"""More than one request takes."""


@pytest.fixture
def own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("google")) as control:
        control.dials(pending_s=0, shutting_down_s=0, operation_s=0.05)
        for variable, value in control.env.items():
            monkeypatch.setenv(variable, value)
        yield control


def become(cloud: Control, monkeypatch: pytest.MonkeyPatch, who: str) -> str:
    email = f"{who}@{cloud.project}.iam.gserviceaccount.com"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(cloud.key_file(email)))
    return email


def log_in(cloud: Control, monkeypatch: pytest.MonkeyPatch, email: str) -> None:
    """As a person, by `gcloud auth application-default login`: requests count for the project."""
    login = {
        "type": "authorized_user", "client_id": email, "client_secret": "x", "refresh_token": "x",
        "quota_project_id": cloud.project,
    }  # fmt: skip
    folder = cloud.folder / "gcloud"
    folder.mkdir(exist_ok=True)
    (folder / "application_default_credentials.json").write_text(json.dumps(login))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    endpoint = "google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT"
    monkeypatch.setattr(endpoint, f"{cloud.url}/token")


def own_image(cloud: Control) -> str:
    cloud.image(cloud.project, FAMILY, "ours-1")
    return f"projects/{cloud.project}/global/images/family/{FAMILY}"


def make_role(cloud: Control, told: dict[str, object]) -> str:
    asked = {"roleId": told.pop("name"), "role": told}
    parent = f"projects/{cloud.project}"
    with cloud.client("iam") as iam:
        made = iam.projects().roles().create(parent=parent, body=asked).execute()
    return str(made["name"])


def used(cloud: Control, email: str, after: int = 0) -> tuple[set[str], set[str]]:
    """Granted, and refused; without the first so many that anybody has asked for."""
    asked = [each for each in cloud.permissions()[after:] if email in str(each["member"])]
    granted = {each["permission"] for each in asked if each["granted"]}
    return granted, {each["permission"] for each in asked if not each["granted"]} - granted


def test_setup_and_teardown(own: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    role = make_role(own, json.loads(printed("setup-role", STORE, (), {})))
    email = become(own, monkeypatch, "setter")
    own.grant(role, f"serviceAccount:{email}")
    wish = Wish(
        store_url=STORE,
        regions=("us-central1",),
        iap=True,
        gpudirect="rdma",
        image=own_image(own),
    )
    plan_setup(wish).carry_out()
    bucket = {"versioning": {"enabled": False}}
    rule = f"{name(STORE)}-inside"
    with own.client("storage") as storage, own.client("compute") as compute:
        storage.buckets().patch(bucket="my-bucket", body=bucket).execute()
        compute.firewalls().patch(
            project=own.project, firewall=rule, body={"name": rule, "sourceRanges": ["0.0.0.0/0"]}
        ).execute()
        compute.subnetworks().setPrivateIpGoogleAccess(
            project=own.project,
            region="us-central1",
            subnetwork=name(STORE),
            body={"privateIpGoogleAccess": False},
        ).execute()
    own.service("iap", False)
    own.dials(enable_s=0.2)
    plan_setup(wish).carry_out()
    plan_teardown(STORE).carry_out()
    plan_setup(wish).carry_out()  # roles are taken back
    stores.open(STORE, env=os.environ).replace("kits/x", b"left")
    plan_teardown(STORE, delete_bucket=True).carry_out()
    granted, refused = used(own, email)
    assert refused == set()
    assert set(roles.SETTER) - granted == set()


def test_running_and_looking(own: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    wish = Wish(store_url=STORE, regions=("us-central1",), image=own_image(own))
    record = plan_setup(wish).carry_out()
    email = "ada@example.com"
    log_in(own, monkeypatch, email)
    whole = f"projects/{own.project}"
    account = f"{whole}/serviceAccounts/{record.service_account}"
    places = (whole, "projects/_/buckets/my-bucket", account)
    for role, place in zip(roles.users(STORE), places, strict=True):
        own.grant(f"{whole}/roles/{role.id}", f"user:{email}", place)
    own.service("cloudquotas", True)
    google = Google()
    ways = [
        machines.way(market="spot"),
        machines.way(instance_type="n1-standard-8+1xT4"),
        machines.way(instance_type="a2-highgpu-8g", nodes=2),
        machines.way(zone="", nodes=2),
        machines.way(instance_type="tpu-v5litepod-4", zone="us-central1-a"),
        machines.way(market="reserved"),
    ]
    reserve(own)
    told = usable(google, record, ways, store_url=STORE)
    assert told.rejected == ()
    assert [each for each in checks(google, record, store_url=STORE) if each.level == BROKEN] == []
    provider = Both(
        ComputeProvider(Compute(google, own.project), record, STORE, machines.packed),
        TpuProvider(Tpu(google, own.project), record, STORE, machines.packed),
    )
    for leg, way in enumerate(told.ways, 1):
        request = Request(launch_id=f"l{leg}", run_id="run", leg=leg, way=way, hard_stop_s=3600)
        provider.launch(request, 1)
    provider.terminate([each.machine_id for each in provider.list_machines().machines])
    own.advance(600)
    for leftover in provider.leftovers():
        assert provider.remove(leftover)
    google.signed(record.service_account, b"x")
    granted, refused = used(own, email)
    assert refused <= {"storage.buckets.getIamPolicy"}, "doctor compares where it may look"
    assert {*roles.RUNNER, *roles.ACT} - granted == set()
    before = len(own.permissions())  # doctor has asked which of the bucket's it has
    keeps_a_run(stores.open(STORE, env=os.environ))
    granted, refused = used(own, email, before)
    assert refused == set()
    assert set(roles.STORE) - granted == set()


def reserve(cloud: Control) -> None:
    kind = machines.way().instance_type
    body = {
        "name": "held",
        "specificReservationRequired": True,
        "specificReservation": {"count": "1", "instanceProperties": {"machineType": kind}},
    }
    with cloud.client("compute") as compute:
        compute.reservations().insert(
            project=cloud.project, zone=machines.ZONE, body=body
        ).execute()


def keeps_a_run(store: Store) -> None:
    """What a controller and its user do with objects: large ones, and one that was broken off,
    among them."""
    store.create("runs/r1/journal/1", b"x")
    store.replace("live/r1", b"x")
    assert store.get("live/r1") == b"x"
    assert store.list_after("runs/") == ["runs/r1/journal/1"]
    store.delete("live/r1")
    assert isinstance(store, Pieced)
    store.upload_parts("bundles/large", [PART, PART], 2 * len(PART))

    def broken_off() -> Iterator[bytes]:
        yield PART
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk"):
        store.upload_parts("bundles/broken", broken_off(), 2 * len(PART))


def test_machines(own: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the service account alone: what they do, they may, and no more."""
    record = plan_setup(Wish(store_url=STORE, regions=("us-central1",))).carry_out()
    secret = f"{roles.secrets_prefix(STORE)}token"
    own.secret(secret, "x")
    own.secret("another", "x")
    email = become(own, monkeypatch, record.service_account.partition("@")[0])
    machine = _Machine(own)
    log, journal = "tw/runs/r1/logs/1.log", "tw/runs/r1/journal/1.json"
    assert machine.put(log) == 200
    assert machine.put(log) == 200  # over what is there
    assert machine.ask("GET", f"/my-bucket/{log}") == 200
    assert machine.ask("GET", "/my-bucket?list-type=2&prefix=tw/runs/") == 200
    assert machine.ask("POST", f"/my-bucket/{log}?uploads") == 200
    upload = machine.body.partition("<UploadId>")[2].partition("<")[0]
    assert machine.ask("DELETE", f"/my-bucket/{log}?uploadId={upload}") == 204
    assert machine.ask("DELETE", f"/my-bucket/{log}") == 204
    version = f"/v1/projects/{own.project}/secrets/{secret}/versions/latest:access"
    assert machine.ask("GET", f"/secretmanager{version}", api=True) == 200
    granted, _ = used(own, email)
    assert granted == {*roles.READ, *roles.WRITE, *roles.SECRETS}
    for key in (journal, "tw/live/r1", "tw/kits/k", "tw/providers/gcp.json", "other/x"):
        assert machine.put(key) == 403, key
        assert machine.ask("DELETE", f"/my-bucket/{key}") == 403, key
    assert machine.ask("GET", "/my-bucket/tw/keys/seed") == 403
    version = version.replace(secret, "another")
    assert machine.ask("GET", f"/secretmanager{version}", api=True) == 403
    assert machine.ask("GET", f"/compute/v1/projects/{own.project}/zones", api=True) == 403


class _Machine:
    """Asks as a machine does: by a token of its service account."""

    def __init__(self, cloud: Control) -> None:
        self._cloud, self._headers = cloud, Google().credentials.headers()
        self.body = ""

    def put(self, key: str) -> int:
        return self.ask("PUT", f"/my-bucket/{key}", b"x")

    def ask(self, method: str, path: str, body: bytes | None = None, api: bool = False) -> int:
        base = self._cloud.url if api else self._cloud.storage
        answer = urllib3.request(method, base + path, headers=self._headers, body=body)
        self.body = answer.data.decode()
        return answer.status
