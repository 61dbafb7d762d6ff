"""What setup refuses, before it makes anything: each in one line, with the next command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.faces.google.control import Control
from tests.cloud.faces.google.identity import EXPIRED
from tests.providers.gcp import machines
from tests.providers.gcp.setups import plan_setup, plan_teardown
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, TradewindError
from tradewind.providers.gcp.cloud import CLOUD
from tradewind.providers.gcp.footprint import Footprint
from tradewind.providers.gcp.setup.make import Wish
from tradewind.providers.gcp.setup.things import checked

STORE = "gs://refused-bucket/tw"


@pytest.fixture
def before(cloud: Control) -> Any:
    def state() -> Any:
        return cloud.shelf(), cloud.accounts(), cloud.roles(), cloud.policy(), cloud.buckets()

    return state


def refused(
    before: Any, kind: type[TradewindError], *regions: str, store: str = STORE, **wishes: Any
) -> TradewindError:
    """And nothing was made."""
    was = before()
    with pytest.raises(kind) as raised:
        plan_setup(Wish(store_url=store, regions=regions or ("us-central1",), **wishes))
    assert before() == was
    assert raised.value.hint
    return raised.value


@pytest.mark.parametrize(
    "url",
    [
        "az://bucket", "gs://", "gs://B", "gs://google-mine", "gs://a/b*c", 'gs://abc/"', "gs://ab",
        "gs://abc/" + "x" * 200,
    ],
)  # fmt: skip
def test_urls_that_cannot_be_a_store(url: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        checked(url)
    assert raised.value.hint


def test_no_project(before: Any, monkeypatch: pytest.MonkeyPatch, cloud: Control) -> None:
    for name in ("GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "GCLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    key = json.loads(cloud.key.read_text())
    del key["project_id"]
    bare = Path(cloud.folder) / "bare.json"
    bare.write_text(json.dumps(key))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(bare))
    error = refused(before, NoAccess)
    assert "which Google Cloud project" in error.message
    assert "GOOGLE_CLOUD_PROJECT" in str(error.hint)


def test_no_login(before: Any, monkeypatch: pytest.MonkeyPatch, cloud: Control) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(cloud.folder / "nothing.json"))
    error = refused(before, NoAccess)
    assert "gcloud auth application-default login" in str(error.hint)


@pytest.fixture
def expired(cloud: Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login of `gcloud auth application-default login` that has ended."""
    login = {
        "type": "authorized_user", "client_id": "ada@example.com", "client_secret": "x",
        "refresh_token": EXPIRED,
    }  # fmt: skip
    (tmp_path / "login.json").write_text(json.dumps(login))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "login.json"))
    endpoint = "google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT"
    monkeypatch.setattr(endpoint, f"{cloud.url}/token")


def test_an_expired_login(before: Any, expired: None) -> None:
    error = refused(before, NoAccess)
    assert "expired or revoked" in error.message
    assert "gcloud auth application-default login" in str(error.hint)


def test_an_expired_login_when_a_run_would_be_planned(
    before: Any, expired: None, cloud: Control
) -> None:
    bought = len(cloud.bill()["machines"])  # by the tests before this one
    with pytest.raises(NoAccess, match="expired or revoked") as caught:
        CLOUD.usable(machines.footprint(), [machines.way()], "gs://runs")
    assert "gcloud auth application-default login" in str(caught.value.hint)
    (finding,) = CLOUD.checks(machines.footprint(), known=True, store_url="gs://runs")
    assert (finding.level, "expired" in finding.what) == ("broken", True)
    assert len(cloud.bill()["machines"]) == bought


def test_a_project_that_is_none(before: Any) -> None:
    error = refused(before, InvalidValue, project="My Project")
    assert "gcloud projects list" in str(error.hint)


def test_a_project_that_is_not_there(before: Any) -> None:
    error = refused(before, NoAccess, project="nobodys-project")
    assert "there is no project nobodys-project" in error.message
    assert "gcloud projects list" in str(error.hint)


