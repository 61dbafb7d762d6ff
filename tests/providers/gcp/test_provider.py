"""Compute Engine by plain REST, on equipment that answers late, fails later and loses answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google.control import Control
from tests.eventually import eventually
from tests.providers.conformance import Conformance, Place
from tests.providers.gcp.machines import (
    KIND,
    OTHER_ZONE,
    ZONE,
    argument,
    footprint,
    open_gcp,
    way,
)
from tradewind.base.errors import NoAccess
from tradewind.model.run import Way
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.api import Compute, Google
from tradewind.providers.gcp.facts import FLEX_FACTS
from tradewind.providers.gcp.footprint import owner_of
from tradewind.providers.gcp.operations import Operation
from tradewind.providers.gcp.provider import Both, ComputeProvider


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> str:
    return f"gs://b/{request.node.name}"


@pytest.fixture
def rented(cloud: Control, owner: str) -> Both:
    return open_gcp(argument(cloud, footprint(), owner))


class TestCompute(Conformance):
    safety = "token"

    @pytest.fixture
    def place(self, cloud: Control, rented: Both, owner: str) -> Place:
        def room(more: int) -> None:
            cloud.capacity(more, kind=KIND, zone=ZONE)

        return Place(
            rented,
            way(),
            others=open_gcp(argument(cloud, footprint(), owner + "-2")),
            again=lambda: open_gcp(argument(cloud, footprint(), owner)),
            client=(
                "tests.providers.gcp.machines:open_gcp",
                argument(cloud, footprint(), owner),
            ),
            crashes=8,
            room=room,
        )


def at(rented: Both, on: Way | None = None) -> Place:
    return Place(rented, on or way())


def names(cloud: Control) -> list[str]:
    """Of the equipment's machines that are up."""
    return sorted(each["name"] for each in cloud.bill()["machines"] if each["ended"] is None)


def test_machines_are_told_who_they_are(cloud: Control, rented: Both) -> None:
    request = replace(at(rented).request(nodes=2), relieves=3, waits=True)
    bought = rented.launch(request, 7, "sign-with-this")
    compute = Compute(Google(), cloud.project)
    for rank, machine in enumerate(bought):
        parts = labels.parted(machine.machine_id)
        assert parts is not None
        instance = compute.instance(parts[0], parts[1].text)
        assert instance is not None
        items = {each.key: each.value for each in instance.metadata.items}
        script = items["startup-script"]
        assert script.startswith("#!/bin/bash\n")
        assert "export ARCH=x86_64" in script
        (line,) = [each for each in script.splitlines() if each.startswith('{"kit"')]
        boot = json.loads(line)["boot"]
        assert (boot["nodes"], boot["key"], boot["notice"]) == (2, "sign-with-this", "gcp")
        assert (boot["relieves"], boot["waits"], boot["after"]) == (3, True, 7)
        assert "rank" not in boot
        assert machine.rank == rank == parts[1].rank


def test_google_chooses_a_zone_that_has_room(cloud: Control, rented: Both) -> None:
    cloud.capacity(0, kind=KIND, zone=ZONE)
    bought = rented.launch(at(rented, way(zone="")).request(nodes=2), 1)
    assert {each.machine_id.partition("-tw-")[0] for each in bought} == {f"gcp-{OTHER_ZONE}"}
    (one,) = rented.launch(at(rented, way(zone="")).request(leg=2), 1)
    assert OTHER_ZONE in one.machine_id


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", 503, "no_capacity"),
        ("QUOTA_EXCEEDED", 403, "no_quota"),
        ("PERMISSIONS_ERROR", 403, "not_allowed"),
    ],
)
def test_what_was_accepted_and_fails_later_is_refused(
    cloud: Control, rented: Both, nodes: int, code: str, status: int, kind: str
) -> None:
    for says_why in (True, False):
        cloud.dials(bulk_says_why=says_why)
        cloud.fail_late("*", code, status=status)
        request = at(rented).request(leg=1 + says_why, nodes=nodes)
        with pytest.raises(Refused) as caught:
            rented.launch(request, 1)
        assert caught.value.kind == kind, caught.value
        assert code in caught.value.message
    cloud.dials(bulk_says_why=True)
    assert names(cloud) == []
    assert [each for each in rented.list_machines().machines if each.ended_s is None] == []
    assert cloud.left() == []


