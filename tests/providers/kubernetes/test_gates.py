"""When a gang is let go. Pure: every state of a cluster can be written down."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.kubernetes.nodes import TYPE, h100
from tests.providers.kubernetes.nodes import pod as running
from tradewind.providers.kubernetes.gates import GATE, rooms

GPUS = {"nvidia.com/gpu": "8"}


def waiting(name: str, count: int = 1, *, gate: bool = True, at: int = 0, **spec: Any) -> list[Any]:
    return [
        {
            "metadata": {
                "name": f"{name}-{rank}",
                "uid": f"{name}-{rank}",
                "creationTimestamp": f"2026-01-01T00:00:{at:02}Z",
            },
            "spec": {
                "containers": [{"resources": {"requests": GPUS}}],
                **({"schedulingGates": [{"name": GATE}]} if gate else {}),
                **spec,
            },
            "status": {"phase": "Pending"},
        }
        for rank in range(count)
    ]


def told(nodes: list[Any], *pods: list[Any]) -> dict[str, tuple[int, bool]]:
    every = [each for several in pods for each in several]
    gangs: dict[str, list[str]] = {}
    for each in every:
        if each["spec"].get("schedulingGates"):
            uid = each["metadata"]["uid"]
            gangs.setdefault(uid.rpartition("-")[0], []).append(uid)
    return rooms(nodes, every, gangs)


TWO = [h100("a"), h100("b")]


def test_it_goes_when_all_of_it_fits() -> None:
    assert told(TWO, waiting("g", 2)) == {"g": (2, True)}
    assert told(TWO, waiting("g", 2), [running("a", GPUS)]) == {"g": (1, False)}
    assert told(TWO, waiting("g", 2), [running("a", GPUS, phase="Succeeded")]) == {"g": (2, True)}


def test_two_of_them_are_not_promised_the_same_nodes() -> None:
    """The older one comes first, whatever they are called; one that fits passes one that does
    not."""
    assert told(TWO, waiting("a", 2, at=9), waiting("b", 2)) == {"a": (0, False), "b": (2, True)}
    one = [*TWO, h100("c", gpus="4")]
    assert told(one, waiting("a", 2), [running("a", GPUS)], waiting("b", 1, at=9)) == {
        "a": (1, False),
        "b": (1, True),
    }


def test_what_is_let_go_and_has_no_node_yet_is_counted() -> None:
    before = waiting("other", 1, gate=False)
    assert told(TWO, before, waiting("g", 2)) == {"g": (1, False)}
    elsewhere = waiting("other", 1, gate=False, nodeSelector={TYPE: "g5.xlarge"})
    assert told(TWO, elsewhere, waiting("g", 2)) == {"g": (2, True)}, "it would not go there"


def test_one_that_the_empty_nodes_could_not_take_is_let_go_for_an_autoscaler() -> None:
    assert told(TWO, waiting("g", 3)) == {"g": (2, True)}
    assert told([], waiting("g", 2)) == {"g": (0, True)}
    assert told([h100("a"), h100("b", cordoned=True)], waiting("g", 2)) == {"g": (1, True)}


def test_a_pod_that_no_list_has_yet_holds_all_of_them() -> None:
    assert rooms(TWO, waiting("g", 1), {"g": ["g-0", "g-1"]}) == {"g": (0, False)}


TAINT = {"key": "team", "value": "red", "effect": "NoSchedule"}
NEAR = {"key": "zone", "operator": "In", "values": ["a"]}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, False),
        ({"tolerations": [{"key": "team", "operator": "Exists"}]}, True),
        ({"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}, True),
        ({"tolerations": [{"key": "team", "value": "red", "effect": "NoSchedule"}]}, True),
        ({"tolerations": [{"key": "team", "value": "blue"}]}, False),
        ({"tolerations": [{"key": "team", "operator": "Exists", "effect": "NoExecute"}]}, False),
    ],
)
def test_taints(spec: dict[str, Any], fits: bool) -> None:
    found = told([h100("a", taints=(TAINT,)), h100("b")], waiting("g", 2, **spec))
    assert found["g"][0] == 1 + fits


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (NEAR, True),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "DoesNotExist"}, False),
    ],
)
def test_affinities(rule: dict[str, Any], fits: bool) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    must = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    found = told([h100("a", {"zone": "a"})], waiting("g", affinity={"nodeAffinity": must}))
    assert found["g"][0] == int(fits)
