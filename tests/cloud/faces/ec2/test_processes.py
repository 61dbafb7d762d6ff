"""Bodies for whoever is not root, by real processes."""

from __future__ import annotations

import gzip
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.faces.ec2.asking import ids, launch
from tests.cloud.faces.ec2.control import Control, running
from tests.eventually import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("ec2"), bodies="process") as control:
        yield control


def test_user_data_runs_and_knows_its_machine(hosts: Control) -> None:
    hosts.dials(body_env={"GIVEN": "by the test"})
    script = f"""#!{sys.executable} -u
import os
from botocore.utils import InstanceMetadataRegionFetcher as Fetcher
endpoint = os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
config = {{"ec2_metadata_service_endpoint": endpoint}}
print(Fetcher(config=config).retrieve_region(), os.environ["GIVEN"], "HOME" in os.environ)
"""
    told = launch(hosts, UserData=gzip.compress(script.encode()))
    (machine,) = ids(told)
    assert "us-east-1 by the test False" in hosts.wait_console(machine, "False")
    assert told["Instances"][0]["PrivateIpAddress"].startswith("127.78.")
    eventually(lambda: hosts.alive(machine) == [])
    hosts.client("ec2").terminate_instances(InstanceIds=[machine])


def test_it_dies_with_all_that_it_started(hosts: Control) -> None:
    script = "#!/bin/sh\nsetsid setsid sleep 999 &\nsleep 998\n"
    (machine,) = ids(launch(hosts, UserData=script))
    eventually(lambda: len(hosts.alive(machine)) == 3)
    pids = [pid for pid, _ in hosts.alive(machine)]
    hosts.client("ec2").terminate_instances(InstanceIds=[machine])
    hosts.wait(machine, "terminated")
    assert hosts.alive(machine) == []
    eventually(lambda: not any(Path(f"/proc/{pid}/environ").exists() for pid in pids))


def test_its_processes_are_asked_first(hosts: Control) -> None:
    stubborn = "sh -c 'trap \"\" TERM; echo two; while true; do sleep 0.1; done' &"
    polite = "trap 'sleep 0.5; echo asked; exit' TERM\necho one; while true; do sleep 0.1; done"
    (machine,) = ids(launch(hosts, UserData=f"#!/bin/sh\n{stubborn}\n{polite}\n"))
    hosts.wait_console(machine, "one")
    hosts.wait_console(machine, "two")
    hosts.dials(speed=10.0)  # what they have is two seconds
    hosts.client("ec2").terminate_instances(InstanceIds=[machine])
    assert hosts.state(machine) == "shutting-down"
    hosts.wait_console(machine, "asked")
    hosts.wait(machine, "terminated")
    assert hosts.alive(machine) == []
    hosts.dials(speed=1.0)


def test_it_shuts_itself_down(hosts: Control) -> None:
    wishes: dict[str, Any] = {"InstanceInitiatedShutdownBehavior": "terminate"}
    (machine,) = ids(launch(hosts, UserData="#!/bin/sh\nshutdown -h now\nsleep 999\n", **wishes))
    hosts.wait(machine, "terminated")
    assert hosts.alive(machine) == []


def test_a_crash_is_not_noticed_by_the_api(hosts: Control) -> None:
    (machine,) = ids(launch(hosts, UserData="#!/bin/sh\nexec sleep 999\n"))
    eventually(lambda: hosts.alive(machine))
    hosts.crash(machine)
    assert hosts.alive(machine) == []
    assert hosts.state(machine) == "running"
    hosts.client("ec2").terminate_instances(InstanceIds=[machine])
    hosts.wait(machine, "terminated")


def test_shutting_down_may_mean_to_stop(hosts: Control) -> None:
    (machine,) = ids(launch(hosts, UserData="#!/bin/sh\nshutdown -h now\nsleep 999\n"))
    hosts.wait(machine, "stopped")
    assert machine in hosts.left()  # its volume costs on
    hosts.client("ec2").terminate_instances(InstanceIds=[machine])
    hosts.wait(machine, "terminated")
    assert hosts.left() == []


def test_metadata_tells_what_is_coming(hosts: Control) -> None:
    script = '#!/bin/sh\necho "at $AWS_EC2_METADATA_SERVICE_ENDPOINT end"\nexec sleep 999\n'
    (machine,) = ids(launch(hosts, UserData=script, spot=True))
    base = hosts.wait_console(machine, " end").split()[1] + "latest/"

    def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        names = {f"x-aws-ec2-metadata-{name}": value for name, value in headers.items()}
        request = urllib.request.Request(base + path, None, names, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, ""

    token = ask("api/token", "PUT", **{"token-ttl-seconds": "60"})[1]
    assert ask("meta-data/spot/instance-action")[0] == 401
    assert ask("user-data", token=token) == (200, script)
    assert ask("meta-data/placement/", token=token)[1].split()[0] == "availability-zone"
    document = json.loads(ask("dynamic/instance-identity/document", token=token)[1])
    assert document["instanceId"] == machine
    assert ask("meta-data/events/recommendations/rebalance", token=token)[0] == 404
    hosts.rebalance(machine)
    assert "noticeTime" in ask("meta-data/events/recommendations/rebalance", token=token)[1]
    assert ask("meta-data/spot/instance-action", token=token)[0] == 404
    hosts.dials(speed=12)
    hosts.interrupt(machine)  # two minutes, at twelve times the speed
    notice = json.loads(ask("meta-data/spot/instance-action", token=token)[1])
    assert notice["action"] == "terminate"
    left_s = datetime.fromisoformat(notice["time"]).timestamp() - hosts.now()
    assert left_s <= 10
    hosts.advance(10)
    assert hosts.alive(machine) == []
    hosts.dials(speed=1)
