"""What `setup gcp --print` prints: the same facts in each form, as their readers take them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import Any

import pytest

from tests.providers.aws.tf_check import faults
from tests.providers.aws.tf_text import read
from tests.providers.gcp.gcloud_flags import COMMANDS
from tests.providers.gcp.tf_schema import schema
from tradewind.base.errors import InvalidValue
from tradewind.providers.gcp.setup import commands, fast, roles, terraform, things
from tradewind.providers.gcp.setup.printed import PRINTS, printed

STORE = "gs://my-bucket/tw"
PRINTED = {
    "usual": things.described(STORE, "my-project", "us-central1", ["us-central1", "europe-west4"]),
    "shells": things.described(STORE, "my-project", "us-central1", ["us-central1"], iap=True),
    "whole bucket": things.described("gs://my-bucket", "my-project", "us-east1", ["us-east1"]),
    "gpudirect": things.described(
        STORE, "my-project", "us-central1", ["us-central1", "europe-west4"],
        wanted=fast.Wanted(cards=8, zones=("europe-west4-b", "us-central1-b")),
    ),
    "odd name": things.described("gs://b-1/${tw}/%{x}", "my-project", "us-east1", ["us-east1"]),
}  # fmt: skip


@pytest.mark.parametrize("which", PRINTED)
def test_terraform_is_what_the_provider_takes(which: str) -> None:
    assert faults(terraform.rendered(PRINTED[which]), schema()) == []


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("private_ip_google_access", "private_google_access"),
        ('account_id   = "', 'account   = "'),
        ("google_compute_network.machines.id", "google_compute_network.machine.id"),
        ('resource "google_compute_firewall"', 'resource "google_firewall"'),
        ("uniform_bucket_level_access = true", 'uniform_bucket_level_access = "true"'),
        ("hashicorp/google", "hashicorp/aws"),
    ],
)
def test_that_check_finds_faults(was: str, becomes: str) -> None:
    text = terraform.rendered(PRINTED["usual"])
    assert was in text
    assert faults(text.replace(was, becomes, 1), schema())


def test_terraform_has_every_thing() -> None:
    made = read(terraform.rendered(PRINTED["shells"]))
    kinds = sorted(each.labels[0] for each in made.blocks if each.kind == "resource")
    assert kinds == sorted(
        [
            "google_storage_bucket",
            "google_service_account",
            "google_compute_network",
            "google_compute_subnetwork",
            *["google_compute_firewall"] * 2,
            *["google_storage_bucket_iam_member"] * 2,
            "google_project_iam_member",
            *["google_project_iam_custom_role"] * 6,
            *["google_project_service"] * (len(things.SERVICES) + 1),
        ]
    )


def test_networks_for_gpudirect_are_printed() -> None:
    made = read(terraform.rendered(PRINTED["gpudirect"]))
    heads = [each.labels for each in made.blocks if each.kind == "resource"]
    assert len({tuple(each) for each in heads}) == len(heads)
    kinds = [each[0] for each in heads]
    assert kinds.count("google_compute_network") == 1 + 8 + 1 + 2
    assert kinds.count("google_compute_subnetwork") == 2 + 8 * 2 + 2 + 2 * 8
    assert kinds.count("google_compute_firewall") == 1 + 8 + 1
    script = script_of("gpudirect")
    assert script.count("--mtu=8244") == 8
    assert script.count("--network-profile=us-central1-b-vpc-roce") == 1
    code = terraform.rendered(PRINTED["gpudirect"])
    assert code.count("projects/my-project/global/networkProfiles/us-central1-b-vpc-roce") == 1
    for network in PRINTED["gpudirect"].networks:
        for subnet in network.subnets:
            assert subnet.name in script
            assert subnet.range in code


def test_rdma_is_printed_for_zones_that_are_named() -> None:
    settings = {"project": "my-project", "gpudirect": "rdma"}
    with pytest.raises(InvalidValue, match="which zones have RDMA"):
        printed("terraform", STORE, ["us-central1"], settings)
    settings["gpudirect"] = "rdma:us-central1-b"
    assert "us-central1-b-vpc-roce" in printed("gcloud", STORE, ["us-central1"], settings)
    settings["gpudirect"] = "rdma:us-east4-b"
    with pytest.raises(InvalidValue, match="none of the regions that are set up"):
        printed("terraform", STORE, ["us-central1"], settings)


def script_of(which: str) -> str:
    return commands.rendered(PRINTED[which])


@pytest.mark.parametrize("which", PRINTED)
def test_the_script_is_one(which: str) -> None:
    for shell in ("bash", "sh"):
        done = subprocess.run([shell, "-n"], input=script_of(which), text=True, timeout=60)
        assert done.returncode == 0


@pytest.mark.parametrize("which", PRINTED)
def test_every_command_and_flag_is_gclouds(which: str) -> None:
    for words in gcloud(script_of(which)):
        name = next(
            each for each in sorted(COMMANDS, key=len, reverse=True)
            if words[1 : 1 + len(each.split())] == each.split()
        )  # fmt: skip
        flags = [each.partition("=")[0] for each in words if each.startswith("--")]
        assert set(flags) <= COMMANDS[name], name
        assert len(flags) == len(set(flags)), name


def gcloud(script: str) -> list[list[str]]:
    """Its commands, as a shell would take them apart."""
    plain = re.sub(r"cat > .*?\nEND\n", "", script, flags=re.DOTALL).replace("\\\n", " ")
    return [shlex.split(line) for line in plain.splitlines() if line.startswith("gcloud ")]


def test_the_script_has_the_same_facts_as_the_terraform() -> None:
    script, code = script_of("usual"), terraform.rendered(PRINTED["usual"])
    wanted = PRINTED["usual"]
    assert wanted.bucket is not None
    for fact in [
        wanted.bucket.name,
        wanted.account.id,
        *(role.id for role in wanted.roles),
        *(permission for role in wanted.roles for permission in role.permissions),
        *(subnet.range for subnet in wanted.network.subnets),
        *(rule.name for rule in wanted.network.firewalls),
        *wanted.services,
    ]:
        assert fact in script, fact
        assert fact in code, fact
    conditions = re.findall(r"cat > \S+ <<'END'\n(.*?)\nEND", script, re.DOTALL)
    told = [json.loads(each) for each in conditions]
    expressions = [each["expression"] for each in told if "expression" in each]
    assert expressions == [grant.condition for grant in wanted.grants]


def test_roles() -> None:
    told = json.loads(printed("role", STORE, (), {"project": "my-project", "iap": True}))
    assert [each["on"] for each in told["people"]] == [
        "projects/my-project",
        "gs://my-bucket",
        told["machines_are"],
        "projects/my-project",
    ]
    assert told["people"][0]["includedPermissions"] == list(roles.RUNNER)
    assert all(each["condition"] for each in told["machines"])
    setter = json.loads(printed("setup-role", STORE, (), {}))
    assert setter["includedPermissions"] == list(roles.SETTER)


def test_without_a_project_roles_say_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "GCLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    told = json.loads(printed("role", STORE, (), {}))
    assert told["people"][0]["on"] == "projects/PROJECT"
    for kind in ("terraform", "gcloud"):
        with pytest.raises(InvalidValue, match="no project is named"):
            printed(kind, STORE, ["us-central1"], {})
        with pytest.raises(InvalidValue, match="no region is named"):
            printed(kind, STORE, [], {"project": "my-project"})
        with pytest.raises(InvalidValue, match="not the id of a Google Cloud project"):
            printed(kind, STORE, ["us-central1"], {"project": "My Project"})
        with pytest.raises(InvalidValue, match="us-central1-a is a zone"):
            printed(kind, STORE, ["us-central1-a"], {"project": "my-project"})
        with pytest.raises(InvalidValue, match="not the name of a region"):
            printed(kind, STORE, ["Iowa"], {"project": "my-project"})


@pytest.mark.parametrize("kind", PRINTS)
def test_every_kind_prints(kind: str) -> None:
    assert printed(kind, STORE, ["us-central1"], {"project": "my-project"}).endswith("\n")


@pytest.mark.parametrize("which", PRINTED)
def test_conditions_are_what_iam_takes(which: str) -> None:
    for grant in PRINTED[which].grants:
        operators = re.findall(r"&&|\|\||!(?!=)", grant.condition)
        assert len(operators) <= roles.MOST_OPERATORS
        assert len(grant.title) <= 100
        assert grant.condition.count("(") == grant.condition.count(")")


def test_roles_are_what_iam_takes() -> None:
    for role in PRINTED["usual"].roles:
        assert re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", role.id)
        assert len(role.title) <= 100
        assert len(role.description) <= 256
        assert list(role.permissions) == sorted(set(role.permissions))
    assert list(roles.SETTER) == sorted(set(roles.SETTER))


OBJECTS: list[tuple[str, str, bool]] = [
    ("write", "tw/runs/r1/logs/000001/0000/1.log", True),
    ("write", "tw/runs/r1/machines/gcp-x/heartbeat.json", True),
    ("write", "tw/runs/r1/shards/000001/1-1/__0_0.distcp", True),
    ("write", "tw/runs/r1/journal/1.json", False),
    ("write", "tw/runs/r1/journal/logs/1.json", False),
    ("write", "tw/runs/r1/logs/journal/1.json", False),
    ("write", "tw/runs/r1/job/bundle.tar.gz", False),
    ("write", "tw/live/r1", False),
    ("write", "tw/keys/runs/r1/logs/x", False),
    ("write", "tw/providers/gcp.json", False),
    ("write", "tw/kits/x/kit.tar", False),
    ("write", "other/runs/r1/logs/x", False),
    ("read", "tw/runs/r1/journal/1.json", True),
    ("read", "tw/kits/x/kit.tar", True),
    ("read", "tw/keys/seed", False),
    ("read", "tw/passes/r1/l/first", False),
    ("read", "other/runs/r1/journal/1.json", False),
    ("read", "", True),
]


@pytest.mark.parametrize(("what", "key", "may"), OBJECTS)
def test_what_machines_may(what: str, key: str, may: bool) -> None:
    grant = next(each for each in roles.grants(STORE) if each.role.endswith(f"_{what}"))
    bucket = "projects/_/buckets/my-bucket"
    assert holds(grant.condition, f"{bucket}/objects/{key}" if key else bucket) is may


@pytest.mark.parametrize(
    ("name", "may"),
    [
        (f"{roles.secrets_prefix(STORE)}hf-token", True),
        (roles.secrets_prefix(STORE).removesuffix("-"), False),
        ("other", False),
        (f"x{roles.secrets_prefix(STORE)}hf-token", False),
    ],
)
def test_which_secrets_machines_may_read(name: str, may: bool) -> None:
    grant = next(each for each in roles.grants(STORE) if each.role.endswith("_secrets"))
    assert holds(grant.condition, f"projects/123/secrets/{name}/versions/1") is may


class _Name(str):
    """A text with the functions that IAM's conditions have."""

    def extract(self, template: str) -> str:
        """By Google's documentation: what stands at `{…}`, between the first place where what is
        before it is found and the next where what is behind it is; "" where either is not."""
        before, _, rest = template.partition("{")
        behind = rest.partition("}")[2]
        start = self.find(before)
        if start < 0:
            return ""
        start += len(before)
        end = self.find(behind, start) if behind else len(self)
        return self[start:end] if end >= 0 else ""


def holds(condition: str, name: str) -> bool:
    python = condition.replace("&&", "and").replace("||", "or")
    python = python.replace("startsWith", "startswith").replace("resource.name", "name")
    names: dict[str, Any] = {"name": _Name(name)}
    return bool(eval(python, {"__builtins__": {}}, names))  # an expression of ours
