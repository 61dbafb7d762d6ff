"""Machines of the EC2 equipment that are hosts: they reach each other, know who they are, run what
they were given, and die as machines do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.faces.ec2.control import Control, running
from tests.eventually import eventually
from tests.local_http import LocalHttp
from tests.store import servers

pytestmark = pytest.mark.system

IMAGE = "ami-0d1000000000022ba"
SAY = f"#!{sys.executable} -u\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("ec2"), bodies="netns") as control:
        yield control


@pytest.fixture
def cloud(server: Control) -> Iterator[Control]:
    yield server
    server.end_all()


def launch(cloud: Control, script: str, count: int = 1, **more: Any) -> list[Any]:
    told = cloud.client("ec2").run_instances(
        **{
            "ImageId": IMAGE,
            "InstanceType": "g5.xlarge",
            "MinCount": count,
            "MaxCount": count,
            "UserData": script,
            "InstanceInitiatedShutdownBehavior": "terminate",
            **more,
        }
    )
    return list(told["Instances"])


METADATA = """import urllib.error, urllib.request
def ask(path, method="GET", **headers):
    url = "http://169.254.169.254/latest/" + path
    headers = {"x-aws-ec2-metadata-" + name.replace("_", "-"): v for name, v in headers.items()}
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, None, headers, method=method))
        return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
token = ask("api/token", "PUT", token_ttl_seconds="60")[1]
"""
SPOT: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}


def test_two_bodies_talk(cloud: Control) -> None:
    listen = "import socket\nline = socket.create_server(('', 5000)).accept()[0]\n"
    (first,) = launch(cloud, SAY + listen + "print('heard', line.recv(99).decode())")
    there = first["PrivateIpAddress"]
    speak = f"""import os, socket, time
while True:
    try:
        line = socket.create_connection(({there!r}, 5000))
        break
    except OSError:
        time.sleep(0.05)
line.sendall(os.uname().nodename.encode())
"""
    (second,) = launch(cloud, SAY + speak)
    name = f"ip-{second['PrivateIpAddress'].replace('.', '-')}"
    cloud.wait_console(first["InstanceId"], f"heard {name}")
    assert there != second["PrivateIpAddress"]


def test_a_body_knows_who_it_is(cloud: Control) -> None:
    iam = cloud.client("iam")
    iam.create_role(RoleName="worker", AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName="workers")
    iam.add_role_to_instance_profile(InstanceProfileName="workers", RoleName="worker")
    cloud.credentials("the-key", "the-secret")
    ask = """import boto3
print("without a token:", ask("meta-data/instance-id")[0])
print("without a lifetime:", ask("api/token", "PUT")[0])
keys = boto3.Session().get_credentials()
print("keys:", keys.method, keys.access_key, keys.secret_key)
for path in ("instance-id", "ami-launch-index", "local-ipv4", "placement/region",
             "placement/availability-zone-id", "spot/instance-action"):
    print(path, *ask("meta-data/" + path, token=token))
print("done")
"""
    machines = launch(cloud, SAY + METADATA + ask, count=2, IamInstanceProfile={"Name": "workers"})
    for rank, machine in enumerate(machines):
        told = cloud.wait_console(machine["InstanceId"], "done").splitlines()
        assert "without a token: 401" in told
        assert "without a lifetime: 400" in told
        assert "keys: iam-role the-key the-secret" in told
        assert f"instance-id 200 {machine['InstanceId']}" in told
        assert f"ami-launch-index 200 {rank}" in told
        assert f"local-ipv4 200 {machine['PrivateIpAddress']}" in told
        assert "placement/region 200 us-east-1" in told
        assert any(line.startswith("placement/availability-zone-id 200 use1-") for line in told)
        assert any(line.startswith("spot/instance-action 404") for line in told)


def test_what_it_writes_is_its_own(cloud: Control) -> None:
    script = """#!/bin/sh
test ! -e /tmp/mark && test ! -e /var/lib/tradewind/mark && echo nothing-yet
touch /tmp/mark /var/lib/tradewind/mark /root/mark /dev/shm/mark
echo "first: $(cat /proc/1/cmdline | tr '\\0' ' ') home: ${HOME-none}"
"""
    for machine in launch(cloud, script, count=2):
        told = cloud.wait_console(machine["InstanceId"], "home: none")
        assert "nothing-yet" in told
        assert "init.py" in told
    assert not Path("/var/lib/tradewind/mark").exists()
    assert not Path("/dev/shm/mark").exists()


@pytest.mark.parametrize(
    "halt", ["shutdown -h now", "/sbin/shutdown now", "poweroff", "systemctl poweroff"]
)
def test_shutting_down_from_inside(cloud: Control, halt: str) -> None:
    (machine,) = launch(cloud, f"#!/bin/sh\nsetsid sleep 1000 &\n{halt}\nsleep 1000\n")
    number = machine["InstanceId"]
    cloud.wait(number, "terminated")
    assert cloud.alive(number) == []
    told = cloud.client("ec2").describe_instances(InstanceIds=[number])
    reason = told["Reservations"][0]["Instances"][0]["StateReason"]["Code"]
    assert reason == "Client.InstanceInitiatedShutdown"
    assert number not in cloud.left()


def test_an_interruption_is_told_and_kills(cloud: Control) -> None:
    watch = """import time
