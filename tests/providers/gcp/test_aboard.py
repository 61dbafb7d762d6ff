"""What a machine of Google's learns of itself, by its metadata server."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cloud.faces.google.control import Control
from tests.eventually import eventually
from tests.providers.gcp.metadata_server import MetadataServer, serving
from tradewind.base.errors import InvalidValue, NotFound, SourceFailed
from tradewind.model import secrets
from tradewind.providers import registry
from tradewind.providers.boot.first import fetch
from tradewind.providers.gcp import who
from tradewind.providers.gcp.aboard import ABOARD, Gce
from tradewind.providers.gcp.metadata import Service


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    with serving() as made:
        yield made


def test_a_notice_says_that_half_a_minute_is_left(server: MetadataServer) -> None:
    told = Gce(server.host, pause_s=0.02)
    assert told() is None
    server.say(instance__preempted="TRUE")
    left_s = eventually(told)
    assert left_s is not None
    assert 20 < left_s <= 30
    assert not told.at_risk
    told.close()


def test_a_server_that_hiccups_is_asked_again(server: MetadataServer) -> None:
    server.broken = True
    told = Gce(server.host, wait_s=1, pause_s=0.02)
    eventually(lambda: len(server.asked) > 4)
    assert told() is None
    server.say(instance__preempted="TRUE")
    server.broken = False
    assert eventually(told) is not None
    told.close()


def test_maintenance_that_ends_a_machine_is_a_risk_and_no_notice(server: MetadataServer) -> None:
    told = Gce(server.host, pause_s=0.02)
    server.say(instance__maintenance_event="TERMINATE_ON_HOST_MAINTENANCE")
    eventually(lambda: told.at_risk)
    assert told() is None
    server.say(instance__maintenance_event="NONE")
    eventually(lambda: not told.at_risk)
    told.close()


def test_nobody_is_asked_more_often_than_something_changes(server: MetadataServer) -> None:
    told = Gce(server.host, wait_s=30, pause_s=0.02)
    assert eventually(lambda: len(server.asked) == 4)  # each at once, then each waits
    server.say(instance__preempted="TRUE")
    assert eventually(lambda: told() is not None)
    assert len(server.asked) <= 6
    told.close()
    server.say(instance__preempted="FALSE", instance__maintenance_event="MIGRATE")


def test_a_machine_knows_which_it_is(
    server: MetadataServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.say(
        instance__name="tw-0123abcd-run-1-7-12",
        instance__zone="projects/123/zones/europe-west4-b",
        **{"instance__network_interfaces/0/ip": "10.9.0.3"},
    )
    monkeypatch.setattr(who, "METADATA", server.host)
    assert who.who(fetch) == {
        "machine_id": "gcp-europe-west4-b-tw-0123abcd-run-1-7-12",
        "rank": 12,
        "host": "10.9.0.3",
    }


def made_secret(cloud: Control, name: str, value: bytes) -> None:
    from base64 import b64encode

    from tradewind.providers.gcp.api import Google

    rest = Google().rest("secretmanager")
    base = f"/v1/projects/{cloud.project}/secrets"
    body: dict[str, Any] = {"replication": {"automatic": {}}}
    rest.send("POST", f"{base}?secretId={name}", body, Any, "making a secret")
    payload = {"payload": {"data": b64encode(value).decode()}}
    rest.send("POST", f"{base}/{name}:addVersion", payload, Any, "adding a version")


def value(text: str, *, rented: bool) -> str:
    assert registry.aboard("gcp") is ABOARD
    return ABOARD.secret(secrets.parse(text), rented=rented)


def test_secrets_are_read_by_the_machine_s_account_or_by_the_user(
    cloud: Control, server: MetadataServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_secret(cloud, "tw-token", b"hunter2")
    made_secret(cloud, "tw-keys", b'{"api": "k1", "n": 3}')
    made_secret(cloud, "tw-binary", b"\xff\xfe")
    whole = f"gcp-secretmanager:projects/{cloud.project}/secrets/tw-token/versions/1"
    for text in ("gcp-secretmanager:tw-token", whole):
        assert value(text, rented=False) == "hunter2"
    assert value("gcp-secretmanager:tw-keys#api", rented=False) == "k1"
    with pytest.raises(NotFound, match="under the key n"):
        value("gcp-secretmanager:tw-keys#n", rented=False)
    with pytest.raises(NotFound, match="there is no projects/"):
        value("gcp-secretmanager:tw-none", rented=False)
    with pytest.raises(InvalidValue, match="it is binary"):
        value("gcp-secretmanager:tw-binary", rented=False)
    # On a machine: by a token of its service account, and nothing of google-auth.
    monkeypatch.setenv("GCE_METADATA_HOST", server.host)
    with pytest.raises(SourceFailed, match="who this machine is"):
        value("gcp-secretmanager:tw-token", rented=True)
    email = f"machines@{cloud.project}.iam.gserviceaccount.com"
    server.say(
        **{
            "instance__service_accounts/default/token": json.dumps(
                {"access_token": token_of(cloud, email), "expires_in": 3599}
            )
        },
        project__project_id=cloud.project,
    )
    with pytest.raises(InvalidValue, match=r"secretmanager\.versions\.access"):
        value("gcp-secretmanager:tw-token", rented=True)
    cloud.grant("roles/secretmanager.secretAccessor", f"serviceAccount:{email}")
    assert value("gcp-secretmanager:tw-token", rented=True) == "hunter2"


def token_of(cloud: Control, email: str) -> str:
    """As the metadata server would hand it out."""
    import google.auth.transport.urllib3
    import urllib3
    from google.oauth2 import service_account

    load: Any = service_account.Credentials.from_service_account_file
    key = cloud.key_file(email)
    found = load(str(key), scopes=["https://www.googleapis.com/auth/cloud-platform"])
    transport: Any = google.auth.transport.urllib3.Request
    found.refresh(transport(urllib3.PoolManager()))
    return str(found.token)


def test_whoever_does_not_say_the_flavor_gets_nothing(server: MetadataServer) -> None:
    with pytest.raises(OSError, match="403"):
        urllib.request.urlopen(f"http://{server.host}/computeMetadata/v1/instance/preempted")
    assert Service(server.host).get("instance/preempted") == "FALSE"
    assert Service(server.host).get("instance/nothing") == ""
