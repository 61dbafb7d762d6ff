"""Links to what lies in a bucket: held against Google's own vectors, and against the keys that
signed them."""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.cloud.faces.google.control import Control
from tests.providers.gcp.machines import footprint
from tradewind.base.errors import NoAccess
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.cloud import CLOUD
from tradewind.providers.gcp.links import Links, to_sign

STORE = "gs://runs/team a"
SIGN = "iamcredentials.projects.serviceAccounts.signBlob"


def test_what_is_signed_is_as_google_s_conformance_tests_have_it() -> None:
    email = "test-iam-credentials@dummy-project-id.iam.gserviceaccount.com"
    at = datetime(2019, 2, 1, 9, tzinfo=UTC)
    path = "/test-bucket/test-object"
    query, text = to_sign("GET", "storage.googleapis.com", path, email, at, 10)
    assert text.decode().splitlines() == [
        "GOOG4-RSA-SHA256",
        "20190201T090000Z",
        "20190201/auto/storage/goog4_request",
        "00e2fb794ea93d7adb703edaebdd509821fcc7d4f1a79ac5c8d2b394df109320",
    ]
    assert query.startswith("X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=test-iam-")


def verified(link: str, method: str, key: rsa.RSAPublicKey) -> dict[str, str]:
    parts = urlsplit(link)
    told = {name: values[0] for name, values in parse_qs(parts.query).items()}
    email, _, _ = told["X-Goog-Credential"].partition("/")
    at = datetime.strptime(told["X-Goog-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    _, text = to_sign(
        method, parts.netloc, unquote(parts.path), email, at, int(told["X-Goog-Expires"])
    )
    key.verify(bytes.fromhex(told["X-Goog-Signature"]), text, padding.PKCS1v15(), hashes.SHA256())
    return told | {"email": email}


def public(pem: str) -> rsa.RSAPublicKey:
    private = serialization.load_pem_private_key(pem.encode(), None)
    found = private.public_key()
    assert isinstance(found, rsa.RSAPublicKey)
    return found


def test_a_service_account_s_file_signs_here(
    cloud: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE")
    before = cloud.calls(SIGN)
    key = public(json.loads(cloud.key.read_text())["private_key"])
    links = CLOUD.links(footprint(), STORE)
    links.check()
    link = links.get("kits/a b+c.tar", 600)
    assert link.startswith("https://storage.googleapis.com/runs/team%20a/kits/a%20b%2Bc.tar?")
    told = verified(link, "GET", key)
    assert (told["X-Goog-Expires"], told["email"]) == ("600", cloud.owner)
    with pytest.raises(InvalidSignature):
        verified(link, "PUT", key)
    assert verified(links.put("tell/0", 8 * 86_400), "PUT", key)["X-Goog-Expires"] == "604800"
    assert cloud.calls(SIGN) == before


def test_else_google_signs_with_a_key_of_the_machines_account(
    cloud: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    google, before = Google(), len(cloud.calls(SIGN))
    monkeypatch.setattr(type(google.credentials), "signer", None)  # as of a person's login
    links = Links(google, footprint(), "gs://runs/team")
    links.check()
    link = links.get("kits/x", 86_400)
    assert f"machines%40{cloud.project}" in link
    assert "X-Goog-Expires=43200" in link
    assert len(cloud.calls(SIGN)) > before


def test_who_may_not_sign_is_told_before_anything_is_launched(
    cloud: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = cloud.key_file(f"nobody@{cloud.project}.iam.gserviceaccount.com")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    google = Google()
    monkeypatch.setattr(type(google.credentials), "signer", None)
    with pytest.raises(NoAccess, match=r"no link for machines can be signed.*nothing was launched"):
        Links(google, footprint(), "gs://runs/team").check()


@pytest.mark.parametrize("by_google", [False, True])
def test_a_link_is_good_for_its_object_and_its_method_alone(
    cloud: Control, monkeypatch: pytest.MonkeyPatch, by_google: bool
) -> None:
    google = Google()
    bucket = f"runs-{by_google}".lower()
    path = f"/b?project={cloud.project}"
    google.rest("storage").send("POST", path, {"name": bucket}, Any, "making a bucket")
    account = footprint().service_account
    cloud.grant("roles/storage.objectAdmin", f"serviceAccount:{account}")
    if by_google:
        monkeypatch.setattr(type(google.credentials), "signer", None)
    links = Links(google, footprint(), f"gs://{bucket}/team a")
    put = links.put("tell/a+b", 600)
    assert asked("PUT", put, b"last words") == b""
    assert asked("GET", links.get("tell/a+b", 600)) == b"last words"
    for method, link in (
        ("GET", put),
        ("GET", links.get("tell/a+b", 600).replace("a%2Bb", "other")),
        ("GET", links.get("tell/a+b", 600)[:-2] + "00"),
    ):
        with pytest.raises(HTTPError) as caught:
            asked(method, link)
        with caught.value as refused:
            assert refused.code in (400, 403)


def asked(method: str, link: str, body: bytes | None = None) -> bytes:
    request = urllib.request.Request(link, data=body, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: bytes = answer.read()
    return found