def test_a_failure_of_googles_own_is_unknown(cloud: Control, rented: Both) -> None:
    cloud.fail_late("*", "INTERNAL_ERROR", status=500)
    with pytest.raises(OutcomeUnknown):
        rented.launch(at(rented).request(), 1)


def test_lost_answers_buy_once(cloud: Control, rented: Both, owner: str) -> None:
    for leg, nodes in ((1, 1), (2, 2)):
        request = at(rented).request(leg=leg, nodes=nodes)
        action = "compute.instances.insert" if nodes == 1 else "compute.instances.bulkInsert"
        cloud.lose(action)
        with pytest.raises(OutcomeUnknown):
            rented.launch(request, 1)
        other = open_gcp(argument(cloud, footprint(), owner))
        bought = eventually(lambda r=request, o=other: o.launch(r, 1))  # type: ignore[misc]
        assert len(bought) == nodes
    assert len(names(cloud)) == 3


def test_the_same_request_with_another_link_buys_nothing_again(
    cloud: Control, rented: Both, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two controllers at once, neither of which sees what the other has bought."""
    request = at(rented).request(nodes=2)
    first = rented.launch(request, 1)
    cloud.dials(lag_s=500)
    monkeypatch.setattr(ComputeProvider, "_bought", _blind(ComputeProvider._bought))
    assert list(open_gcp(argument(cloud, footprint(), owner)).launch(request, 2)) == list(first)
    assert len(names(cloud)) == 2


def _blind(look: Any) -> Any:
    """The first look finds nothing."""
    looks = iter([True])

    def bought(self: ComputeProvider, request: Any) -> Any:
        return None if next(looks, False) else look(self, request)

    return bought


def test_a_zone_that_does_not_answer_is_no_empty_zone(cloud: Control, rented: Both) -> None:
    rented.launch(at(rented).request(), 1)
    cloud.unreachable(ZONE)
    with pytest.raises(OutcomeUnknown, match=f"no answer of {ZONE}"):
        rented.list_machines()


def test_machines_of_a_long_name_are_found_by_their_metadata(
    cloud: Control, rented: Both, owner: str
) -> None:
    run_id = "a-very-long-name-of-a-run.v2-that-goes-on-and-on-0199f0c2a4b7-5e1d9c"
    (bought,) = rented.launch(at(rented).request(run_id=run_id), 1)
    other = open_gcp(argument(cloud, footprint(), owner))
    assert other.list_machines().machines == (bought,)
    assert bought.run_id == run_id
    other.terminate([bought.machine_id])
    ended = eventually(lambda: [m for m in other.list_machines().machines if m.ended_s])
    assert ended[0].run_id == run_id


def test_placement_policies_come_and_go_with_a_leg(
    cloud: Control, rented: Both, owner: str
) -> None:
    def policies() -> list[str]:
        return [each for each in cloud.shelf("resourcePolicies") if owner_of(owner) in each]

    fast = way(instance_type="a2-highgpu-8g")
    bought = rented.launch(at(rented, fast).request(nodes=2), 1)
    (policy,) = policies()
    rented.list_machines()
    rented.tidy()
    assert policies() == [policy]
    assert list(rented.leftovers()) == []
    rented.terminate([each.machine_id for each in bought])
    eventually(lambda: all(each.ended_s for each in rented.list_machines().machines))
    (left,) = rented.leftovers()
    assert (left.kind, left.run_id) == ("placement policy", "run-1")
    rented.tidy()
    assert policies() == []
    cloud.capacity(0, kind="a2-highgpu-8g", zone=ZONE)
    with pytest.raises(Refused):
        rented.launch(at(rented, fast).request(leg=2, nodes=2), 1)
    assert policies() == []
    cloud.capacity(None, kind="a2-highgpu-8g", zone=ZONE)


def test_flex_start_waits_is_listed_and_can_be_withdrawn(cloud: Control, rented: Both) -> None:
    flex = way(market="flex_start", facts=FLEX_FACTS)
    cloud.capacity(0, kind=KIND, zone=ZONE)
    assert list(rented.launch(at(rented, flex).request(), 1)) == []
    assert list(rented.launch(at(rented, flex).request(), 1)) == []
    (queued,) = rented.list_machines().queued
    assert (queued.launch_id, queued.run_id, queued.leg) == ("run-1-1", "run-1", 1)
    assert rented.list_machines().machines == ()
    rented.withdraw(["run-1-1", "another"])
    rented.withdraw(["run-1-1"])
    eventually(lambda: rented.list_machines().queued == ())
    assert list(rented.launch(at(rented, flex).request(leg=2), 1)) == []
    cloud.capacity(None, kind=KIND, zone=ZONE)
    (machine,) = eventually(lambda: at(rented).running("run-1-2"))
    assert rented.list_machines().queued == ()
    rented.terminate([machine.machine_id])


def test_what_is_reserved_is_taken_where_it_has_room(cloud: Control, rented: Both) -> None:
    held = way(market="reserved")
    with pytest.raises(Refused, match=f"no reservation of {KIND} in {ZONE}") as caught:
        rented.launch(at(rented, held).request(), 1)
    assert caught.value.kind == "no_capacity"
    compute = Compute(Google(), cloud.project)
    body = {
        "name": "held",
        "specificReservationRequired": True,
        "specificReservation": {"count": "2", "instanceProperties": {"machineType": KIND}},
    }
    path = f"/projects/{cloud.project}/zones/{ZONE}/reservations"
    made = compute.google.rest("compute").send("POST", path, body, Operation, "reserving")
    compute.done(made, "reserving")
    (machine,) = rented.launch(at(rented, held).request(leg=2), 1)
    rented.terminate([machine.machine_id])


def test_who_may_not_launch_is_told_which_permission_is_missing(
    cloud: Control, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = f"looker@{cloud.project}.iam.gserviceaccount.com"
    key = cloud.key_file(email)
    cloud.grant("roles/compute.viewer", f"serviceAccount:{email}")
    given = json.loads(argument(cloud, footprint(), owner))
    given[0]["GOOGLE_APPLICATION_CREDENTIALS"] = str(key)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    looker = open_gcp(json.dumps(given))
    with pytest.raises(Refused, match=r"compute\.instances\.create") as caught:
        looker.launch(at(looker).request(), 1)
    assert caught.value.kind == "not_allowed"
    assert "compute.instances.create is missing" in str(caught.value.hint)
    assert names(cloud) == []


def test_apis_that_are_off_projects_without_billing_and_logins_that_are_over(
    cloud: Control, rented: Both, owner: str
) -> None:
    cloud.service("compute", False)
    with pytest.raises(Refused, match="console") as caught:
        rented.launch(at(rented).request(), 1)
    assert caught.value.kind == "not_allowed"
    cloud.service("compute", True)
    cloud.billing(False)
    with pytest.raises(Refused, match="billing") as caught:
        rented.launch(at(rented).request(), 1)
    cloud.billing(True)
    gone = open_gcp(argument(cloud, footprint(project="no-such-project"), owner))
    with pytest.raises(Refused, match="no-such-project"):
        gone.list_machines()
    rented.list_machines()
    cloud.expire_tokens()
    rented.list_machines()  # with a token made anew


def test_logins_that_are_not_there_or_not_accepted(
    cloud: Control, owner: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = json.loads(argument(cloud, footprint(), owner))
    key = json.loads(cloud.key.read_text())
    for told, words in (
        ({**key, "client_email": "nobody@nowhere.iam.gserviceaccount.com"}, "does not accept"),
        ({"type": "nonsense"}, "there are no credentials"),
        (None, "there are no credentials"),
    ):
        path = tmp_path / "key.json"
        path.unlink(missing_ok=True)
        if told is not None:
            path.write_text(json.dumps(told))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        given[0]["GOOGLE_APPLICATION_CREDENTIALS"] = str(path)
        with pytest.raises(NoAccess, match=words) as caught:
            open_gcp(json.dumps(given)).list_machines()
        assert "gcloud auth application-default login" in str(caught.value.hint)
        assert "PRIVATE KEY" not in str(caught.value)