def test_a_project_without_billing(before: Any, cloud: Control) -> None:
    cloud.billing(False)
    try:
        error = refused(before, InvalidValue)
    finally:
        cloud.billing(True)
    assert "no billing account" in error.message
    assert "gcloud billing projects link" in str(error.hint)


def test_a_bucket_of_somebody_else(before: Any, cloud: Control) -> None:
    if "taken-elsewhere" not in cloud.buckets():
        cloud.make_project("other-project", "210987654321")
        cloud.bucket("taken-elsewhere", project="other-project")
    error = refused(before, NoAccess, store="gs://taken-elsewhere/tw")
    assert "belongs to someone else" in error.message
    assert "choose another" in str(error.hint)


def test_a_bucket_in_another_region(before: Any, cloud: Control) -> None:
    if "far-away" not in cloud.buckets():
        cloud.bucket("far-away", location="us-east1")
    error = refused(before, InvalidValue, "us-central1", store="gs://far-away/tw")
    assert "would cross regions" in error.message
    assert "--region us-east1" in str(error.hint)


def test_a_bucket_of_a_continent(before: Any, cloud: Control) -> None:
    if "whole-continent" not in cloud.buckets():
        cloud.bucket("whole-continent", location="US")
    error = refused(before, InvalidValue, store="gs://whole-continent/tw")
    assert "charged for" in error.message


def test_a_bucket_that_is_something_elses(before: Any, cloud: Control) -> None:
    body = {"name": "labelled-bucket", "location": "us-central1"}
    labels = {"labels": {"tradewind-owner": "somebody"}}
    if body["name"] not in cloud.buckets():
        with cloud.client("storage") as storage:
            storage.buckets().insert(project=cloud.project, body=body | labels).execute()
    error = refused(before, InvalidValue, store="gs://labelled-bucket")
    assert "it is something else's" in error.message


def test_a_region_that_is_not_there(before: Any) -> None:
    error = refused(before, NotFound, "us-centrall1")
    assert error.hint == "did you mean us-central1?"


def test_a_zone_for_a_region(before: Any) -> None:
    error = refused(before, InvalidValue, "us-central1-a")
    assert error.hint == "--region us-central1"


def test_an_image_that_is_none(before: Any) -> None:
    assert "names no image" in refused(before, InvalidValue, image="ubuntu").message
    image = "projects/mine/global/images/family/nothing"
    assert "neither of the project" in refused(before, InvalidValue, image=image).message
    image = f"projects/{Control.project}/global/images/family/nothing"
    assert "there is no image" in refused(before, NotFound, image=image).message


def test_no_region(before: Any) -> None:
    was = before()
    with pytest.raises(InvalidValue, match="no region is named"):
        plan_setup(Wish(store_url=STORE))
    assert before() == was


def test_apis_that_are_off_are_enabled_first(cloud: Control) -> None:
    """What could not be looked at before is looked at then, and before anything else is made."""
    cloud.service("compute", False)
    cloud.service("tpu", False)
    try:
        plan = plan_setup(Wish(store_url="gs://late-bucket/tw", regions=("us-centrall1",)))
        assert plan.prepared.lines[0].changes[0].words == "enable compute, tpu"
        with pytest.raises(NotFound, match="no region"):
            plan.carry_out()
        assert "late-bucket" not in cloud.buckets()
        good = plan_setup(Wish(store_url="gs://late-bucket/tw", regions=("us-central1",)))
        assert isinstance(good.carry_out(), Footprint)
    finally:
        cloud.service("compute", True)
        cloud.service("tpu", True)
    plan_teardown("gs://late-bucket/tw", delete_bucket=True).carry_out()


def test_a_permission_that_is_missing_is_named(
    before: Any, monkeypatch: pytest.MonkeyPatch, cloud: Control
) -> None:
    email = f"nobody@{cloud.project}.iam.gserviceaccount.com"
    key = cloud.key_file(email)
    cloud.grant("roles/viewer", f"serviceAccount:{email}")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    was = before()
    with pytest.raises(NoAccess) as raised:
        plan_setup(Wish(store_url=STORE, regions=("us-central1",))).carry_out()
    assert before() == was
    assert "these credentials may not" in raised.value.message
    assert "--print setup-role" in str(raised.value.hint)
