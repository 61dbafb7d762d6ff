"""Cloud Storage with the gate of Google's face: links, rights, faults, books, and its memory."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from googleapiclient.errors import HttpError  # type: ignore[import-untyped]
from googleapiclient.http import MediaInMemoryUpload  # type: ignore[import-untyped]

from tests.cloud.faces.google.control import Control
from tests.store.gcs.objects import Wanted
from tests.store.gcs.server import Gcs
from tradewind import store as stores
from tradewind.base.errors import NoAccess


def token(cloud: Control) -> str:
    """The owner's."""
    if cloud.url not in _TOKENS:
        _TOKENS[cloud.url] = _token(cloud)
    return _TOKENS[cloud.url]


_TOKENS: dict[str, str] = {}


def _token(cloud: Control) -> str:
    from google.auth.transport.urllib3 import Request
    from google.oauth2 import service_account
    from urllib3 import PoolManager

    load: Any = service_account.Credentials.from_service_account_file
    key = load(str(cloud.key), scopes=["https://www.googleapis.com/auth/cloud-platform"])
    transport: Any = Request
    with PoolManager() as pool:
        key.refresh(transport(pool))
    return str(key.token)


def ask(cloud: Control, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    asked = urllib.request.Request(f"{cloud.storage}{path}", body, method=method)
    asked.add_header("Authorization", f"Bearer {token(cloud)}")
    for name, value in headers.items():
        asked.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(asked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def signed(cloud: Control, path: str, at: datetime, lasts_s: int = 60) -> str:
    """As the documentation of V4 signatures has it, by the owner's key."""
    from google.oauth2 import service_account

    load = service_account.Credentials.from_service_account_file
    key = load(str(cloud.key))  # type: ignore[no-untyped-call]
    moment, scope = f"{at:%Y%m%dT%H%M%SZ}", f"{at:%Y%m%d}/auto/storage/goog4_request"
    query = "&".join(
        [
            "X-Goog-Algorithm=GOOG4-RSA-SHA256",
            f"X-Goog-Credential={quote(f'{cloud.owner}/{scope}', safe='')}",
            f"X-Goog-Date={moment}",
            f"X-Goog-Expires={lasts_s}",
            "X-Goog-SignedHeaders=host",
        ]
    )
    host = urlsplit(cloud.storage).netloc
    canonical = "\n".join(["GET", path, query, f"host:{host}\n", "host", "UNSIGNED-PAYLOAD"])
    digest = sha256(canonical.encode()).hexdigest()
    text = "\n".join(["GOOG4-RSA-SHA256", moment, scope, digest])
    signature = key.sign_bytes(text.encode()).hex()
    return f"{cloud.storage}{path}?{query}&X-Goog-Signature={signature}"


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_links(cloud: Control) -> None:
    cloud.bucket("links")
    assert ask(cloud, "PUT", "/links/a%20b", b"text") == 200
    now = datetime.now(UTC)
    assert status(signed(cloud, "/links/a%20b", now)) == 200
    assert status(signed(cloud, "/links/a%20b", now).replace("a%20b", "a")) == 403
    assert status(signed(cloud, "/links/a%20b", now - timedelta(hours=1))) == 400
    assert status(signed(cloud, "/links/a%20b", now, 604_801)) == 400
    assert status(f"{cloud.storage}/links/a%20b") == 401


def test_one_of_sixteen_creates(cloud: Control) -> None:
    cloud.bucket("races")
    with ThreadPoolExecutor(16) as pool:
        for number in range(5):

            def create(each: int, number: int = number) -> int:
                body = str(each).encode()
                wanted = {"x_goog_if_generation_match": "0"}
                return ask(cloud, "PUT", f"/races/{number}", body, **wanted)

            assert sorted(pool.map(create, range(16))) == [200] + [412] * 15


def test_generations_by_json(cloud: Control) -> None:
    cloud.bucket("generations")
    objects = cloud.client("storage").objects()

    def put(text: bytes, **more: int) -> int:
        media = MediaInMemoryUpload(text, "text/plain")
        made = objects.insert(bucket="generations", name="a/b", media_body=media, **more)
        return int(made.execute()["generation"])

    first = put(b"one", ifGenerationMatch=0)
    with pytest.raises(HttpError) as told:
        put(b"two", ifGenerationMatch=0)
    assert told.value.resp.status == 412
    second = put(b"two", ifGenerationMatch=first)
    assert second > first
    assert objects.get_media(bucket="generations", object="a/b").execute() == b"two"
    objects.delete(bucket="generations", object="a/b", ifGenerationMatch=second).execute()
    assert objects.list(bucket="generations").execute()["items"] == []


def test_buckets_of_others(cloud: Control) -> None:
    cloud.make_project("others-project", "999999999999")
    cloud.bucket("others", project="others-project")
    buckets = cloud.client("storage").buckets()
    with pytest.raises(HttpError, match=r"storage\.buckets\.get") as told:
        buckets.get(bucket="others").execute()
    assert told.value.resp.status == 403
    with pytest.raises(HttpError, match="not available") as told:
        buckets.insert(project=cloud.project, body={"name": "others"}).execute()
    assert told.value.resp.status == 409
    with pytest.raises(HttpError, match="does not exist"):
        buckets.get(bucket="nowhere-at-all").execute()
    with pytest.raises(NoAccess) as refused:
        stores.open("gs://others/tw", env=cloud.env).get("store.json")
    assert "`gcloud storage ls gs://others`" in str(refused.value.hint)
    body = {"name": "mine-full", "location": "us-east1"}
    assert buckets.insert(project=cloud.project, body=body).execute()["location"] == "US-EAST1"
    assert ask(cloud, "PUT", "/mine-full/a", b"") == 200
    with pytest.raises(HttpError, match="not empty"):
        buckets.delete(bucket="mine-full").execute()


def test_faults_paces_and_books(cloud: Control) -> None:
    cloud.bucket("faults")
    before = cloud.bill()["s3"].get("", {"writes": 0, "reads": 0, "free": 0})
    cloud.dials(storage_fails_every=2)
    told = [ask(cloud, "PUT", f"/faults/{number}", b"text") for number in range(4)]
    cloud.dials(storage_fails_every=0, object_pace_s=60)
    assert sorted(told) == [200, 200, 503, 503]
    assert [ask(cloud, "PUT", "/faults/often", b"") for _ in range(2)] == [200, 429]
    cloud.dials(object_pace_s=0)
    assert ask(cloud, "GET", "/faults/often", Authorization="Bearer emulator") == 401
    assert ask(cloud, "GET", "/faults/often") == 200
    assert ask(cloud, "DELETE", "/faults/often") == 204
    after = cloud.bill()["s3"][""]
    assert after["writes"] - before["writes"] == 3
    assert after["reads"] - before["reads"] == 1
    assert after["free"] - before["free"] == 5


def test_it_is_there_after_a_restart(tmp_path: Path) -> None:
    first = Gcs(tmp_path, time.time)
    first.objects.put_bucket("runs", {"name": "runs"})
    for key in ("a", "b", "c"):
        file = first.objects.fresh()
        file.write_bytes(key.encode())
        first.objects.put("runs", key, file, 1, "00", Wanted(), {})
    first.objects.delete("runs", "b", Wanted())
    first.objects.close()
    with (tmp_path / "journal").open("a") as journal:
        journal.write('{"do": "put", "buck')  # killed here
    second = Gcs(tmp_path, time.time)
    assert [each.key for each in second.objects.listed("runs", "", "", "", 10)[0]] == ["a", "c"]
    with second.objects.opened("runs", "c") as (entry, stream):
        assert stream.read() == b"c"
        assert entry.generation > 1_700_000_000_000_000
    second.objects.close()


def test_what_a_key_has_signed_itself(cloud: Control) -> None:
    """As obstore shows who it is: by no token that anybody has made."""
    from google.auth import crypt, jwt

    email = f"signs@{cloud.project}.iam.gserviceaccount.com"
    key = json.loads(cloud.key_file(email).read_text())
    other = json.loads(cloud.key_file(f"x{email}").read_text())
    cloud.bucket("signs")
    cloud.grant("roles/storage.objectUser", f"serviceAccount:{email}", "projects/_/buckets/signs")

    def told(by: dict[str, str], number: str, begun_s: float) -> int:
        claims = {"iss": email, "sub": email, "iat": int(begun_s), "exp": int(begun_s) + 3600}
        load: Any = crypt.RSASigner.from_string
        encode: Any = jwt.encode
        made = encode(load(by["private_key"], number), claims).decode()
        return ask(cloud, "PUT", "/signs/a", b"text", Authorization=f"Bearer {made}")

    now, number = time.time(), key["private_key_id"]
    assert told(key, number, now) == 200
    assert told(other, number, now) == 401
    assert told(other, other["private_key_id"], now) == 401
    assert told(key, number, now - 7200) == 401
    assert ask(cloud, "PUT", "/signs/a", b"text", Authorization="Bearer a.b.c") == 401
    assert ask(cloud, "PUT", "/signs/a", b"text", Authorization="Bearer emulator") == 401
    assert told(key, number, now) == 200


def test_an_emulator_is_told_nothing_of_who_we_are(
    cloud: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And another way to Google is."""
    cloud.bucket("told")
    for name, value in cloud.env.items():
        monkeypatch.setenv(name, value)
    stores.open("gs://told").create("a", b"text")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.storage)
    with pytest.raises(NoAccess, match="Invalid Credentials"):
        stores.open("gs://told").get("a")


def test_a_token_opens_what_its_account_may(cloud: Control) -> None:
    """As a machine's does that its metadata server has handed out."""
    email = f"narrow@{cloud.project}.iam.gserviceaccount.com"
    key = cloud.key_file(email)
    cloud.bucket("narrow")
    cloud.bucket("narrow-other")
    for name in ("narrow", "narrow-other"):
        assert ask(cloud, "PUT", f"/{name}/a", b"text") == 200
    role, at = "roles/storage.objectViewer", "projects/_/buckets/narrow"
    cloud.grant(role, f"serviceAccount:{email}", at)
    objects = cloud.client("storage", key=key).objects()
    assert objects.get(bucket="narrow", object="a").execute()["name"] == "a"
    for refused in (
        objects.get(bucket="narrow-other", object="a"),
        objects.delete(bucket="narrow", object="a"),
        objects.list(bucket="narrow-other"),
    ):
        with pytest.raises(HttpError) as caught:
            refused.execute()
        assert caught.value.status_code == 403
