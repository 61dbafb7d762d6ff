"""Node pools of managed Kubernetes, as Terraform's module and as Pulumi's program: by the schemas
of the clouds' providers, and by pods of `export kubernetes`, which have to find a place there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.export import asking
from tests.providers.aws.tf_check import Schema, faults
from tests.providers.aws.tf_text import Listed, Literal, Mapped, read
from tests.providers.azure.tf_schema import schema as azurerm
from tests.providers.gcp.tf_schema import schema as google
from tradewind.export import making
from tradewind.export.asked import Asked
from tradewind.export.exported import Refused

HERE = {"cluster": "research"}
CASES = [
    ("pretrain-1.3b", "aws"), ("tiny-gpt", "aws"), ("serve-chat", "aws"),
    ("pretrain-1.3b", "gcp"), ("continue-70b-eu", "gcp"), ("serve-chat", "gcp"),
    ("continue-70b-eu", "azure"), ("lora-8b-overnight", "azure"), ("serve-chat", "azure"),
]  # fmt: skip
POOLS = {
    "aws": "aws_eks_node_group", "gcp": "google_container_node_pool",
    "azure": "azurerm_kubernetes_cluster_node_pool",
}  # fmt: skip
LABELS = {"aws": "eks", "gcp": "gke", "azure": "aks"}


def module(asked: Asked) -> str:
    files = making.made("terraform", asked, HERE).files
    assert "start.sh" not in files
    return "".join(file.text for path, file in files.items() if path.endswith(".tf"))


def plain(value: Any) -> Any:
    match value:
        case Literal("number", text):
            return int(text)
        case Literal("boolean", text):
            return text == "true"
        case Literal(_, text):
            return text
        case Listed(items):
            return [plain(each) for each in items]
        case Mapped(items):
            return {key: plain(each) for key, each in items.items()}
    return None


def pools(text: str, cloud: str) -> list[Any]:
    return [each for each in read(text).blocks if POOLS[cloud] in each.labels]


def nodes(text: str, cloud: str) -> Iterator[tuple[bool, dict[str, str], set[tuple[str, str]]]]:
    """Of each pool: whether it is spot, its nodes' labels and taints, those of the cloud too."""
    for pool in pools(text, cloud):
        inner = {each.kind: each for each in pool.blocks}
        has = {name: plain(each) for name, each in pool.attributes.items()}
        if cloud == "gcp":
            config = inner["node_config"]
            spot = plain(config.attributes["spot"])
            (card,) = [each for each in config.blocks if each.kind == "guest_accelerator"]
            labels = {"cloud.google.com/gke-accelerator": plain(card.attributes["type"])}
            labels |= {"cloud.google.com/gke-spot": "true"} if spot else {}
            blocks = [each for each in config.blocks if each.kind == "taint"]
            taints = {("nvidia.com/gpu", "present")}
        elif cloud == "aws":
            spot, labels, taints = has["capacity_type"] == "SPOT", has["labels"], set()
            blocks = [each for each in pool.blocks if each.kind == "taint"]
        else:
            spot, labels, blocks = has["priority"] == "Spot", has["node_labels"], []
            taints = {tuple(each.removesuffix(":NoSchedule").split("=")) for each in
                      has["node_taints"]}  # fmt: skip
        for each in blocks:
            taints.add((plain(each.attributes["key"]), plain(each.attributes["value"])))
        yield spot, labels, taints


def fits(pod: dict[str, Any], labels: dict[str, str], taints: set[tuple[str, str]]) -> bool:
    """As Kubernetes' scheduler decides."""
    required = pod.get("affinity", {}).get("nodeAffinity", {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []}
    )  # fmt: skip
    for term in required["nodeSelectorTerms"]:
        for each in term["matchExpressions"]:
            if labels.get(each["key"]) not in each["values"]:
                return False
    return all(
        any(
            each["key"] == key and (each["operator"] == "Exists" or each.get("value") == value)
            for each in pod["tolerations"]
        )
        for key, value in taints
    )


@pytest.mark.parametrize(("name", "cloud"), CASES)
def test_pods_of_the_same_plan_find_a_place_there(name: str, cloud: str) -> None:
    asked = asking.at(name, cloud)
    made = making.made("kubernetes", asked, {"labels": LABELS[cloud]}).files
    objects = [
        each
        for path, file in made.items() if path in ("job.yaml", "service.yaml")
        for each in yaml.safe_load_all(file.text)
    ]  # fmt: skip
    pod = objects[0]["spec"]["template"]["spec"]
    found = list(nodes(module(asked), cloud))
    markets = (
        set(asked.plan.markets) if asked.plan is not None else
        {m for hour in asked.bought.hours  # type: ignore[union-attr]
         for m, n in (("spot", hour.spot), ("on_demand", hour.on_demand)) if n}
    )  # fmt: skip
    assert {"spot" if spot else "on_demand" for spot, _, _ in found} == markets
    for _, labels, taints in found:
        assert fits(pod, labels, taints), (labels, taints, pod["tolerations"])
        assert taints, "pods that need no GPU would go there"
        assert not fits({**pod, "tolerations": []}, labels, taints)