print("watching")
while True:
    status, text = ask("meta-data/spot/instance-action", token=token)
    if status == 200:
        print("told:", text)
        time.sleep(1000)
    time.sleep(0.05)
"""
    (machine,) = launch(cloud, SAY + METADATA + watch, **SPOT)
    number = machine["InstanceId"]
    cloud.wait_console(number, "watching")
    cloud.interrupt(number, notice_s=3600)
    told = cloud.wait_console(number, "told:")
    said = json.loads(told.partition("told: ")[2].splitlines()[0])
    assert said["action"] == "terminate"
    assert len(cloud.alive(number)) == 1
    cloud.advance(3601)
    assert cloud.alive(number) == []
    cloud.wait(number, "terminated")


def test_terminating_kills_all_of_it(cloud: Control) -> None:
    (machine,) = launch(cloud, "#!/bin/sh\n(trap '' TERM; setsid sleep 999 &)\nexec sleep 999\n")
    number = machine["InstanceId"]
    eventually(lambda: len(cloud.alive(number)) == 2)
    found = cloud.alive(number)
    cloud.client("ec2").terminate_instances(InstanceIds=[number])
    cloud.wait(number, "terminated")
    assert cloud.alive(number) == []
    assert not any(Path(f"/proc/{pid}").exists() for pid, _ in found)


def test_a_server_on_loopback_can_be_shown_to_bodies(cloud: Control, tmp_path: Path) -> None:
    with LocalHttp() as here:
        here.on("/hello", "well met")
        url = cloud.expose(int(here.url.rpartition(":")[2]))
        script = f"import urllib.request\nprint(urllib.request.urlopen('{url}/hello').read())"
        (machine,) = launch(cloud, SAY + script)
        assert "well met" in cloud.wait_console(machine["InstanceId"], "well met")


def test_a_bucket_with_the_keys_of_a_role(cloud: Control, tmp_path: Path) -> None:
    """By boto3 and by obstore: both find the keys in the metadata, and the address in the
    environment."""
    iam = cloud.client("iam")
    iam.create_role(RoleName="keeper", AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName="keepers")
    iam.add_role_to_instance_profile(InstanceProfileName="keepers", RoleName="keeper")
    script = """import boto3, obstore
from obstore.store import from_url
boto3.client("s3").put_object(Bucket="runs", Key="a", Body=b"by boto3")
store = from_url("s3://runs")
print(obstore.get(store, "a").bytes().to_bytes())
obstore.put(store, "b", b"by obstore")
print("done")
"""
    with servers.s3(tmp_path) as env:
        cloud.credentials(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"])
        url = cloud.expose(int(env["AWS_ENDPOINT_URL"].rpartition(":")[2]))
        body = {"AWS_ENDPOINT_URL_S3": url, "AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1"}
        cloud.dials(body_env={**body, "AWS_ALLOW_HTTP": "true"})
        (machine,) = launch(cloud, SAY + script, IamInstanceProfile={"Name": "keepers"})
        assert "by boto3" in cloud.wait_console(machine["InstanceId"], "done")
        cloud.dials(body_env={})


def test_nothing_is_left_of_an_equipment_that_was_killed(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    face = "tests.cloud.faces.ec2.face"
    command = [sys.executable, "-m", "tests.cloud", face, "--state", str(tmp_path / "a")]
    env = {**os.environ, "PYTHONPATH": f"{root}/src:{root}"}
    process = subprocess.Popen([*command, "--bodies", "netns"], env=env, cwd=root)
    address = tmp_path / "a/url"
    try:
        eventually(address.exists)
        cloud = Control(address.read_text())
        (machine,) = launch(cloud, "#!/bin/sh\nsetsid sleep 987 &\nexec sleep 986\n")
        number = machine["InstanceId"]
        eventually(lambda: len(cloud.alive(number)) == 2)
        pids = cloud.alive(number)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid, _ in pids))
    bridge = f"twcloud-{int(cloud.host.split('.')[2]) // 4}"
    assert Path(f"/sys/class/net/{bridge}").exists()
    with running(tmp_path / "b", bodies="netns"):
        pass
    assert not Path(f"/sys/class/net/{bridge}").exists()
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert f"{bridge}-" not in listed
    assert list(Path("/etc/netns").glob(f"{bridge}-*")) == []


def test_a_body_is_up_soon(cloud: Control) -> None:
    start = time.monotonic()
    machines = launch(cloud, "#!/bin/sh\necho up\n", count=4)
    for machine in machines:
        cloud.wait_console(machine["InstanceId"], "up")
    assert time.monotonic() - start < 60  # far beyond what it takes; the time is printed with -s
