"""Lambda by plain HTTP, on equipment that has its limits, lags and lost answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.cloud.control import Control
from tests.cloud.faces.rest.asking import ask
from tests.eventually import eventually
from tests.providers.conformance import Conformance, Place
from tests.providers.lambda_cloud.machines import (
    KIND,
    REGION,
    argument,
    env,
    footprint,
    open_lambda,
    packed,
    way,
)
from tradewind.base.errors import NoAccess
from tradewind.model.run import Way
from tradewind.providers.base import OutcomeUnknown, Provider, Refused
from tradewind.providers.lambda_cloud import names
from tradewind.providers.lambda_cloud.api import Api, found_key
from tradewind.providers.lambda_cloud.provider import LambdaProvider
from tradewind.providers.rest import Pace


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> str:
    return f"s3://b/{request.node.name}"


@pytest.fixture
def rented(cloud: Control, owner: str) -> LambdaProvider:
    return open_lambda(argument(cloud.url, footprint(cloud), owner))


class TestLambda(Conformance):
    safety = "recorder"

    @pytest.fixture
    def place(self, cloud: Control, rented: LambdaProvider, owner: str) -> Place:
        made = footprint(cloud)

        def room(more: int) -> None:
            cloud.capacity(more, kind=KIND, zone=REGION)

        def busy() -> None:
            cloud.dials(pace_s={"launch": 5000})
            asked = {"region_name": "mars-1", "instance_type_name": KIND, "ssh_key_names": []}
            ask(cloud, "POST", "/api/v1/instance-operations/launch", asked)

        return Place(
            rented,
            way(),
            others=open_lambda(argument(cloud.url, made, owner + "-2")),
            again=lambda: open_lambda(argument(cloud.url, made, owner)),
            client=(
                "tests.providers.lambda_cloud.machines:open_lambda",
                argument(cloud.url, made, owner),
            ),
            crashes=8,
            room=room,
            busy=busy,
        )


def at(rented: LambdaProvider, on: Way | None = None) -> Place:
    return Place(rented, on or way())


def listed(cloud: Control) -> list[str]:
    return [each.get("name", "") for each in ask(cloud, "GET", "/api/v1/instances")[1]["data"]]


def test_machines_are_told_who_they_are(
    rented: LambdaProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    launch = Api.launch

    def watched(api: Api, what: Mapping[str, Any], doing: str) -> str:
        asked.append(what)
        return launch(api, what, doing)

    monkeypatch.setattr(Api, "launch", watched)
    request = replace(at(rented).request(nodes=2), relieves=3, waits=True)
    bought = rented.launch(request, 7, "sign-with-this")
    for rank, (machine, each) in enumerate(zip(bought, asked, strict=True)):
        name = names.parsed(each["name"])
        assert name is not None
        assert name.machine_id == machine.machine_id
        assert each["image"] == {"family": "lambda-stack-24-04"}
        assert each["user_data"].startswith("#!/bin/bash\n")
        assert "export ARCH=x86_64" in each["user_data"]
        (line,) = [x for x in each["user_data"].splitlines() if x.startswith('{"kit"')]
        boot = json.loads(line)["boot"]
        assert (boot["machine_id"], boot["rank"], boot["nodes"]) == (machine.machine_id, rank, 2)
        assert (boot["key"], boot["after"], boot["notice"]) == ("sign-with-this", 7, "lambda")
        assert (boot["relieves"], boot["waits"]) == (3, True)
        assert "host" not in boot


def test_nothing_is_bought_that_cannot_be(cloud: Control, rented: LambdaProvider) -> None:
    for wrong, words, kind in (
        (way(region="us-east-3"), "nothing is set up in us-east-3", "not_found"),
        (way(market="spot"), "sells nothing on the spot market", "not_found"),
        (way(instance_type="gpu_9x_z9"), "no machines of the type gpu_9x_z9", "not_found"),
    ):
        with pytest.raises(Refused, match=words) as caught:
            rented.launch(at(rented, wrong).request(), 1)
        assert caught.value.kind == kind
    with pytest.raises(Refused, match="cannot be named") as caught:
        rented.launch(at(rented).request(run_id="r" * 50), 1)
    assert (caught.value.kind, caught.value.hint) == ("not_allowed", "give the run a shorter name")
    cloud.quota("instances", 0)
    with pytest.raises(Refused, match="Quota exceeded") as caught:
        rented.launch(at(rented).request(), 1)
    cloud.quota("instances", 100)
    assert caught.value.kind == "no_quota"
    assert "its support is asked" in str(caught.value.hint)
    assert listed(cloud) == []


def test_a_key_that_is_wrong_or_not_there(cloud: Control, owner: str, tmp_path: Path) -> None:
    for status in ("another", "with a\nline"):
        wrong = Api(env(cloud.url, status), Pace({}))
        with pytest.raises(NoAccess) as caught:
            LambdaProvider(wrong, footprint(cloud), owner, packed).launch(at_any().request(), 1)
        assert "LAMBDA_API_KEY" in str(caught.value.hint)
        assert status not in str(caught.value)
    with pytest.raises(NoAccess, match="no key for Lambda here"):
        found_key({}, tmp_path)
    kept = tmp_path / ".lambda_cloud" / "lambda_keys"
    kept.parent.mkdir()
    kept.write_text("api_key = of-mine\n")
    assert found_key({}, tmp_path) == ("of-mine", "~/.lambda_cloud/lambda_keys")
    assert found_key({"LAMBDA_API_KEY": "first"}, tmp_path) == ("first", "LAMBDA_API_KEY")
    kept.write_text("nothing\n")
    with pytest.raises(NoAccess, match="has no line"):
        found_key({}, tmp_path)


def test_a_lost_answer_is_unknown_and_found_by_another(
    cloud: Control, rented: LambdaProvider, owner: str
) -> None:
    cloud.lose("launch")
    with pytest.raises(OutcomeUnknown):
        rented.launch(at(rented).request(), 1)
    cloud.fail("launch", "global/internal-error", status=500)
    with pytest.raises(OutcomeUnknown):
        rented.launch(at(rented).request(leg=2), 1)
    other = open_lambda(argument(cloud.url, footprint(cloud), owner))
    (found,) = other.list_machines().machines
    assert (found.run_id, found.leg, found.rank, found.ended_s) == ("run-1", 1, 0, None)
    other.terminate([found.machine_id])
    assert listed(cloud) == []


def test_what_others_call_their_machines_is_left_alone(
    cloud: Control, rented: LambdaProvider, owner: str
) -> None:
    ours, theirs = names.owner_of(owner), names.owner_of("s3://another")
    for name in (
        "",
        "box",
        "tw-",
        f"tw-{ours}",
        f"tw-{ours}-run-1-0",
        f"tw-{theirs}-run-1-0-0z0000",
        f"tw-{ours}-run-1-00-0z0000",
        f"xtw-{ours}-run-1-0-0z0000",
    ):
        started(cloud, name)
    assert rented.list_machines().machines == ()
    rented.terminate(
        [f"lambda-{theirs}-run-1-0-0z0000", f"lambda-{ours}-run-1-0", "lambda-", "box"]
    )
    assert len(listed(cloud)) == 8


def test_two_of_one_name_are_one_and_end_together(cloud: Control, rented: LambdaProvider) -> None:
    (machine,) = rented.launch(at(rented).request(), 1)
    (name,) = listed(cloud)
    started(cloud, name)
    assert rented.list_machines().machines == (machine,)
    rented.terminate([machine.machine_id])
    assert listed(cloud) == []


def test_what_is_listed_late_is_ended_when_it_is(cloud: Control, rented: LambdaProvider) -> None:
    cloud.dials(lag_s=500)
    (machine,) = rented.launch(at(rented).request(), 1)
    assert rented.list_machines().machines == ()
    rented.terminate([machine.machine_id])  # Lambda does not know it yet
    assert rented.list_machines().machines == ()
    cloud.advance(501)
    cloud.dials(lag_s=0)
    assert rented.list_machines().machines == (machine,)
    rented.terminate([machine.machine_id])
    (ended,) = rented.list_machines().machines
    assert ended.ended_s is not None
    assert ended.ended_s - ended.launched_s >= 501
    cloud.advance(3601)
    assert rented.list_machines().machines == ()


def test_what_ended_by_itself_is_not_listed_any_more(
    cloud: Control, rented: LambdaProvider
) -> None:
    """Then runs estimate when that was, where no heartbeat says that it lives."""
    bought = rented.launch(at(rented).request(nodes=2), 1)
    one = ask(cloud, "GET", "/api/v1/instances")[1]["data"][0]["id"]
    ask(cloud, "POST", "/api/v1/instance-operations/terminate", {"instance_ids": [one]})
    eventually(lambda: len(rented.list_machines().machines) == 1)
    assert set(rented.list_machines().machines) < set(bought)
    rented.terminate([each.machine_id for each in bought])
    assert listed(cloud) == []


def started(cloud: Control, name: str) -> None:
    asked = {"region_name": REGION, "instance_type_name": KIND, "ssh_key_names": ["mine"]}
    answer = ask(cloud, "POST", "/api/v1/instance-operations/launch", {**asked, "name": name})
    assert answer[0] == 200


def at_any() -> Place:
    return Place(cast(Provider, None), way())
