"""Who we are where it is neither a person nor a key: workload identity federation, impersonation,
as google-auth finds them in their files, for machines and for the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.faces.google.control import Control
from tests.cloud.faces.google.state import NUMBER
from tradewind.base.errors import NoAccess
from tradewind.providers.gcp.api import Compute, Google
from tradewind.providers.gcp.labels import of_owner
from tradewind.store import googlekeys

POOL = f"iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/pipelines"
ADA = f"principal://{POOL}/subject/ada"
BUCKET = "federated"


@pytest.fixture
def strict(cloud: Control) -> Control:
    if BUCKET not in cloud.buckets():
        cloud.bucket(BUCKET)
    return cloud


def account(cloud: Control, name: str) -> str:
    """A service account, and where its tokens are made."""
    email = f"{name}@{cloud.project}.iam.gserviceaccount.com"
    cloud.key_file(email)
    return email


def address(cloud: Control, email: str) -> str:
    base = f"{cloud.url}/iamcredentials/v1/projects/-/serviceAccounts"
    return f"{base}/{email}:generateAccessToken"


def federated(cloud: Control, folder: Path, **more: str) -> dict[str, Any]:
    """As `gcloud iam workload-identity-pools create-cred-config` writes it."""
    (folder / "subject").write_text("ada")
    return {
        "type": "external_account",
        "audience": f"//{POOL}/providers/github",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{cloud.url}/sts/v1/token",
        "credential_source": {"file": str(folder / "subject")},
        **more,
    }


def become(told: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "who.json"
    path.write_text(json.dumps(told))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))


def looks(cloud: Control) -> None:
    assert Compute(Google(), cloud.project).instances(of_owner("0" * 8)) == []


def keeps(cloud: Control, env: dict[str, str]) -> None:
    """By obstore, which is given our tokens."""
    from obstore.store import GCSStore

    keys = googlekeys.provider(env)
    assert keys is not None
    there: Any = {"base_url": cloud.storage}
    given: Any = keys
    options: Any = {"allow_http": True}
    bucket = GCSStore(BUCKET, config=there, client_options=options, credential_provider=given)
    bucket.put("key", b"text")
    assert bytes(bucket.get("key").bytes()) == b"text"


def test_somebody_of_a_pool(
    strict: Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    become(federated(strict, tmp_path), tmp_path, monkeypatch)
    with pytest.raises(Exception, match=r"compute\.instances\.list"):
        looks(strict)
    strict.grant("roles/compute.viewer", ADA)
    strict.grant("roles/storage.objectAdmin", ADA, f"projects/_/buckets/{BUCKET}")
    looks(strict)
    keeps(strict, {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "who.json")})


def test_somebody_of_a_pool_who_is_a_service_account(
    strict: Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = account(strict, "pipelines")
    url = address(strict, email)
    told = federated(strict, tmp_path, service_account_impersonation_url=url)
    become(told, tmp_path, monkeypatch)
    with pytest.raises(NoAccess, match="impersonate"):
        Google().credentials.headers()
    strict.grant(
        "roles/iam.workloadIdentityUser", ADA, f"projects/{strict.project}/serviceAccounts/{email}"
    )
    strict.grant("roles/compute.viewer", f"serviceAccount:{email}")
    strict.grant(
        "roles/storage.objectAdmin", f"serviceAccount:{email}", f"projects/_/buckets/{BUCKET}"
    )
    looks(strict)
    assert Google().credentials.email == email
    keeps(strict, {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "who.json")})


def test_a_key_that_impersonates_another(
    strict: Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `gcloud auth application-default login --impersonate-service-account` writes it; also in
    a folder of gcloud's that is not the usual one."""
    from google.auth import iam

    endpoint = address(strict, "{}")
    monkeypatch.setattr(iam, "_IAM_ENDPOINT", endpoint)
    email = account(strict, "impersonated")
    strict.grant("roles/compute.viewer", f"serviceAccount:{email}")
    strict.grant(
        "roles/storage.objectAdmin", f"serviceAccount:{email}", f"projects/_/buckets/{BUCKET}"
    )
    told = {
        "type": "impersonated_service_account",
        "service_account_impersonation_url": address(strict, email),
        "source_credentials": json.loads(strict.key.read_text()),
    }
    become(told, tmp_path, monkeypatch)
    looks(strict)
    google = Google()
    assert (google.credentials.email, google.credentials.signer) == (email, None)
    keeps(strict, {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "who.json")})
    (tmp_path / "who.json").rename(tmp_path / "application_default_credentials.json")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    looks(strict)
    keeps(strict, {"CLOUDSDK_CONFIG": str(tmp_path)})


@pytest.mark.parametrize("kind", ["service_account", "authorized_user"])
def test_what_obstore_reads_is_left_to_it(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "application_default_credentials.json"
    path.write_text(json.dumps({"type": kind}))
    assert googlekeys.provider({"GOOGLE_APPLICATION_CREDENTIALS": str(path)}) is None
    assert googlekeys.provider({"CLOUDSDK_CONFIG": str(tmp_path)}) is not None
    path.write_text("{")
    assert googlekeys.provider({"GOOGLE_APPLICATION_CREDENTIALS": str(path)}) is None
    assert googlekeys.provider({"CLOUDSDK_CONFIG": str(tmp_path / "none")}) is None