@pytest.mark.parametrize(("name", "cloud"), CASES)
def test_their_providers_know_all_of_it(name: str, cloud: str) -> None:
    schemas: dict[str, Schema] = {"gcp": google(), "azure": azurerm()}
    if cloud in schemas:
        text = module(asking.at(name, cloud))
        assert faults(text, schemas[cloud]) == []
        assert faults(text.replace("max_count ", "most ").replace("total_max_node", "most"),
                      schemas[cloud])  # fmt: skip


@pytest.mark.system
@pytest.mark.parametrize("name", [name for name, cloud in CASES if cloud == "aws"])
def test_amazons_provider_knows_all_of_it(name: str) -> None:
    from tests.providers.aws.tf_schema import schema

    text = module(asking.at(name, "aws"))
    assert faults(text, schema()) == []
    found = faults(text.replace("[scaling_config[0]", "[scaling[0]"), schema())
    assert [each for each in found if "ignore_changes" in each]


@pytest.mark.system
def test_hashicorps_parser_reads_it_and_its_formatter_leaves_it() -> None:
    from tests.providers.aws.test_printed_terraform import told

    texts = [
        file.text
        for name, cloud in CASES
        for path, file in making.made("terraform", asking.at(name, cloud), HERE).files.items()
        if path.endswith(".tf")
    ]
    assert told(texts) == texts


@pytest.mark.parametrize(("name", "cloud"), CASES)
def test_they_are_as_planned_and_end_at_none(name: str, cloud: str) -> None:
    asked = asking.at(name, cloud)
    text = module(asked)
    most = asked.plan.nodes if asked.plan is not None else max(
        hour.spot + hour.on_demand
        for hour in asked.bought.hours  # type: ignore[union-attr]
    )  # fmt: skip
    told = [
        plain(each.attributes["default"])
        for each in read(text).blocks
        if each.kind == "variable" and each.labels[0].startswith("most_")
    ]
    assert max(told) <= most <= sum(told)
    assert f'"{asked.bought.instance_type.partition("+")[0]}"' in text
    for pool in pools(text, cloud):
        inner = {each.kind: each.attributes for each in pool.blocks}
        scaling = {
            "aws": inner.get("scaling_config"), "gcp": inner.get("autoscaling"),
            "azure": pool.attributes,
        }[cloud]  # fmt: skip
        least = {"aws": "min_size", "gcp": "total_min_node_count", "azure": "min_count"}[cloud]
        assert plain(scaling[least]) == 0


def test_nodes_of_a_cluster_in_pulumis_words() -> None:
    for name, cloud in CASES:
        made = making.made("pulumi", asking.at(name, cloud), HERE).files
        program = made["__main__.py"].text
        tree = ast.parse(program)
        names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        assert not names & {"base64", "hashlib", "HERE"}
        assert program.count("NodePool(") + program.count("NodeGroup(") == len(
            pools(module(asking.at(name, cloud)), cloud)
        )
    assert 'ignore_changes=["scalingConfig.desiredSize"]' in making.made(
        "pulumi", asking.at("pretrain-1.3b", "aws"), HERE
    ).files["__main__.py"].text  # fmt: skip


@pytest.mark.parametrize("kind", ["terraform", "pulumi"])
def test_what_has_no_place_in_a_cluster_is_refused(kind: str) -> None:
    chat, train = asking.at("serve-chat", "aws"), asking.at("pretrain-1.3b", "aws")
    with pytest.raises(Refused, match="served") as caught:
        making.made(kind, chat)
    assert "--set cluster=NAME" in (caught.value.hint or "")
    with pytest.raises(Refused, match=r"for runpod, and .* knows node pools of aws, gcp, azure"):
        making.made(kind, asking.example("pretrain-1.3b"), HERE)
    with pytest.raises(Refused, match="TPU"):
        making.made(kind, asking.example("jax-tpu"), HERE)
    assert train.plan is not None
    assert chat.serving is not None
    with pytest.raises(Refused, match="reserved"):
        making.made(kind, replace(train, plan=replace(train.plan, markets=("reserved",))), HERE)
    (pool,) = chat.serving.pools
    two = (pool, replace(pool, provider="gcp"))
    with pytest.raises(Refused, match=r"aws/.* and gcp/.*, and a cluster is in one region"):
        making.made(kind, replace(chat, serving=replace(chat.serving, pools=two)), HERE)
    two = (pool, replace(pool, instance_type="g6e.2xlarge"))
    made = making.made(kind, replace(chat, serving=replace(chat.serving, pools=two)), HERE)
    assert "most_spot_2" in "".join(file.text for file in made.files.values())
