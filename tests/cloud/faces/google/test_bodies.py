"""Machines of Google's face that have bodies: what runs in them, and what their metadata tells."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud.bodies.slots import possible
from tests.cloud.faces.google.asking import delete, done, instance, running, script, spot
from tests.cloud.faces.google.control import Control
from tests.cloud.faces.google.control import running as equipment
from tests.eventually import eventually

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[4]
MACHINES = f"machines@{Control.project}.iam.gserviceaccount.com"
HEAD = f"""#!{sys.executable} -u
import os, sys
sys.path[:0] = {[str(ROOT), str(ROOT / "src")]!r}
import http.client
HOST = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
def ask(path, flavor="Google"):
    line = http.client.HTTPConnection(HOST, timeout=60)
    line.request("GET", "/computeMetadata/v1/" + path, headers={{"Metadata-Flavor": flavor}})
    answer = line.getresponse()
    return answer.status, answer.read().decode(), answer.headers.get("ETag")
"""


@pytest.fixture(scope="module", params=["process", pytest.param("netns", marks=pytest.mark.system)])
def hosts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Control]:
    if request.param == "netns" and not possible():
        pytest.skip("needs root, ip and unshare")
    with equipment(tmp_path_factory.mktemp("google"), bodies=request.param) as control:
        control.key_file(MACHINES)
        control.bucket("runs")
        bound = "projects/_/buckets/runs"
        control.grant("roles/storage.objectUser", f"serviceAccount:{MACHINES}", bound)
        control.dials(body_env=control.body_env)
        yield control


def account(email: str = MACHINES) -> list[dict[str, object]]:
    return [{"email": email, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}]


def test_a_machine_learns_who_it_is_and_that_it_is_taken(hosts: Control) -> None:
    text = f"""{HEAD}
print(ask("instance/name", "None")[0], ask("instance/name")[:2], ask("instance/none")[0])
print(ask("instance/zone")[1], ask("instance/attributes/rank")[1], ask("project/project-id")[1])
state, tag = ask("instance/preempted")[1:]
print(state, ask(f"instance/preempted?wait_for_change=true&timeout_sec=1&last_etag={{tag}}")[1])
print("then", ask(f"instance/preempted?wait_for_change=true&last_etag={{tag}}")[1], flush=True)
"""
    metadata = script(text)
    metadata["items"].append({"key": "rank", "value": "7"})
    running(hosts, instance("knows", metadata=metadata, scheduling=spot()))
    hosts.wait_console("knows", "FALSE FALSE")
    hosts.interrupt("knows", notice_s=20)
    told = hosts.wait_console("knows", "then TRUE")
    assert "403 (200, 'knows') 404" in told
    assert "projects/123456789012/zones/us-central1-a 7 equipment-project" in told


def test_a_machine_is_its_service_account_to_cloud_storage(hosts: Control) -> None:
    text = f"""{HEAD}
import google.auth, google.auth.transport.requests, json, urllib.request
from tradewind import store
from tradewind.base.errors import TradewindError
from tradewind.store.googlekeys import endpoint
where = endpoint(os.environ)
def put(token, bucket):
    asked = urllib.request.Request(f"{{where}}/{{bucket}}/a", b"text", method="PUT")
    asked.add_header("Authorization", "Bearer " + token)
    try:
        return urllib.request.urlopen(asked).status
    except urllib.error.HTTPError as error:
        return error.code
token = json.loads(ask("instance/service-accounts/default/token")[1])["access_token"]
print(ask("instance/service-accounts/default/email")[1])
def keep(bucket):
    try:
        store.open(f"gs://{{bucket}}", env=os.environ).create("b", b"text")
    except TradewindError as error:
        return str(error)
print("kept", keep("runs"), "and", keep("other"))
print("put", put(token, "runs"), put("wrong", "runs"), put(token, "other"), put("emulator", "runs"))
"""
    hosts.bucket("other")
    machine = running(hosts, instance("stores", metadata=script(text), serviceAccounts=account()))
    told = hosts.wait_console("stores", "put")
    assert MACHINES in told
    assert "put 200 401 403 401" in told
    assert hosts.objects("runs") == ["a", "b"]
    assert "kept None and gs://other refused access to b: 403" in told
    shown = [each for each in hosts.permissions() if each["member"].endswith(MACHINES)]
    assert {each["permission"] for each in shown if each["granted"]} == {"storage.objects.create"}
    if hosts.bodies == "netns":
        asked = hosts.bill()["s3"][machine["id"]]
        assert (asked["writes"], asked["bytes_in"]) == (2, 8)


def test_googles_own_library_finds_the_metadata(hosts: Control) -> None:
    text = f"""{HEAD}
import google.auth, google.auth.transport.urllib3, urllib3
found, project = google.auth.default()
found.refresh(google.auth.transport.urllib3.Request(urllib3.PoolManager()))
print("found", project, found.service_account_email, bool(found.token))
"""
    running(hosts, instance("library", metadata=script(text), serviceAccounts=account()))
    assert f"found {hosts.project} {MACHINES} True" in hosts.wait_console("library", "found")


def test_one_that_shuts_itself_down_stays_and_costs_its_disk(hosts: Control) -> None:
    script_ = script("#!/bin/sh\necho going\nshutdown -h now\n")
    running_or_gone = instance("stops", metadata=script_)
    from tests.cloud.faces.google.asking import get, insert

    insert(hosts, running_or_gone)
    eventually(lambda: get(hosts, "stops")["status"] == "TERMINATED")
    (event,) = hosts.operations("compute.instances.guestTerminate")
    assert event["status"] == "DONE"
    number = get(hosts, "stops")["id"]
    assert number in hosts.left()
    assert "error" not in done(hosts, delete(hosts, "stops"))
    assert number not in hosts.left()


def test_workers_of_a_slice_know_each_other(hosts: Control) -> None:
    text = f"""{HEAD}
print("I am", ask("instance/attributes/agent-worker-number")[1])
print("we are", ask("instance/attributes/worker-network-endpoints")[1])
"""
    node = {
        "acceleratorType": "v5litepod-16",
        "runtimeVersion": "v2-alpha-tpuv5-lite",
        "metadata": {"startup-script": text},
    }
    asked = hosts.client("tpu", "v2").projects().locations().nodes()
    parent = f"projects/{hosts.project}/locations/us-central1-a"
    asked.create(parent=parent, nodeId="slice", body=node).execute()
    told = [hosts.wait_console(f"slice-w-{n}", "we are") for n in (0, 3)]
    assert "I am 0" in told[0]
    assert "I am 3" in told[1]
    name = f"{parent}/nodes/slice"
    ends = [each["ipAddress"] for each in asked.get(name=name).execute()["networkEndpoints"]]
    assert f"we are {','.join(f'unknown:unknown:{each}' for each in ends)}" in told[0]
    asked.delete(name=name).execute()
    eventually(lambda: asked.list(parent=parent).execute()["nodes"] == [])
