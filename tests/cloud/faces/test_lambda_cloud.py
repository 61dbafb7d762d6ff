"""Lambda's API on the equipment, by plain HTTP: machines that run, faults, and the bill."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cloud import server
from tests.cloud.control import Control
from tests.cloud.faces.lambda_cloud import TABLE
from tests.cloud.faces.rest.asking import ask
from tests.cloud.faces.rest.face import KEY
from tests.eventually import eventually

KIND, REGION = "gpu_1x_a10", "us-west-1"
CAPACITY = "instance-operations/launch/insufficient-capacity"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    folder = tmp_path_factory.mktemp("lambda")
    with server.running(folder, "tests.cloud.faces.lambda_cloud", Control, "process") as control:
        key = {"name": "mine", "public_key": "ssh-ed25519 AAAA me"}
        assert ask(control, "POST", "/api/v1/ssh-keys", key)[0] == 200
        yield control


@pytest.fixture
def cloud(running: Control) -> Iterator[Control]:
    yield running
    running.dials(pace_s={}, lag_s=0)
    running.capacity(None, kind=KIND, zone=REGION)
    running.end_all()
    eventually(lambda: listed(running) == {})


def launch(cloud: Control, **more: Any) -> tuple[int, Any]:
    asked = {"region_name": REGION, "instance_type_name": KIND, "ssh_key_names": ["mine"], **more}
    return ask(cloud, "POST", "/api/v1/instance-operations/launch", asked)


def launched(cloud: Control, **more: Any) -> str:
    status, told = launch(cloud, **more)
    assert status == 200, told
    (number,) = told["data"]["instance_ids"]
    return str(number)


def listed(cloud: Control) -> dict[str, Any]:
    told = ask(cloud, "GET", "/api/v1/instances")[1]["data"]
    return {each["id"]: each for each in told}


def terminate(cloud: Control, *ids: str) -> tuple[int, Any]:
    asked = {"instance_ids": list(ids)}
    return ask(cloud, "POST", "/api/v1/instance-operations/terminate", asked)


def code(answer: tuple[int, Any]) -> tuple[int, str]:
    return answer[0], answer[1]["error"]["code"]


def row(cloud: Control, number: str) -> Any:
    return next(each for each in cloud.bill()["machines"] if each["id"] == number)


def test_a_machine_from_launch_to_bill(cloud: Control) -> None:
    script = "#!/bin/sh\necho here I am\nexec sleep 999\n"
    before = cloud.now()
    number = launched(cloud, name="run-1-0", user_data=script)
    assert "here I am" in cloud.wait_console(number, "here I am")
    told = listed(cloud)[number]
    assert (told["status"], told["name"]) == ("active", "run-1-0")
    assert told["instance_type"]["price_cents_per_hour"] == 75
    assert told["region"] == {"name": REGION, "description": "California, USA"}
    assert ask(cloud, "GET", f"/api/v1/instances/{number}")[1]["data"] == told
    assert cloud.alive(number)
    cloud.advance(3600)
    assert terminate(cloud, number)[1]["data"]["terminated_instances"][0]["id"] == number
    cloud.wait(number, "ended")
    most_s = cloud.now() - before
    assert cloud.alive(number) == []
    assert number not in listed(cloud)
    paid = row(cloud, number)
    assert paid["seconds"] % 60 == 0
    assert 3600 <= paid["seconds"] <= most_s + 60
    assert paid["usd"] == pytest.approx(paid["seconds"] / 3600 * 0.75)
    assert cloud.left() == []


def test_shutting_down_does_not_end_the_bill(cloud: Control) -> None:
    number = launched(cloud, user_data="#!/bin/sh\necho off\nshutdown -h now\nsleep 999\n")
    cloud.wait_console(number, "off")
    eventually(lambda: cloud.alive(number) == [])
    assert listed(cloud)[number]["status"] == "active"
    before = row(cloud, number)["usd"]
    cloud.advance(3600)
    assert row(cloud, number)["usd"] == pytest.approx(before + 0.75)
    terminate(cloud, number)
    cloud.wait(number, "ended")


def test_no_capacity(cloud: Control) -> None:
    cloud.capacity(1, kind=KIND, zone=REGION)

    def regions() -> list[str]:
        kinds = ask(cloud, "GET", "/api/v1/instance-types")[1]["data"]
        return [each["name"] for each in kinds[KIND]["regions_with_capacity_available"]]

    assert REGION in regions()
    assert code(launch(cloud, quantity=2)) == (400, CAPACITY)
    launched(cloud)
    assert REGION not in regions()
    assert "us-east-1" in regions()
    refused = launch(cloud)
    assert code(refused) == (400, CAPACITY)
    assert refused[1]["error"]["suggestion"]
    assert len(listed(cloud)) == 1


def test_errors_before_and_after_the_effect(cloud: Control) -> None:
    cloud.fail("launch", "global/internal-error", status=500)
    assert code(launch(cloud)) == (500, "global/internal-error")
    assert listed(cloud) == {}
    cloud.fail("launch", "global/internal-error", status=503, after=True)
    assert code(launch(cloud, name="bought")) == (503, "global/internal-error")
    assert [each["name"] for each in listed(cloud).values()] == ["bought"]


def test_a_lost_answer_was_carried_out(cloud: Control) -> None:
    cloud.lose("launch")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        launch(cloud, name="lost")
    assert [each["name"] for each in listed(cloud).values()] == ["lost"]


def test_too_many_requests(cloud: Control) -> None:
    assert TABLE.pace_s["launch"] == 12
    cloud.dials(pace_s={"launch": 5000})
    launched(cloud)
    assert launch(cloud)[0] == 429
    assert len(listed(cloud)) == 1
    cloud.advance(5001)
    launched(cloud)


def test_listings_are_late_when_told_so(cloud: Control) -> None:
    cloud.dials(lag_s=5000)
    number = launched(cloud)
    assert listed(cloud) == {}
    unknown = ask(cloud, "GET", f"/api/v1/instances/{number}")
    assert code(unknown) == (404, "global/object-does-not-exist")
    cloud.advance(5001)
    assert list(listed(cloud)) == [number]


def test_what_is_asked_is_looked_at(cloud: Control) -> None:
    basic = base64.b64encode(f"{KEY}:".encode()).decode()
    assert ask(cloud, "GET", "/api/v1/instances", auth=f"Basic {basic}")[0] == 200
    wrong = ask(cloud, "GET", "/api/v1/instances", auth="Bearer another")
    assert code(wrong) == (401, "global/invalid-api-key")
    invalid, unknown = "global/invalid-parameters", "global/object-does-not-exist"
    assert code(launch(cloud, region_name="mars-1")) == (400, invalid)
    assert code(launch(cloud, name="n" * 65)) == (400, invalid)
    assert code(launch(cloud, ssh_key_names="mine")) == (400, invalid)
    assert code(launch(cloud, ssh_key_names=["nobody's"])) == (404, unknown)
    assert code(terminate(cloud, "0" * 32)) == (404, unknown)
    assert listed(cloud) == {}
    cloud.quota("instances", 0)
    assert code(launch(cloud)) == (400, "global/quota-exceeded")
    cloud.quota("instances", 100)


def test_file_systems_and_firewall_rules(cloud: Control) -> None:
    asked = {"name": "data", "region": "us-east-1"}
    made = ask(cloud, "POST", "/api/v1/filesystems", asked)[1]["data"]
    assert code(ask(cloud, "POST", "/api/v1/filesystems", asked)) == (400, "global/duplicate")
    elsewhere = launch(cloud, file_system_names=["data"])
    wrong = "instance-operations/launch/file-system-in-wrong-region"
    assert code(elsewhere) == (400, wrong)
    number = launched(cloud, region_name="us-east-1", file_system_names=["data"])
    (told,) = ask(cloud, "GET", "/api/v1/file-systems")[1]["data"]
    assert told["is_in_use"]
    held = ask(cloud, "DELETE", f"/api/v1/filesystems/{made['id']}")
    assert code(held) == (400, "filesystems/filesystem-in-use")
    terminate(cloud, number)
    assert cloud.left() == [made["id"]]
    assert ask(cloud, "DELETE", f"/api/v1/filesystems/{made['id']}")[0] == 200
    assert cloud.left() == []
    rule = {"protocol": "tcp", "port_range": [22, 22], "source_network": "0.0.0.0/0"}
    rules = {"data": [rule | {"description": "ssh"}]}
    assert ask(cloud, "PUT", "/api/v1/firewall-rules", rules) == (200, rules)
    assert ask(cloud, "GET", "/api/v1/firewall-rules") == (200, rules)
