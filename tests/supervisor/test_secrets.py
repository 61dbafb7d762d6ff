"""A job's secrets on its machine: from AWS (moto over HTTP), or as its user handed them over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.aws.cloud import KEYS, Cloud, json_error
from tests.providers.aws.test_aboard import Service
from tests.supervisor.machines import MachineUnderTest
from tradewind.base.errors import InvalidValue, SourceFailed
from tradewind.model import secrets as references
from tradewind.model.boot import Boot
from tradewind.providers import registry
from tradewind.providers.aws import call as awscall
from tradewind.supervisor import secrets

Launch = Callable[..., MachineUnderTest]
ROLE = "meta-data/iam/security-credentials/"
SECRET = "the-value-itself"
BOOT = Boot(
    store_url="file:///s", run_id="r", leg=1, rank=0, nodes=1, machine_id="m", launch_id="l",
    hard_stop_s=60, after=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def _running() -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        with Cloud() as running:
            yield running


@pytest.fixture
def cloud(_running: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """With a parameter and two secrets in us-east-1, and one in eu-west-1."""
    import boto3

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", _running.url)
    _running.forget()
    for region in ("us-east-1", "eu-west-1"):
        ssm = boto3.client("ssm", region_name=region)
        value = f"{SECRET}\n" if region == "us-east-1" else "from-europe"
        ssm.put_parameter(Name="/ml/hf", Value=value, Type="SecureString", Overwrite=True)
    manager = boto3.client("secretsmanager", region_name="us-east-1")
    for name, text in (("ml/plain", SECRET), ("ml/table", '{"a": "one", "b": 2}')):
        if name not in {each["Name"] for each in manager.list_secrets()["SecretList"]}:
            manager.create_secret(Name=name, SecretString=text)
    return _running


@pytest.fixture
def metadata(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A rented machine that has a role, and no keys of anybody."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.delenv(name)
    service = Service()
    service.says[ROLE] = "our-role"
    service.says[f"{ROLE}our-role"] = json.dumps(
        {"AccessKeyId": "ASIAROLE", "SecretAccessKey": "s", "Token": "session", "Code": "Success"}
    )
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.url)
    yield service
    service.server.shutdown()
    service.server.server_close()


def test_every_scheme_of_a_workload_can_be_read() -> None:
    for scheme in set(references.SCHEMES) - {references.FILE}:
        assert callable(registry.aboard(scheme.partition("-")[0]).secret)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("aws-ssm:/ml/hf", SECRET),  # without the end of the line that it was stored with
        ("aws-ssm:arn:aws:ssm:eu-west-1:123456789012:parameter/ml/hf", "from-europe"),
        ("aws-secretsmanager:ml/plain", SECRET),
        ("aws-secretsmanager:ml/table#a", "one"),
        ("aws-secretsmanager:ml/table", '{"a": "one", "b": 2}'),
    ],
)
def test_from_aws(cloud: Cloud, where: str, value: str) -> None:
    assert secrets.values({"X": where}, BOOT) == {"X": value}


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("aws-ssm:/ml/other", r"secret X \(aws-ssm:/ml/other\).*none of this name in us-east-1"),
        ("aws-secretsmanager:ml/other", "none of this name"),
        ("aws-secretsmanager:ml/table#c", "no text under the key c"),
        ("aws-secretsmanager:ml/table#b", "no text under the key b"),
        ("aws-secretsmanager:ml/plain#a", "is not a JSON object"),
        ("file:~/x", "was not handed over"),
        ("vault:x", "does not say where"),
    ],
)
def test_what_cannot_be_read_is_named(cloud: Cloud, where: str, words: str) -> None:
    with pytest.raises(InvalidValue, match=words) as caught:
        secrets.values({"X": where}, BOOT)
    assert SECRET not in str(caught.value)


def test_what_aws_refuses_and_what_may_pass(cloud: Cloud) -> None:
    cloud.on("GetParameter", json_error("AccessDeniedException"))
    with pytest.raises(InvalidValue, match="these AWS credentials may not read it"):
        secrets.values({"X": "aws-ssm:/ml/hf"}, BOOT)
    cloud.on("GetParameter", json_error("com.amazonaws#ThrottlingException"))
    with pytest.raises(SourceFailed, match=r"secret X.*ThrottlingException"):
        secrets.values({"X": "aws-ssm:/ml/hf"}, BOOT)
    cloud.on("GetParameter", json_error("", status=503))
    with pytest.raises(SourceFailed, match="503"):
        secrets.values({"X": "aws-ssm:/ml/hf"}, BOOT)


def test_without_a_region(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(InvalidValue, match="in which region"):
        secrets.values({"X": "aws-ssm:/ml/hf"}, BOOT)


# -- a real supervisor and a real job --------------------------------------------------------------


def test_a_rented_machine_asks_by_its_role_and_only_the_job_gets_it(
    launch: Launch, metadata: Service
) -> None:
    command = 'echo "$X" | tr a-z A-Z; printf %s "$X" > kept'
    machine = launch(
        command,
        machine={"notice": "aws"},
        setup='test -n "$X" && echo "in the setup too"',
        secrets={"X": "aws-ssm:/ml/hf"},
    )
    machine.does("finished")
    assert machine.log() == f"in the setup too\n{SECRET.upper()}\n"
    kept = machine.folder / "work" / "kept"
    assert kept.read_text() == SECRET
    kept.unlink()
    for path in machine.run.folder.rglob("*"):  # neither the store nor the machine's own files
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_secret_that_is_missing_fails_the_job_by_name(launch: Launch, metadata: Service) -> None:
    machine = launch(
        "echo never", machine={"notice": "aws"}, tries=1, secrets={"X": "aws-ssm:/ml/other"}
    )
    told = machine.does("failed")
    assert told.trouble == "user"
    assert "secret X (aws-ssm:/ml/other) cannot be read" in told.tail
    assert "never" not in machine.log().splitlines()


def test_a_role_that_may_not(launch: Launch, cloud: Cloud, metadata: Service) -> None:
    cloud.on("GetParameter", json_error("AccessDeniedException"))
    machine = launch("true", machine={"notice": "aws"}, tries=1, secrets={"X": "aws-ssm:/ml/hf"})
    assert "the machines' role may not read it" in machine.does("failed").tail


def test_a_file_as_it_was_handed_over(launch: Launch, tmp_path: Path) -> None:
    kept = tmp_path / "handed.json"
    kept.write_text(json.dumps({"~/.hf_token": f"{SECRET}\n"}))
    machine = launch(
        'test "$X" = the-value-itself && echo same',
        machine={"secrets": str(kept)},
        secrets={"X": "file:~/.hf_token"},
        env={"Y": "plain"},
    )
    machine.does("finished")
    assert machine.log() == "same\n"


def test_a_path_in_a_store_is_no_reason_to_read_a_file(launch: Launch, tmp_path: Path) -> None:
    private = tmp_path / "id_rsa"
    private.write_text(SECRET)
    machine = launch('echo "$X"', tries=1, secrets={"X": f"file:{private}"})
    assert "was not handed over" in machine.does("failed").tail
    assert SECRET not in machine.log()


# -- signatures ------------------------------------------------------------------------------------


@given(
    body=st.binary(max_size=50),
    region=st.sampled_from(["us-east-1", "eu-central-1", "cn-north-1"]),
    service=st.sampled_from(["ssm", "secretsmanager"]),
    token=st.sampled_from(["", "IQoJb3JpZ2luX2VjE=="]),
    secret=st.text("abcXYZ019+/", min_size=1, max_size=40),
    days=st.integers(0, 9000),
)
def test_a_signature_is_what_botocore_would_make(
    body: bytes, region: str, service: str, token: str, secret: str, days: int
) -> None:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    at = datetime(2020, 1, 1, 9, 8, 7, tzinfo=UTC) + timedelta(days=days)
    address = f"https://{service}.{region}.amazonaws.com/"
    keys = awscall.Keys("AKIDEXAMPLE", secret, token)
    ours = awscall.signed(address, service, "Some.Target", body, region, keys, at)
    theirs: Any = AWSRequest("POST", address, data=body)
    for name in ("content-type", "x-amz-target"):
        theirs.headers[name] = ours[name]
    signer = SigV4Auth(Credentials(keys.access, secret, token or None), service, region)
    with pytest.MonkeyPatch.context() as patch:  # botocore takes the moment from its own clock
        patch.setattr("botocore.auth.get_current_datetime", lambda *_: at)
        signer.add_auth(theirs)
    assert theirs.headers["X-Amz-Date"] == ours["x-amz-date"]
    assert theirs.headers["Authorization"] == ours["authorization"]
