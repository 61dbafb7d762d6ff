"""Offers from what Slurm 22.05.8 has printed (recorded/)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import WAY
from tests.providers.slurm.test_parsing import recorded
from tradewind.base.errors import InvalidValue
from tradewind.model.run import Request
from tradewind.providers.slurm import cluster, names, script, shapes
from tradewind.providers.slurm.cluster import Sight
from tradewind.providers.slurm.footprint import Cluster
from tradewind.providers.slurm.login import Answer
from tradewind.providers.slurm.script import Asked
from tradewind.providers.slurm.wish import checked_url, wish_of

CLUSTER = Cluster(user="me", folder="/home/me/.tradewind/slurm")


def sight(**more: str) -> Sight:
    told = {name: recorded(name) for name in ("config", "partitions", "nodes", "assoc", "qos")}
    told |= {"who": "me", "groups": "users", "home": "/home/me", "book": ""} | more
    return cluster.read({name: Answer(0, text, "") for name, text in told.items()}, "box")


def found(seen: Sight, on: Cluster = CLUSTER) -> dict[str, shapes.Shape]:
    return {each.name: each for each in shapes.shapes(seen, on)}


def test_partitions_are_kinds_of_machines() -> None:
    there = found(sight())
    assert set(there) == {"gpu.a100x1", "gpu.a100x2", "scavenge.a100x1", "scavenge.a100x2"}
    whole = there["gpu.a100x2"]
    assert (whole.accelerator, whole.machines, whole.free) == ("a100", 4, 3)
    assert whole.asked == Asked(
        partition="gpu", gres="gpu:a100:2", cpus=4, mem_mb=4000, limit_s=7200
    )
    assert there["gpu.a100x1"].free == 4
    assert not whole.spot
    taken = there["scavenge.a100x2"]
    assert (taken.spot, taken.grace_s) == (True, 10)


def test_a_price_by_billing_weights() -> None:
    (whole,) = [
        each
        for each in shapes.offering("lab", sight(), replace(CLUSTER, unit_usd=0.1)).offers
        if each.instance_type == "gpu.a100x2"
    ]
    assert whole.usd_hour == pytest.approx(0.1 * (4 + 0.25 * 4000 / 1024 + 20))
    assert shapes.offering("lab", sight(), CLUSTER).offers[0].usd_hour is None


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("AllowGroups=ALL", "AllowGroups=vip", "groups vip"),
        ("AllowAccounts=ALL", "AllowAccounts=bio", "accounts bio"),
        ("State=UP", "State=DOWN", "takes no jobs"),
        ("MaxTime=02:00:00", "MaxTime=00:05:00", "time limit is 5 minutes"),
    ],
)
def test_partitions_that_do_not_admit(before: str, after: str, why: str) -> None:
    seen = sight(partitions=recorded("partitions").replace(before, after))
    on = replace(CLUSTER, account="physics")
    assert "gpu.a100x2" not in found(seen, on)
    assert why in shapes.why_not(seen, on, seen.partitions["gpu"])


def test_gpus_of_no_named_type_are_known_by_a_feature_or_by_what_was_told() -> None:
    plain = recorded("nodes").replace("gpu:a100:2", "gpu:2")
    assert found(sight(nodes=plain))["gpu.gpux2"].accelerator == "a100"
    bare = plain.replace("AvailableFeatures=a100,ib", "AvailableFeatures=(null)")
    assert found(sight(nodes=bare))["gpu.gpux2"].accelerator == ""
    told = replace(CLUSTER, accelerators={"gpu": "h200"})
    assert found(sight(nodes=bare), told)["gpu.gpux2"].accelerator == "h200"
    assert found(sight(nodes=bare))["gpu.gpux2"].asked.gres == "gpu:2"


def test_nodes_that_are_down_or_drained_are_not_offered() -> None:
    nodes = recorded("nodes").splitlines()
    nodes[1] = nodes[1].replace("State=IDLE", "State=IDLE+DRAIN")
    nodes[2] = nodes[2].replace("State=IDLE", "State=DOWN*")
    assert found(sight(nodes="\n".join(nodes)))["gpu.a100x2"].machines == 2


def test_limits_of_qos() -> None:
    limited = sight(qos="normal|00:00:00|||||\nlong|00:01:00||01:00:00||gres/gpu=4|")
    on = replace(CLUSTER, qos="long")
    assert found(limited, on)["gpu.a100x2"].limit_s == 3600
    assert shapes.most_gpus(limited, on, "gpu") == 4
    assert shapes.most_gpus(limited, CLUSTER, "gpu") is None


def test_preemption_by_qos() -> None:
    config = recorded("config").replace("preempt/partition_prio", "preempt/qos")
    qos = "normal|00:00:00|scavenger||||\nscavenger|00:02:00|||||"
    seen = sight(config=config, qos=qos)
    assert shapes.preempted(seen, replace(CLUSTER, qos="scavenger"), seen.partitions["gpu"]) == (
        True,
        120,
    )
    assert shapes.preempted(seen, CLUSTER, seen.partitions["gpu"]) == (False, 0)


def test_a_cluster_without_accounting_says_so() -> None:
    config = recorded("config").replace("accounting_storage/slurmdbd", "accounting_storage/none")
    with pytest.raises(InvalidValue, match="no accounting"):
        sight(config=config)


def request(hard_stop_s: int = 3600) -> Request:
    return Request(
        launch_id="run-1-2",
        run_id="run-1",
        leg=2,
        way=replace(WAY, nodes=2),
        hard_stop_s=hard_stop_s,
    )


@pytest.mark.parametrize(
    ("limit_s", "hard_stop_s", "minutes", "up_s"),
    [(0, 3600, 70, 3600), (7200, 3600, 70, 3600), (7200, 86_400, 120, 7200)],
)
def test_time_is_asked_for_as_it_is_needed_and_as_the_partition_allows(
    limit_s: int, hard_stop_s: int, minutes: int, up_s: int
) -> None:
    asked = Asked(partition="gpu", gres="gpu:1", limit_s=limit_s)
    assert script.minutes(asked, hard_stop_s) == minutes
    assert script.up_s(asked, hard_stop_s) == up_s
    name = names.made("abcdefgh", request(hard_stop_s))
    flags = script.flags(CLUSTER, asked, request(hard_stop_s), name, "s3://bucket")
    assert f"--time={minutes}" in flags
    assert "--no-requeue" in flags
    assert "--signal=B:TERM@120" in flags


def test_names_are_read_back() -> None:
    name = names.made("abcdefgh", request())
    assert names.parsed(name.text) == name
    assert name.launch_id == "run-1-2"
    assert name.stem("lab") == "slurm-lab-abcdefgh-run-1-2"
    for other in ("tw-abc-run-1", "sweep", "tw-abcdefgh-run-01", f"tw-abcdefgh-{'x' * 300}-1"):
        assert names.parsed(other) is None
    with pytest.raises(InvalidValue, match="cannot be named"):
        names.made("abcdefgh", replace(request(), run_id="a b", launch_id="a b-2"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"account": "a b"}, "no name of Slurm's"),
        ({"partition": ("x;y",)}, "no name of Slurm's"),
        ({"folder": "jobs"}, "no absolute path"),
        ({"accelerator": ("a100",)}, "no PARTITION=NAME"),
        ({"unit_price": "cheap"}, "is no price"),
        ({"prepare": ("a\nb",)}, "more than one line"),
        ({"constraint": "a b"}, "none that sbatch takes"),
    ],
)
def test_settings_that_are_wrong(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        wish_of("s3://bucket", (), settings)


@pytest.mark.parametrize("url", ["memory://x", "file://", "relative/folder", "s3://"])
def test_stores_that_nodes_cannot_reach(url: str) -> None:
    with pytest.raises(InvalidValue, match="cannot reach"):
        checked_url(url)


HOURS = "root|||cpu=9\n physics||gres/gpu=60|gres/gpu=61\n  physics|me||gres/gpu=61\n"


def test_without_hours_nothing_is_offered_where_limits_are_enforced() -> None:
    enforced = recorded("config") + "\nAccountingStorageEnforce = associations,limits,safe\n"
    seen = sight(config=enforced, hours=HOURS, own="root")
    assert found(seen), "another account pays"
    physics = replace(CLUSTER, account="physics")
    assert found(seen, physics) == {}
    (warning,) = shapes.offering("lab", seen, physics).warnings
    assert "no hours are left in the account physics: 61 of 60 minutes of gres/gpu" in warning
    assert found(sight(config=enforced, hours=HOURS, own="physics")) == {}, "it is the user's own"
    assert found(sight(hours=HOURS), physics), "limits are figures here"


def test_a_cluster_whose_slurm_is_too_old() -> None:
    version = "SLURM_VERSION           = "
    old = recorded("config").replace(f"{version}22.05.8", f"{version}19.05.5")
    with pytest.raises(InvalidValue, match=r"box has Slurm 19\.05\.5; 20\.11 or newer") as caught:
        sight(config=old)
    assert "sinfo --version" in (caught.value.hint or "")
