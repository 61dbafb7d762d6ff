"""How pods end, and what is said of it: by whom, when, why; and what is left then."""

from __future__ import annotations

import pytest

from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually
from tests.providers.kubernetes.machines import GPUS, Rented
from tradewind.base import clock
from tradewind.model.run import JOB, TAKEN
from tradewind.providers.kubernetes import listing
from tradewind.providers.kubernetes.listing import INERT_S
from tradewind.providers.kubernetes.provider import OVER_S
from tradewind.providers.kubernetes.ranks import STUCK_S


def is_tidied(rented: Rented) -> None:
    """Two passes later nothing is left of it."""

    def tidied() -> bool:
        rented.provider.list_machines()
        rented.provider.tidy()
        return not rented.left()

    eventually(tidied)


def test_one_that_ends_well(rented: Rented) -> None:
    request = rented.request()
    (machine,) = rented.launched(request)
    rented.control.finish(rented.namespace, rented.pod())
    ended = rented.ended(request)
    assert (ended.ended_by, ended.ended_why) == ("", "")
    assert ended.ended_s is not None
    assert machine.launched_s <= ended.ended_s <= rented.control.now()
    is_tidied(rented)


def test_out_of_memory_is_the_job_s_own_doing(rented: Rented) -> None:
    request = rented.request(2)
    rented.launched(request)
    rented.control.oom(rented.namespace, rented.pod(1))
    ended = rented.ended(request, 1)
    assert ended.ended_by == JOB
    assert "more memory" in ended.ended_why
    other = next(each for each in rented.machines(request) if each.rank == 0)
    assert other.ended_s is None, "the others stay, to be told of it"


def test_a_code_is_told_with_the_last_line(rented: Rented) -> None:
    request = rented.request()
    rented.launched(request)
    rented.control.finish(rented.namespace, rented.pod(), 3)
    ended = rented.ended(request)
    assert ended.ended_by == ""
    assert "code 3" in ended.ended_why


def test_an_eviction_by_the_api_deletes_the_pod_and_is_remembered(rented: Rented) -> None:
    request = rented.request()
    rented.launched(request)
    rented.control.evict(rented.namespace, rented.pod())
    ended = rented.ended(request)
    assert ended.ended_by == TAKEN
    eventually(lambda: not rented.control.names("pods", rented.namespace))
    assert rented.machines(request) == [ended], "as it was first told"
    assert list(rented.again().list_machines().machines) == [ended], "to other controllers too"
    is_tidied(rented)


def test_an_eviction_by_the_node_leaves_the_pod(rented: Rented) -> None:
    request = rented.request()
    rented.launched(request)
    rented.control.evict(rented.namespace, rented.pod(), by_api=False)
    ended = rented.ended(request)
    assert ended.ended_by == TAKEN
    assert "low on resource" in ended.ended_why


def test_a_node_that_gives_notice(rented: Rented, cluster: Control) -> None:
    cluster.add("noticed", {"cpu": "4", "memory": "8Gi"}, {"own": "noticed"})
    request = rented.request(selector={"own": "noticed"})
    rented.launched(request)
    cluster.notice("noticed", 0.2)
    ended = rented.ended(request)
    assert ended.ended_by == TAKEN
    assert ended.ended_why
    is_tidied(rented)


@pytest.mark.parametrize(("few", "at_once"), [(listing.FEW_NODES, True), (0, False)])
def test_a_node_that_is_marked_before_it_goes(
    rented: Rented, cluster: Control, monkeypatch: pytest.MonkeyPatch, few: int, at_once: bool
) -> None:
    """As Karpenter marks one at a spot notice, whose pods it does not evict where they say that
    they are not to be disrupted. The pod there is told, and its neighbour is not."""
    monkeypatch.setattr(listing, "FEW_NODES", few)
    seconds = 0.0
    monkeypatch.setattr(clock, "monotonic", lambda: seconds)
    node = f"marked-{int(at_once)}"
    cluster.add(node, {"cpu": "100m", "memory": "8Gi"}, {"own": node})
    other = f"steady-{int(at_once)}"
    cluster.add(other, {"cpu": "100m", "memory": "8Gi"}, {"own": node})
    request = rented.request(2, selector={"own": node})
    rented.launched(request)
    ranks = {rented.node_of(rented.pod(rank)): rank for rank in (0, 1)}

    def passes(count: int) -> None:
        for _ in range(count):
            rented.provider.list_machines()
            rented.provider.tidy()

    cluster.cordon(other)
    cluster.taint(node, "example.com/team")
    cluster.taint(node, "karpenter.sh/disrupted", effect="PreferNoSchedule")
    passes(3)
    assert all(each.ended_s is None for each in rented.machines(request)), "none of it is a mark"
    cluster.taint(node, "karpenter.sh/disrupted")
    seconds += 0 if at_once else listing.MARKS_S / 2
    passes(2)
    if not at_once:
        assert len(rented.control.names("pods", rented.namespace)) == 2, (
            "it is looked at less often"
        )
        seconds += listing.MARKS_S
        passes(2)
    ended = rented.ended(request, ranks[node])
    assert ended.ended_by == TAKEN
    assert f"node {node} has the taint karpenter.sh/disrupted" in ended.ended_why
    (steady,) = [each for each in rented.machines(request) if each.rank == ranks[other]]
    assert steady.ended_s is None
    eventually(lambda: len(rented.control.names("pods", rented.namespace)) == 1)
    assert ended in rented.again().list_machines().machines, "to other controllers too"


