"""Launches that wait, and those that will never begin: what is said of them, and what follows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually
from tests.providers.kubernetes.machines import GPUS, Rented, footprint
from tradewind.model.run import Queued, Request
from tradewind.providers.kubernetes import asking, checks, gatekeeper, labels, shell, waits
from tradewind.providers.kubernetes.client import Client


def waiting(rented: Rented, request: Request, words: str) -> Queued:
    def look() -> Queued | None:
        found = rented.queued(request)
        return found if found and words in found.reason else None

    return eventually(look)  # type: ignore[return-value]


def refused(rented: Rented, request: Request) -> Queued:
    def look() -> Queued | None:
        found = rented.queued(request)
        return found if found and found.refused else None

    return eventually(look)  # type: ignore[return-value]


def is_withdrawn(rented: Rented, request: Request) -> None:
    rented.provider.withdraw([request.launch_id])
    rented.provider.withdraw([request.launch_id])

    def gone() -> bool:
        listing = rented.provider.list_machines()
        rented.provider.tidy()
        living = [each for each in listing.machines if each.ended_s is None]
        return not living and not listing.queued and not rented.left()

    eventually(gone)


def test_no_room_and_then_some(rented: Rented, cluster: Control) -> None:
    request = rented.request(resources={"example.com/chip": "4"})
    assert rented.provider.launch(request, 1) == ()
    found = waiting(rented, request, "Insufficient example.com/chip")
    assert not found.refused
    cluster.advance(86_400)
    assert not waiting(rented, request, "Insufficient").refused, "it may wait for days"
    cluster.add("chips", {"example.com/chip": "4"})
    eventually(lambda: rented.machines(request))
    assert rented.queued(request) is None


def test_what_waits_is_withdrawn(rented: Rented) -> None:
    request = rented.request(2, resources={"example.com/none": "1"})
    rented.provider.launch(request, 1)
    waiting(rented, request, "Insufficient")
    is_withdrawn(rented, request)


@pytest.mark.parametrize("image", ["registry.example.com/team/missing:1", "Not An Image"])
def test_an_image_that_cannot_be_had(rented: Rented, cluster: Control, image: str) -> None:
    request = rented.request(image=image)
    rented.provider.launch(request, 1)
    eventually(lambda: rented.queued(request))
    cluster.advance(waits.IMAGE_RETRIED_S + 1)
    found = refused(rented, request)
    assert found.refused in ("not_found", "not_allowed")
    assert "image" in found.reason
    assert image in found.reason
    assert not rented.machines(request)
    is_withdrawn(rented, request)


def test_a_quota_that_leaves_no_room(rented: Rented, cluster: Control) -> None:
    """The Job is made, and its pods are not: only an event says why."""
    hard = {"spec": {"hard": {"requests.cpu": "0"}}}
    meta = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    cluster.make(f"/api/v1/namespaces/{rented.namespace}/resourcequotas", meta | hard)
    request = rented.request()
    rented.provider.launch(request, 1)
    cluster.advance(waits.PODS_S + 1)
    found = refused(rented, request)
    assert found.refused == "no_quota"
    assert "exceeded quota" in found.reason


def test_a_level_of_pod_security_that_does_not_allow_it(rented: Rented, cluster: Control) -> None:
    rented.provider = rented.again(host_network=True)
    request = rented.request()
    rented.provider.launch(request, 1)
    cluster.advance(waits.PODS_S + 1)
    found = refused(rented, request)
    assert found.refused == "not_allowed"
    assert "violates PodSecurity" in found.reason


def test_part_of_a_gang_gives_its_nodes_back(rented: Rented, cluster: Control) -> None:
    cluster.add("alone", {"example.com/part": "1"})
    request = rented.request(2, resources={"example.com/part": "1"})
    rented.provider.launch(request, 1)
    found = waiting(rented, request, "1 of 2 pods have nodes")
    assert not found.refused
    cluster.advance(waits.PARTLY_S + waits.PARTLY_MORE_S)
    found = refused(rented, request)
    assert found.refused == "no_capacity"
    assert "Insufficient example.com/part" in found.reason
    machines = rented.machines(request)
    assert [each.rank for each in machines if each.ended_s is None], "what has begun is paid for"
    is_withdrawn(rented, request)


def test_two_gangs_do_not_hold_each_other_up_for_ever(rented: Rented, cluster: Control) -> None:
    """Each has one of two nodes. They give up at different times, so one of them gets both."""
    held = {"key": "example.com/held", "effect": "NoSchedule"}
    wanted = {"resources": {"example.com/pair": "1"}}
    owner = labels.owner_of(rented.owner)
    legs = sorted(
        (1, 2), key=lambda leg: waits.patience_s(labels.name_of(owner, rented.request(leg=leg)))
    )
    first = rented.request(2, leg=legs[0], **wanted)
    other = rented.request(2, leg=legs[1], tolerations=[{**held, "operator": "Exists"}], **wanted)
    cluster.add("pair-0", {"example.com/pair": "1"})
    rented.provider.launch(first, 1)
    waiting(rented, first, "1 of 2 pods have nodes")
    cluster.add("pair-1", {"example.com/pair": "1"}, taints=[held])
    rented.provider.launch(other, 1)
    waiting(rented, other, "1 of 2 pods have nodes")
    given_up: list[Request] = []
    for _ in range(100):
        cluster.advance(5)
        given_up = [
            each for each in (first, other) if (said := rented.queued(each)) and said.refused
        ]
        if given_up:
            break
    assert given_up == [first], "and not both at the same time"
    rented.provider.withdraw([first.launch_id])
    eventually(lambda: len(rented.machines(other)) == 2)


def test_a_rank_that_ends_before_all_have_begun(rented: Rented, cluster: Control) -> None:
    cluster.add("half", {"example.com/half": "1"})
    request = rented.request(2, resources={"example.com/half": "1"})
    rented.provider.launch(request, 1)
    waiting(rented, request, "1 of 2 pods have nodes")
    pods = cluster.objects("pods", rented.namespace)
    begun = next(each for each in pods if each["spec"].get("nodeName"))
    cluster.cordon("half")
    cluster.oom(rented.namespace, begun["metadata"]["name"])
    found = refused(rented, request)
    assert found.refused == "not_allowed"
    assert "more memory" in found.reason
    (machine,) = rented.machines(request)
    assert machine.ended_s is not None
    is_withdrawn(rented, request)


class TestKueue:
    @pytest.fixture(autouse=True)
    def queue(self, rented: Rented, cluster: Control) -> None:
        cluster.dials(kueue=True)
        self.name = f"queue-{rented.namespace}"[:60]
        cluster.queue(self.name, namespace=rented.namespace, quota={"cpu": "0", "memory": "1Ti"})
        rented.provider = rented.again(queue="queue")

    def test_it_is_admitted_later(self, rented: Rented, cluster: Control) -> None:
        request = rented.request(2)
        rented.provider.launch(request, 1)
        found = waiting(rented, request, "Kueue: ")
        assert "quota" in found.reason
        assert not found.refused
        cluster.queue(self.name, namespace=rented.namespace, quota={"cpu": "8", "memory": "1Ti"})
        assert len(eventually(lambda: rented.machines(request))) == 2

    def test_it_is_taken_back(self, rented: Rented, cluster: Control) -> None:
        cluster.queue(self.name, namespace=rented.namespace, quota={"cpu": "8", "memory": "1Ti"})
        request = rented.request(2)
        rented.launched(request)
        cluster.queue(self.name, namespace=rented.namespace, quota={"cpu": "0", "memory": "1Ti"})
        (job,) = cluster.names("jobs.batch", rented.namespace)
        cluster.evict_workload(rented.namespace, job)
        ended = [rented.ended(request, rank) for rank in (0, 1)]
        assert {each.ended_by for each in ended} == {"taken"}

        def tidied() -> bool:
            rented.provider.list_machines()
            rented.provider.tidy()
            return not cluster.names("jobs.batch", rented.namespace)

        eventually(tidied)

    def test_a_queue_that_is_not_there(self, rented: Rented) -> None:
        rented.provider = rented.again(queue="another")
        request = rented.request()
        rented.provider.launch(request, 1)
        assert refused(rented, request).refused == "not_found"

    def test_queues_are_found_whichever_version_kueue_has(
        self, rented: Rented, cluster: Control
    ) -> None:
        client = Client("test")
        assert asking.queues(client, rented.namespace) == ["queue"]
        for lacking in (1, 2):
            cluster.fail("list localqueues", "NotFound", status=404, count=lacking)
            found = asking.queues(client, rented.namespace)
            assert found == (["queue"] if lacking == 1 else [])

    @pytest.mark.parametrize(
        ("name", "level", "words"),
        [("queue", "ok", "Kueue's queue queue"), ("other", "broken", "LocalQueue other is not")],
    )
    def test_doctor_looks_for_it(
        self, rented: Rented, cluster: Control, name: str, level: str, words: str
    ) -> None:
        made = footprint(cluster, rented.namespace, queue=name)
        found = checks.checks(made, known=True, store_url=rented.owner)
        (about,) = [each for each in found if words in each.what]
        assert about.level == level
        if level == "broken":
            assert "get localqueues" in (about.todo or "")


class TestJobSet:
    @pytest.fixture(autouse=True)
    def jobsets(self, rented: Rented, cluster: Control) -> None:
        cluster.dials(jobset=True)
        rented.provider = rented.again(jobset=True)

    def test_a_leg_is_a_jobset(self, rented: Rented, cluster: Control) -> None:
        request = rented.request(2)
        machines = rented.launched(request)
        assert [each.rank for each in machines] == [0, 1]
        assert cluster.names("jobsets.jobset.x-k8s.io", rented.namespace)
        made = footprint(cluster, rented.namespace, jobset=True)
        assert rented.pod(1) in shell.command(made, machines[1], "", ["nvidia-smi"])
        rented.provider.terminate([machines[0].machine_id])
        rented.ended(request)
        assert [each.rank for each in rented.machines(request) if each.ended_s is None] == [1]
        rented.provider.terminate([machines[1].machine_id])
        rented.ended(request, 1)

        def tidied() -> bool:
            rented.provider.list_machines()
            rented.provider.tidy()
            return not rented.left()

        eventually(tidied)


def test_with_volcano_no_pod_has_a_node_before_all_have(rented: Rented, cluster: Control) -> None:
    cluster.dials(volcano=True)
    rented.provider = rented.again(volcano=True)
    cluster.add("gang-0", {"example.com/gang": "1"})
    request = rented.request(2, resources={"example.com/gang": "1"})
    rented.provider.launch(request, 1)
    eventually(lambda: len(_pods(rented)) == 2)
    found = waiting(rented, request, "gang")
    assert not found.refused
    assert not any(each["spec"].get("nodeName") for each in _pods(rented)), "it holds none of them"
    cluster.add("gang-1", {"example.com/gang": "1"})
    assert len(eventually(lambda: rented.machines(request))) == 2


def test_with_gates_no_pod_has_a_node_before_all_have(
    rented: Rented, cluster: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two gangs of two find three nodes: one has two of them, and the other holds none."""
    monkeypatch.setattr(gatekeeper, "LOOKS_S", 0.0)
    rented.provider = rented.again(gates=True)
    chip = {"example.com/gated": "1"}
    for number in range(3):
        cluster.add(f"gated-{number}", chip)
    gangs = [rented.request(2, leg=leg, resources=chip) for leg in (1, 2)]
    for request in gangs:
        rented.provider.launch(request, 1)
    eventually(lambda: len(_pods(rented)) == 4)

    def begun(several: list[Request]) -> list[Request]:
        rented.provider.list_machines()
        rented.provider.tidy()
        return [each for each in several if len(rented.machines(each)) == 2]

    (first,) = eventually(lambda: begun(gangs))
    (second,) = [each for each in gangs if each is not first]
    found = waiting(rented, second, "its 2 pods are held back until all of them fit")
    assert "there is room for 1" in found.reason
    held = [each for each in _pods(rented) if each["spec"].get("schedulingGates")]
    assert len(held) == 2
    assert not any(each["spec"].get("nodeName") for each in held)
    rented.provider.terminate([each.machine_id for each in rented.machines(first)])
    eventually(lambda: begun([second]))
    assert cluster.calls("patch pods"), "which is in the Role of clusters that are set up so"


def _pods(rented: Rented) -> list[dict[str, Any]]:
    return rented.control.objects("pods", rented.namespace)


def test_gpus_of_a_spot_node_are_waited_for_in_words(rented: Rented) -> None:
    request = rented.request(3, **GPUS)
    rented.provider.launch(request, 1)
    waiting(rented, request, "Insufficient nvidia.com/gpu")
    is_withdrawn(rented, request)
    assert rented.provider.launch(rented.request(1, leg=2), 1) == ()
