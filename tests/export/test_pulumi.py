"""Programs of Pulumi: run under its own mocks, what they make compared with the Terraform's."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.export import asking
from tests.providers.aws.tf_text import (
    Block,
    Expression,
    Listed,
    Literal,
    Mapped,
    Name,
    Part,
    Template,
    read,
)
from tradewind.export import making
from tradewind.export.asked import Asked
from tradewind.providers import infrastructure

TOLD = {"alert_email": "me@example.com", "project": "acme", "billing_account": "0-0-0",
        "subnet": "subnet-1", "subscription": "1-1", "resource_group": "research"}  # fmt: skip
PACKAGES = ("pulumi==3.272.0", "pulumi_aws==7.51.1", "pulumi_gcp==10.2.0", "pulumi_azure==6.40.1")
COMPUTED = object()


def files(kind: str, asked: Asked, **settings: str) -> dict[str, str]:
    return {path: file.text for path, file in making.made(kind, asked, settings).files.items()}


@pytest.mark.parametrize(("name", "cloud"), [("pretrain-1.3b", "aws"), ("continue-70b-eu", "gcp")])
def test_the_program_is_one_and_uses_what_it_says(name: str, cloud: str) -> None:
    told = files("pulumi", asking.at(name, cloud))
    tree = ast.parse(told["__main__.py"])
    assigned = [
        each.targets[0].id for each in tree.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    ]  # fmt: skip
    assert len(set(assigned)) == len(assigned), "a name twice"
    seen: set[str] = {"__file__", "Path", "pulumi", "base64", "hashlib", "config"}
    seen |= {alias.asname for each in ast.walk(tree) if isinstance(each, ast.Import)
             for alias in each.names if alias.asname}  # fmt: skip
    for each in tree.body:
        used = {n.id for n in ast.walk(each) if isinstance(n, ast.Name)}
        assert used <= seen | set(assigned) | {"text"}
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            assert (used - {each.targets[0].id}) & set(assigned) <= seen, "used before it is made"
            seen.add(each.targets[0].id)
    assert (
        told["start.sh"].partition("\n\n")[2]
        == files("terraform", asking.at(name, cloud))["start.sh"].partition("\n\n")[2]
    )


@pytest.mark.parametrize(
    ("cloud", "group", "needs"),
    [
        ("aws", "aws_autoscaling_group", ("aws_s3_object.job", "aws_iam_role_policy.job",
                                          "aws_route.out", "aws_route_table_association.job")),
        ("gcp", "google_compute_instance_group_manager", ("google_storage_bucket_object.job",
                                                          "google_project_iam_member.job")),
    ],
)  # fmt: skip
def test_machines_begin_once_all_they_need_is_there(
    cloud: str, group: str, needs: tuple[str, ...]
) -> None:
    asked = asking.at("pretrain-1.3b", cloud)
    told = files("terraform", asked)
    head = f'resource "{group}" "job" {{'
    block = told["main.tf"].partition(head)[2].partition("\n}")[0]
    listed = block.partition("depends_on")[2].partition("]")[0]
    assert [each for each in needs if each not in listed] == []
    program = files("pulumi", asked)["__main__.py"]
    last = program.partition(f"\nthe_{group.partition('_')[2]} = ")[2].partition("\n)")[0]
    options = last.partition("depends_on=[")[2].partition("]")[0]
    assert options.count(",") == listed.count(",") + 1


def test_things_of_google_come_after_its_services() -> None:
    named = {
        each.labels[0]: each
        for each in things(files("terraform", asking.at("pretrain-1.3b", "gcp")))
    }
    for kind in ("compute_network", "storage_bucket", "service_account", "billing_budget"):
        assert "depends_on" in named[f"google_{kind}"].attributes


def test_every_thing_of_terraform_has_a_class() -> None:
    for name, cloud in (("continue-70b-eu", "aws"), ("continue-70b-eu", "gcp")):
        classes = infrastructure.of(cloud).CLASSES  # type: ignore[attr-defined]
        kinds = {each.labels[0] for each in things(files("terraform", asking.at(name, cloud)))}
        assert kinds <= set(classes)


# -- run ------------------------------------------------------------------------------------------


def things(told: dict[str, str]) -> list[Block]:
    text = "".join(each for path, each in told.items() if path.endswith(".tf"))
    return [each for each in read(text).blocks if each.kind in ("resource", "data")]


def variables(told: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = dict(TOLD)
    for each in read(told["variables.tf"]).blocks:
        default = each.attributes.get("default")
        if isinstance(default, Literal):
            found[each.labels[0]] = default.text
    return found


def value(said: Expression, known: dict[str, Any]) -> Any:
    """COMPUTED: only whoever applies it knows."""
    match said:
        case Literal("number", text):
            return float(text)
        case Literal("boolean", text):
            return text == "true"
        case Literal(_, text):
            return text
        case Listed(items):
            return [value(each, known) for each in items]
        case Mapped(items):
            return {key: value(each, known) for key, each in items.items()}
        case Part(Name("var"), name):
            return known[name]
        case Template(parts):
            pieces = [value(each, known) for each in parts]
            return COMPUTED if COMPUTED in pieces else "".join(map(str, pieces))
    return COMPUTED


def body(block: Block, known: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: value(each, known)
        for name, each in block.attributes.items()
        if name != "depends_on"  # no field of the thing
    }
    for each in block.blocks:
        if each.kind != "lifecycle":
            found.setdefault(each.kind, []).append(body(each, known))
    return found


def differences(terraform: Any, pulumi: Any, where: str) -> Iterator[str]:
    """A name of Pulumi's is in camel case, and plural where there may be several."""
    if terraform is COMPUTED:
        return
    if isinstance(terraform, dict) and isinstance(pulumi, dict):
        theirs = {plain(name): each for name, each in pulumi.items()}
        mine = {plain(name): each for name, each in terraform.items()}
        for name in theirs.keys() ^ mine.keys():
            yield f"{where}.{name}: {'Pulumi' if name in theirs else 'Terraform'} alone has it"
        for name in theirs.keys() & mine.keys():
            yield from differences(mine[name], theirs[name], f"{where}.{name}")
    elif isinstance(terraform, list):
        many = pulumi if isinstance(pulumi, list) else [pulumi]
        if len(many) != len(terraform):
            yield f"{where}: {len(terraform)} and {len(many)}"
        for one, other in zip(terraform, many, strict=False):
            yield from differences(one, other, where)
    elif same(terraform) != same(pulumi):
        yield f"{where}: {terraform!r} and {pulumi!r}"


def plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower()).removesuffix("s")


def same(value: Any) -> Any:
    try:
        return float(value) if not isinstance(value, bool) else value
    except (TypeError, ValueError):
        return value


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With Pulumi's packages from PyPI, which are half a gigabyte."""
    folder = tmp_path_factory.mktemp("pulumi")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    found = folder / "bin/python"
    pip: list[Any] = [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PACKAGES], check=True, timeout=900)
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "cloud", "settings"),
    [
        ("pretrain-1.3b", "aws", {}), ("continue-70b-eu", "aws", {}),
        ("continue-70b-eu", "gcp", {}),
        ("serve-chat", "aws", {"cluster": "a"}), ("pretrain-1.3b", "gcp", {"cluster": "a"}),
        ("lora-8b-overnight", "azure", {"cluster": "a"}),
    ],
)  # fmt: skip
def test_it_makes_what_the_terraform_makes(
    name: str, cloud: str, settings: dict[str, str], python: Path, tmp_path: Path
) -> None:
    asked = asking.at(name, cloud)
    for path, text in files("pulumi", asked, **settings).items():
        (tmp_path / path).write_text(text)
    (tmp_path / "job.tar.gz").write_bytes(b"job")
    done = subprocess.run(
        [python, Path(__file__).with_name("pulumi_mocks.py"), tmp_path / "__main__.py"],
        cwd=tmp_path, input=json.dumps(TOLD), capture_output=True, text=True, timeout=300,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == []
    told = files("terraform", asked, **settings)
    described: Any = infrastructure.pooled(cloud) if settings else infrastructure.of(cloud)
    classes = described.CLASSES
    made = {
        (typ.rpartition(":")[2].lower(), each): inputs
        for typ, each, inputs in found["made"] if not typ.startswith("pulumi:")
    }  # fmt: skip
    wanted = things(told)
    resources = [each for each in wanted if each.kind == "resource"]
    assert len(made) == len(wanted) > (2 if settings else 15)
    assert found["looked"] >= len(resources)
    for each in resources:
        kind, label = each.labels
        inputs = made[classes[kind].rpartition(".")[2].lower(), label]
        inputs = {key: one for key, one in inputs.items() if key != "__defaults"}
        if "source" in inputs:  # a file of this computer
            assert each.attributes.pop("source")
            del inputs["source"]
        assert list(differences(body(each, variables(told)), inputs, f"{kind}.{label}")) == []