@pytest.mark.parametrize("reads_nodes", [True, False])
def test_a_node_that_vanishes(rented: Rented, cluster: Control, reads_nodes: bool) -> None:
    """Whoever may read nodes sees it at once, others when its pods are collected."""
    node = f"vanishing-{int(reads_nodes)}"
    cluster.add(node, {"cpu": "4", "memory": "8Gi"}, {"own": node})
    rented.provider = rented.again(nodes=reads_nodes)
    request = rented.request(selector={"own": node})
    rented.launched(request)
    cluster.dials(quarantine_s=1000 if reads_nodes else 0)
    cluster.vanish(node)
    ended = rented.ended(request)
    assert ended.ended_by == TAKEN
    assert ("node is gone" if reads_nodes else "with its node") in ended.ended_why
    cluster.dials(quarantine_s=2)
    is_tidied(rented)


@pytest.mark.parametrize("reads_nodes", [True, False])
def test_a_node_that_falls_silent(rented: Rented, cluster: Control, reads_nodes: bool) -> None:
    """Its pods stay, Terminating: nobody there will say that they have ended."""
    node = f"silent-{int(reads_nodes)}"
    cluster.add(node, {"cpu": "4", "memory": "8Gi"}, {"own": node})
    rented.provider = rented.again(nodes=reads_nodes)
    request = rented.request(selector={"own": node})
    (machine,) = rented.launched(request)
    cluster.silent(node)
    rented.provider.terminate([machine.machine_id])
    assert rented.machines(request) == [machine], "it may live on for its grace"
    cluster.advance(STUCK_S + 10)
    assert rented.ended(request)
    is_tidied(rented)


def test_a_pod_that_somebody_deletes(rented: Rented) -> None:
    request = rented.request(2)
    rented.launched(request)
    path = f"/api/v1/namespaces/{rented.namespace}/pods/{rented.pod(1)}"
    rented.control.ask("DELETE", path)
    ended = rented.ended(request, 1)
    assert ended.ended_by == TAKEN
    assert "deleted" in ended.ended_why


def test_a_job_that_somebody_deletes(rented: Rented) -> None:
    """Its pods are machines for as long as they live."""
    request = rented.request()
    (machine,) = rented.launched(request)
    rented.control.dials(end_s=1000)
    try:
        (job,) = rented.control.names("jobs.batch", rented.namespace)
        path = f"/apis/batch/v1/namespaces/{rented.namespace}/jobs/{job}"
        body = {"propagationPolicy": "Background"}
        rented.control.ask("DELETE", path, body)
        eventually(lambda: not rented.control.names("jobs.batch", rented.namespace))
        assert rented.machines(request) == [machine]
        rented.provider.terminate([machine.machine_id])
    finally:
        rented.control.dials(end_s=0)
    rented.control.advance(1000)
    eventually(lambda: not rented.machines(request))
    eventually(lambda: not rented.left())


def test_a_hard_stop_of_the_cluster_s_own(rented: Rented) -> None:
    request = rented.request()
    rented.launched(request)
    rented.control.advance(request.hard_stop_s + 700)
    ended = rented.ended(request)
    assert ended.ended_by == ""
    assert "hard stop" in ended.ended_why


def test_a_namespace_that_is_deleted_under_us(rented: Rented) -> None:
    request = rented.request()
    rented.launched(request)
    rented.control.ask("DELETE", f"/api/v1/namespaces/{rented.namespace}")
    eventually(lambda: rented.namespace not in rented.control.names("namespaces"))
    assert not rented.machines(request)
    rented.provider.tidy()


def test_a_job_is_kept_until_its_end_can_be_known(rented: Rented, cluster: Control) -> None:
    """A pass that could not record it shall find it again."""
    request = rented.request()
    (machine,) = rented.launched(request)
    rented.provider.terminate([machine.machine_id])
    rented.ended(request)
    rented.provider.tidy()
    assert rented.machines(request), "by another pass perhaps"
    other = rented.again()
    other.list_machines()
    other.tidy()
    assert rented.machines(request), "it has just ended, to one that sees it for the first time"
    cluster.advance(OVER_S + 1)
    other = rented.again()
    other.list_machines()
    other.tidy()
    eventually(lambda: not rented.left())


def test_what_a_launch_left_that_was_cut_off_goes(rented: Rented, cluster: Control) -> None:
    request = rented.request(2)
    cluster.fail("create secrets", "Forbidden", status=403, message="secrets is forbidden")
    with pytest.raises(Exception, match="forbidden"):
        rented.provider.launch(request, 1)
    listing = rented.provider.list_machines()
    assert (listing.machines, listing.queued) == ((), ()), "it was never let go"
    rented.provider.tidy()
    assert rented.left()
    cluster.advance(INERT_S + 1)
    is_tidied(rented)


def test_gangs_take_whole_nodes_and_give_them_back(rented: Rented) -> None:
    first, second = rented.request(2, leg=1, **GPUS), rented.request(2, leg=2, **GPUS)
    bought = rented.launched(first)
    rented.provider.launch(second, 1)
    waits = eventually(lambda: rented.queued(second))
    assert waits
    rented.provider.terminate([each.machine_id for each in bought])
    eventually(lambda: len(rented.machines(second)) == 2)
