"""Passes to stores: against a real S3 server whose STS and policies are real (SeaweedFS), against
Azure's emulator, and against a fake of Google's exchange of tokens."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import obstore
import pytest
import trustme
from obstore.store import AzureStore

from tests.local_http import LocalHttp, Reply
from tests.store import servers
from tests.store.servers import ROLE
from tradewind import store
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, SourceFailed
from tradewind.model import places
from tradewind.store import lending
from tradewind.store.base import Store
from tradewind.store.lending import azure, gcs, held, s3
from tradewind.store.lending.azure import AzureLender
from tradewind.store.lending.gcs import GcsLender
from tradewind.store.lending.s3 import S3Lender, session_policy

RUN = "run-1"


def kept(folder: Path, lent: lending.Pass) -> Path:
    held.keep(folder / "pass.json", lent, 0.0)
    return folder / "pass.json"


# -- S3 --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    server = servers.S3Server(tmp_path_factory.mktemp("weed"), lends=True)
    server.start()
    try:
        servers.make_bucket(server.env)
        yield server.env
    finally:
        server.stop()


@pytest.fixture
def lender(sts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> S3Lender:
    for name, value in {**sts, "TRADEWIND_LENDING_ROLE": ROLE}.items():
        monkeypatch.setenv(name, value)
    found = lending.lender("s3://runs/team/tw")
    assert isinstance(found, S3Lender)
    return found


@pytest.fixture
def machine(lender: S3Lender, tmp_path: Path) -> Store:
    """The store, as a machine sees it that has nothing but a pass."""
    own = store.open("s3://runs/team/tw")
    for key in ("journal/1", "logs/1", "checkpoints/1", "machines/m1/heartbeat.json"):
        own.replace(f"runs/{RUN}/{key}", b"ours")
    own.replace("runs/run-10/logs/1", b"another's")
    own.replace(places.a_pass(RUN, "l", 0), b"renewed")
    own.replace(places.a_pass("run-10", "l", 0), b"another's")
    own.replace("keys/seed", b"of all")
    path = kept(tmp_path, lender.lend(RUN, 900))
    return store.open("s3://runs/team/tw", env={held.VARIABLE: str(path), **lender.environment})


def test_a_pass_is_enough_for_its_run(machine: Store) -> None:
    assert machine.get(f"runs/{RUN}/journal/1") == b"ours"
    assert machine.get(places.a_pass(RUN, "l", 0)) == b"renewed"
    assert len(machine.list_after(f"runs/{RUN}/")) >= 4
    machine.replace(f"runs/{RUN}/machines/m1/heartbeat.json", b"alive")
    assert machine.create(f"runs/{RUN}/legs/000001/resume-{id(machine)}", b"there")
    machine.delete(f"runs/{RUN}/checkpoints/1")
    with pytest.raises(NotFound):
        machine.get(f"runs/{RUN}/checkpoints/1")


@pytest.mark.parametrize(
    "act",
    [
        lambda where: where.replace(f"runs/{RUN}/journal/2", b"forged"),
        lambda where: where.replace(f"runs/{RUN}/job/bundle.tar.gz", b"forged"),
        lambda where: where.create("live/run-2", b"{}"),
        lambda where: where.replace("kits/0/kit.tar", b"forged"),
        lambda where: where.replace(places.a_pass(RUN, "l", 0), b"forged"),
        lambda where: where.get("keys/seed"),
        lambda where: where.get("runs/run-10/logs/1"),
        lambda where: where.get(places.a_pass("run-10", "l", 0)),
        lambda where: where.list_after("runs/run-10/"),
        lambda where: where.list_after("passes/"),
    ],
)
def test_and_for_nothing_else(machine: Store, act: Callable[[Store], object]) -> None:
    with pytest.raises(NoAccess):
        act(machine)


def test_what_it_may_write_it_may_not_all_delete(machine: Store) -> None:
    with pytest.raises((NoAccess, SourceFailed), match=r"Access ?Denied"):
        machine.delete(f"runs/{RUN}/logs/1")


def test_a_pass_that_is_replaced_is_used_at_once(
    lender: S3Lender, machine: Store, tmp_path: Path
) -> None:
    """By handles that were opened before, too."""
    kept(tmp_path, lender.lend("run-10", 900))
    assert machine.get("runs/run-10/logs/1") == b"another's"
    with pytest.raises(NoAccess):
        machine.get(f"runs/{RUN}/logs/1")


def test_a_pass_is_for_its_own_bucket_only(
    lender: S3Lender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(held.VARIABLE, str(kept(tmp_path, lender.lend(RUN, 900))))
    assert held.provider("s3", "runs", {held.VARIABLE: str(tmp_path / "pass.json")})
    assert held.provider("s3", "others", {held.VARIABLE: str(tmp_path / "pass.json")}) is None
    assert held.provider("gs", "runs", {held.VARIABLE: str(tmp_path / "pass.json")}) is None


def test_one_that_has_been_changed_opens_nothing(lender: S3Lender, tmp_path: Path) -> None:
    lent = lender.lend(RUN, 900)
    forged = lending.Pass(
        store_url=lent.store_url,
        run_id=RUN,
        for_s=900,
        credentials={**lent.credentials, "secret_access_key": "x" * 40},
    )
    path = kept(tmp_path, forged)
    where = store.open("s3://runs/team/tw", env={held.VARIABLE: str(path), **lender.environment})
    with pytest.raises(NoAccess):
        where.get(f"runs/{RUN}/logs/1")


def test_a_role_that_may_not_be_lent(
    lender: S3Lender, sts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_LENDING_ROLE", ROLE.replace("role/lend", "role/other"))
    other = lending.lender("s3://runs/team/tw")
    with pytest.raises((NoAccess, SourceFailed)) as caught:
        other.lend(RUN, 900)
    assert sts["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)


def test_how_long_it_can_last(lender: S3Lender) -> None:
    assert lender.longest_s == 12 * 3600
    assert lender.lend(RUN, 999_999).for_s == 12 * 3600
    assert lender.lend(RUN, 1).for_s == 900  # no STS lends for less


class Sts:
    def __init__(self, arn: str) -> None:
        self.arn, self.asked = arn, [dict[str, Any]()]

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": self.arn}

    def assume_role(self, **more: Any) -> Any:
        self.asked.append(more)
        given = {"AccessKeyId": "k", "SecretAccessKey": "s", "SessionToken": "t"}
        return {"Credentials": given}


def test_who_is_a_session_of_a_role_can_lend_for_an_hour() -> None:
    """AWS chains no longer ones, and refuses to be asked for one."""
    lends = S3Lender("s3://b", "arn:aws:iam::1:role/lend", {})
    lends._client = sts = Sts("arn:aws:sts::1:assumed-role/Admin/me")
    assert lends.lend("a" * 80, 12 * 3600).for_s == 3600
    assert sts.asked[-1]["DurationSeconds"] == 3600
    assert len(sts.asked[-1]["RoleSessionName"]) == 64


def test_session_policies_are_as_short_as_aws_wants_them() -> None:
    ordinary = session_policy("s3://my-company-training/tradewind", "bert-7f3a9c", ROLE, ours=True)
    assert len(ordinary) <= s3.MOST_POLICY
    assert "checkpoints" in ordinary
    long = ("s3://" + "b" * 63 + "/" + "p" * 60, "r" * 60)
    folded = session_policy(*long, ROLE, ours=True)
    assert len(folded) <= s3.MOST_POLICY
    assert "checkpoints" not in folded  # the role's own policy has them
    with pytest.raises(InvalidValue, match="too long"):
        session_policy(*long, ROLE, ours=False)  # nobody knows what it has
    with pytest.raises(InvalidValue, match="too long"):
        session_policy("s3://b/" + "p" * 400, "r" * 200, ROLE, ours=True)
    china = session_policy("s3://b", "r", "arn:aws-cn:iam::1:role/lend", ours=True)
    assert "arn:aws-cn:s3:::b" in china
    assert "arn:aws:" not in china


@pytest.mark.parametrize(
    ("url", "env", "words"),
    [
        ("file:///tmp/x", {}, "nothing can be lent there"),
        ("memory://x", {}, "nothing can be lent there"),
        ("s3://b", {}, "there is no role to lend"),
        ("s3://b", {"AWS_ENDPOINT_URL_S3": "https://r2.example"}, "its server is not AWS's"),
    ],
)
def test_stores_that_nothing_can_be_lent_for(url: str, env: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidValue, match=words) as caught:
        lending.lender(url, env=env)
    assert caught.value.hint


# -- Cloud Storage ---------------------------------------------------------------------------------


@pytest.fixture
def exchange() -> Iterator[LocalHttp]:
    with LocalHttp() as server:
        yield server


def google(server: LocalHttp, env: dict[str, str] | None = None) -> GcsLender:
    url = f"{server.url}/v1/token"
    return GcsLender("gs://runs/tw", env or {}, source=lambda: ("ours", 3000), exchange=url)


def test_a_token_with_a_boundary(exchange: LocalHttp) -> None:
    exchange.on("/v1/token", Reply(b'{"access_token": "lent", "expires_in": 2900}'))
    lent = google(exchange).lend(RUN, 43_200)
    assert (lent.for_s, lent.credentials) == (2900, {"token": "lent"})
    (asked,) = exchange.requests
    form = {name: value for name, (value,) in parse_qs(asked.body.decode()).items()}
    assert form["subject_token"] == "ours"
    assert form["grant_type"].endswith(":token-exchange")
    assert json.loads(form["options"]) == gcs.boundary("gs://runs/tw", RUN)


def test_the_boundary_names_the_run_and_its_folders() -> None:
    made = gcs.boundary("gs://runs/tw", RUN)["accessBoundary"]["accessBoundaryRules"]
    assert all(each["availableResource"].endswith("/buckets/runs") for each in made)
    read, write = (each["availabilityCondition"]["expression"] for each in made)
    assert "objects/tw/runs/run-1/'" in read
    assert "objects/tw/passes/run-1/'" in read
    assert write.count("startsWith('projects/_/buckets/runs/objects/tw/runs/run-1/") == 7
    assert "journal" not in write
    assert write.count("||") < 12  # of a condition's operators there may be so many


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(b'{"error": "invalid_grant", "error_description": "expired"}', 400), NoAccess),
        (Reply(b"busy", 503), SourceFailed),
        (Reply(b"{}"), SourceFailed),
        (Reply(b"[]"), SourceFailed),
        (Reply(b"<html>"), SourceFailed),
    ],
)
def test_google_refuses(exchange: LocalHttp, reply: Reply, kind: type[Exception]) -> None:
    exchange.on("/v1/token", reply)
    with pytest.raises(kind) as caught:
        google(exchange).lend(RUN, 3600)
    assert "ours" not in str(caught.value)


def test_a_machine_shows_its_token(exchange: LocalHttp, tmp_path: Path) -> None:
    exchange.on("/v1/token", Reply(b'{"access_token": "lent"}'))
    lends = google(exchange, {"STORAGE_EMULATOR_HOST": exchange.url})
    path = kept(tmp_path, lends.lend(RUN, 3600))
    where = store.open("gs://runs/tw", env={held.VARIABLE: str(path), **lends.environment})
    with pytest.raises(NotFound):
        where.get(f"runs/{RUN}/logs/1")
    assert exchange.requests[-1].headers["authorization"] == "Bearer lent"


# -- Azure -----------------------------------------------------------------------------------------


def somebody() -> str:
    """As Entra would say; the emulator looks at the words, not at who signed them."""
    now = datetime.now(UTC).timestamp()
    claims = {
        "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
        "aud": "https://storage.azure.com",
        "nbf": int(now) - 60,
        "iat": int(now) - 60,
        "exp": int(now) + 3600,
        "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
        "tid": "ab1f708d-50f6-404c-a006-d71b2ac7a606",
    }
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    coded = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in parts]
    return b".".join([*coded, b"c2lnbmVk"]).decode()


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("azurite")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    names = [folder / name for name in ("authority.pem", "cert.pem", "key.pem")]
    authority.cert_pem.write_to_path(names[0])
    issued.cert_chain_pems[0].write_to_path(names[1])
    issued.private_key_pem.write_to_path(names[2])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(names[0]))
        with servers.azure(folder, (names[1], names[2])) as env:
            yield dict(env)


@pytest.mark.system
def test_signatures_by_a_user_delegation_key(emulator: dict[str, str]) -> None:
    """The emulator has no directories: it is shown that a signature is right, for a container."""
    lends = AzureLender("az://runs/tw", emulator, token=somebody)
    key = lends.delegation_key(somebody(), 3600)
    endpoint = emulator["AZURE_STORAGE_SERVICE_ENDPOINT"]

    def opened(signature: str) -> AzureStore:
        provider = {"sas_token": signature, "expires_at": None}
        return AzureStore(
            "runs",
            config={"account_name": "devstoreaccount1", "endpoint": endpoint},
            client_options={"allow_invalid_certificates": True},
            credential_provider=lambda: provider,  # type: ignore[arg-type]
        )

    where = opened(lends.signed(key, "runs", "", "racwdl"))
    obstore.put(where, "tw/runs/run-1/logs/1", b"ours")
    assert bytes(obstore.get(where, "tw/runs/run-1/logs/1").bytes()) == b"ours"
    reader = opened(lends.signed(key, "runs", "", "rl"))
    assert bytes(obstore.get(reader, "tw/runs/run-1/logs/1").bytes()) == b"ours"
    with pytest.raises(Exception, match=r"AuthorizationPermissionMismatch|403"):
        obstore.put(reader, "tw/runs/run-1/logs/1", b"forged")
    with pytest.raises(Exception, match=r"AuthenticationFailed|403"):
        obstore.get(opened(lends.signed(key, "others", "", "rl")), "tw/runs/run-1/logs/1")
    ended = datetime.now(UTC) - timedelta(minutes=1)
    past = {**key, "SignedExpiry": f"{ended:%Y-%m-%dT%H:%M:%SZ}"}
    with pytest.raises(Exception, match=r"AuthorizationFailure|AuthenticationFailed|403"):
        obstore.get(opened(lends.signed(past, "runs", "", "rl")), "tw/runs/run-1/logs/1")


@pytest.mark.system
def test_a_flat_account_lends_nothing(emulator: dict[str, str]) -> None:
    lends = AzureLender("az://runs/tw", emulator, token=somebody)
    with pytest.raises(InvalidValue, match="no hierarchical namespace") as caught:
        lends.lend(RUN, 3600)
    assert "--hns" in str(caught.value.hint)


KEY = {
    "SignedOid": "oid",
    "SignedTid": "tid",
    "SignedStart": "2026-11-17T08:00:00Z",
    "SignedExpiry": "2026-11-17T20:00:00Z",
    "SignedService": "b",
    "SignedVersion": "2020-12-06",
    "Value": base64.b64encode(b"key").decode(),
}


def hierarchical(server: LocalHttp) -> AzureLender:
    told = "".join(f"<{name}>{value}</{name}>" for name, value in KEY.items())
    key = f"<UserDelegationKey>{told}</UserDelegationKey>".encode()
    server.on("/", Reply(b"", headers={"x-ms-is-hns-enabled": "true"}), Reply(key))
    env = {"AZURE_STORAGE_ACCOUNT": "acc", "AZURE_STORAGE_SERVICE_ENDPOINT": server.url}
    return AzureLender("az://runs/tw", env, token=lambda: "token")


def test_a_folder_of_a_run_has_a_signature_of_its_own(exchange: LocalHttp) -> None:
    lent = hierarchical(exchange).lend(RUN, 3600)
    rights = {
        folder: parse_qs(signature)["sp"][0] for folder, signature in lent.credentials.items()
    }
    assert rights["tw/runs/run-1/"] == "rl"
    assert rights["tw/passes/run-1/"] == "r"
    assert rights["tw/runs/run-1/logs/"] == "racwl"
    assert rights["tw/runs/run-1/checkpoints/"] == "racwdl"
    assert not any("journal" in folder for folder in rights)
    query = parse_qs(lent.credentials["tw/runs/run-1/logs/"])
    assert (query["sr"], query["sdd"]) == (["d"], ["4"])


def test_a_machine_asks_by_the_signature_of_the_folder(exchange: LocalHttp, tmp_path: Path) -> None:
    lends = hierarchical(exchange)
    lent = lends.lend(RUN, 3600)
    path = kept(tmp_path, lent)
    where = store.open("az://runs/tw", env={held.VARIABLE: str(path), **lends.environment})
    for key, folder in (
        (f"runs/{RUN}/journal/1", f"runs/{RUN}/"),
        (f"runs/{RUN}/logs/1", f"runs/{RUN}/logs/"),
        (places.a_pass(RUN, "l", 0), f"passes/{RUN}/"),
    ):
        answer = {"etag": '"1"', "last-modified": "Tue, 17 Nov 2026 08:00:00 GMT"}
        exchange.on(f"/runs/tw/{key}", Reply(b"ours", headers=answer))
        assert where.get(key) == b"ours"
        shown = [exchange.requests[-1].query["sig"]]
        assert shown == parse_qs(lent.credentials[f"tw/{folder}"])["sig"], key
    assert azure.folders(RUN)
