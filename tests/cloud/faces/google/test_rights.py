"""Who may do what: tokens, roles, services that are off, projects without billing."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from googleapiclient.errors import HttpError  # type: ignore[import-untyped]

from tests.cloud.faces.google.asking import ZONE, insert, instance, listed
from tests.cloud.faces.google.control import Control

READER = "reader@equipment-project.iam.gserviceaccount.com"


def test_permission_by_permission(cloud: Control) -> None:
    key = cloud.key_file(READER)
    asked = cloud.client("compute", key=key).instances()
    with pytest.raises(HttpError, match=r"Required 'compute\.instances\.list' permission for"):
        asked.list(project=cloud.project, zone=ZONE).execute()
    cloud.grant("roles/compute.viewer", f"serviceAccount:{READER}")
    asked.list(project=cloud.project, zone=ZONE).execute()
    with pytest.raises(HttpError, match=r"compute\.instances\.create") as told:
        asked.insert(project=cloud.project, zone=ZONE, body=instance("none")).execute()
    assert told.value.resp.status == 403
    of = [each for each in cloud.permissions() if each["member"].endswith(READER)]
    assert {(each["permission"], each["granted"]) for each in of} == {
        ("compute.instances.list", False),
        ("compute.instances.list", True),
        ("compute.instances.create", False),
    }


def test_a_custom_role_and_a_condition(cloud: Control) -> None:
    someone = "someone@equipment-project.iam.gserviceaccount.com"
    member = f"serviceAccount:{someone}"
    key = cloud.key_file(someone)
    parent = f"projects/{cloud.project}"
    role = {"title": "reads", "includedPermissions": ["storage.objects.get"], "stage": "GA"}
    roles = cloud.client("iam").projects().roles()
    made = roles.create(parent=parent, body={"roleId": "reads", "role": role}).execute()
    cloud.bucket("conditional")
    storage = cloud.client("storage")
    from googleapiclient.http import MediaInMemoryUpload  # type: ignore[import-untyped]

    for name in ("open/a", "closed/a"):
        media = MediaInMemoryUpload(b"text", "text/plain")
        storage.objects().insert(bucket="conditional", name=name, media_body=media).execute()
    start = "resource.name.startsWith('projects/_/buckets/conditional/objects/open/')"
    policy = storage.buckets().getIamPolicy(bucket="conditional").execute()
    policy["bindings"] = [
        {
            "role": made["name"],
            "members": [member],
            "condition": {"title": "some", "expression": start},
        }
    ]
    buckets = storage.buckets()
    with pytest.raises(HttpError, match="version 3"):
        buckets.setIamPolicy(bucket="conditional", body=policy).execute()
    buckets.setIamPolicy(bucket="conditional", body={**policy, "version": 3}).execute()
    with pytest.raises(HttpError, match="concurrent"):
        buckets.setIamPolicy(bucket="conditional", body={**policy, "version": 3}).execute()
    objects = cloud.client("storage", key=key).objects()
    assert objects.get_media(bucket="conditional", object="open/a").execute() == b"text"
    with pytest.raises(HttpError, match=r"storage\.objects\.get"):
        objects.get_media(bucket="conditional", object="closed/a").execute()


def test_policies_of_projects_are_changed_by_who_has_read_them(cloud: Control) -> None:
    projects = cloud.client("cloudresourcemanager").projects()
    policy = projects.getIamPolicy(resource=cloud.project, body={}).execute()
    accounts = cloud.client("iam").projects().serviceAccounts()
    made = accounts.create(
        name=f"projects/{cloud.project}", body={"accountId": "changes-policies"}
    ).execute()
    binding = {"role": "roles/tpu.viewer", "members": [f"serviceAccount:{made['email']}"]}
    changed = {**policy, "bindings": [*policy["bindings"], binding]}
    projects.setIamPolicy(resource=cloud.project, body={"policy": changed}).execute()
    with pytest.raises(HttpError, match="concurrent policy changes"):
        projects.setIamPolicy(resource=cloud.project, body={"policy": changed}).execute()
    has = projects.testIamPermissions(
        resource=cloud.project, body={"permissions": ["tpu.nodes.create", "storage.buckets.get"]}
    ).execute()
    assert has["permissions"] == ["tpu.nodes.create", "storage.buckets.get"]


def test_services_and_billing(cloud: Control) -> None:
    cloud.service("compute", False)
    with pytest.raises(HttpError, match="has not been used in project") as told:
        listed(cloud)
    assert told.value.error_details[1]["reason"] == "SERVICE_DISABLED"
    usage = cloud.client("serviceusage").services()
    name = f"projects/{cloud.project}/services/compute.googleapis.com"
    assert usage.get(name=name).execute()["state"] == "DISABLED"
    assert usage.enable(name=name, body={}).execute()["done"]
    assert listed(cloud, "name=none") == []
    cloud.billing(False)
    with pytest.raises(HttpError, match="requires billing to be enabled"):
        insert(cloud, instance("unpaid"))
    told_billing = (
        cloud.client("cloudbilling").projects().getBillingInfo(name=f"projects/{cloud.project}")
    )
    assert told_billing.execute()["billingEnabled"] is False
    cloud.billing(True)


def test_tokens_end(cloud: Control) -> None:
    asked = urllib.request.Request(f"{cloud.url}/compute/v1/projects/{cloud.project}")
    with pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(asked)
    with told.value:
        assert told.value.code == 401
    key = cloud.key_file("stolen@elsewhere.iam.gserviceaccount.com")
    forged = json.loads(key.read_text()) | {"client_email": cloud.owner}
    key.write_text(json.dumps(forged))
    with pytest.raises(Exception, match="Invalid JWT Signature"):
        cloud.client("compute", key=key).projects().get(project=cloud.project).execute()
    with pytest.raises(HttpError, match="'projects/none' was not found"):
        cloud.client("compute").projects().get(project="none").execute()


def test_secrets(cloud: Control) -> None:
    cloud.secret("token", "of nobody")
    versions = cloud.client("secretmanager").projects().secrets().versions()
    name = f"projects/{cloud.project}/secrets/token/versions/latest"
    assert versions.access(name=name).execute()["payload"]["data"] == "b2Ygbm9ib2R5"
