"""Setup as code: the same facts, valid for the tools that read it, and adopted once applied."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.providers.aws import account_server as server
from tests.providers.aws.setups import plan_setup
from tradewind.providers.aws.setup import cloudformation, terraform, things
from tradewind.providers.aws.setup.make import Wish

STORE = "s3://my-bucket/tw"
PUBLIC = things.described(STORE, "eu-west-1", ["eu-west-1", "us-east-1"], ssm=True)
PRIVATE = things.described(STORE, "eu-west-1", ["eu-west-1"], private=["eu-west-1"])
BOTH = pytest.mark.parametrize("wanted", [PUBLIC, PRIVATE], ids=["public", "private"])

MIRRORS = [os.environ.get("TF_PLUGIN_DIR", ""), "/opt/tf-plugins", "/usr/share/terraform/plugins",
           "/usr/local/share/terraform/plugins"]  # fmt: skip
"""Where Terraform's provider for AWS may lie: nothing is fetched."""


def linted(template: str) -> list[str]:
    """Errors and warnings; what it would only like to know is left out."""
    from cfnlint.api import lint_all

    found = [f"{each.rule.id}: {each.message}" for each in lint_all(template)]
    return [each for each in found if not each.startswith("I")]


@BOTH
def test_cloudformation_is_valid(wanted: things.Things) -> None:
    assert linted(cloudformation.rendered(wanted)) == []


def test_the_linter_would_find_something() -> None:
    template = cloudformation.template(PUBLIC)
    template["Resources"]["Store"]["Properties"]["Versions"] = "on"
    assert [found.partition(":")[0] for found in linted(json.dumps(template))] == ["E3002"]


@BOTH
def test_cloudformation_has_the_same_facts(wanted: things.Things) -> None:
    read = yaml.safe_load(cloudformation.rendered(wanted))
    resources = read["Resources"]
    assert wanted.bucket is not None
    bucket, role = resources["Store"]["Properties"], resources["Machines"]["Properties"]
    assert bucket["BucketName"] == wanted.bucket.name
    assert [rule["Id"] for rule in bucket["LifecycleConfiguration"]["Rules"]] == [
        rule.id for rule in wanted.bucket.rules
    ]
    assert resources["StorePolicy"]["Properties"]["PolicyDocument"] == wanted.bucket.policy
    assert resources["Store"]["DeletionPolicy"] == "Retain"
    assert role["Policies"] == [
        {"PolicyName": wanted.role.policy_name, "PolicyDocument": wanted.role.policy}
    ]
    assert tuple(role.get("ManagedPolicyArns", ())) == wanted.role.managed
    assert resources["Group"]["Properties"]["GroupName"] == wanted.regions[0].group.name
    assert role["PermissionsBoundary"] == {"Ref": "Boundary"}
    boundary = resources["Boundary"]["Properties"]
    assert boundary["ManagedPolicyName"] == wanted.role.boundary_name
    assert boundary["PolicyDocument"] == wanted.role.boundary
    assert "SecurityGroupIngress" not in json.dumps(read)
    subnets = [each for each in resources.values() if each["Type"] == "AWS::EC2::Subnet"]
    assert len(subnets) == (6 if wanted is PRIVATE else 0)


@BOTH
def test_terraform_has_the_same_facts(wanted: things.Things) -> None:
    text = terraform.rendered(wanted)
    assert wanted.bucket is not None
    for rule in wanted.bucket.rules:
        assert f'"{rule.id}"' in text
    role = wanted.role
    for document in (wanted.bucket.policy, role.policy, role.trust, role.boundary):
        for statement in document["Statement"]:
            for arn in statement.get("Resource", []):
                assert f'"{arn}"' in text
    assert text.count('resource "aws_security_group"') == len(wanted.regions)
    assert text.count('resource "aws_vpc"') == (wanted is PRIVATE)
    assert ("AmazonSSMManagedInstanceCore" in text) == bool(wanted.role.managed)
    assert re.findall(r"\$\{", text) == []


def terraformed(folder: Path, text: str, *commands: list[str], url: str = "") -> str:
    """What the last of the commands says."""
    mirror = next((each for each in MIRRORS if each and Path(each).is_dir()), None)
    assert shutil.which("terraform"), "terraform is not installed"
    assert mirror, "no mirror of Terraform's provider for AWS. hint: TF_PLUGIN_DIR=/path/to/it"
    (folder / "main.tf").write_text(text)
    if url:
        override = {
            "access_key": "AKIAEXAMPLE", "secret_key": "example", "s3_use_path_style": True,
            "endpoints": [dict.fromkeys(("ec2", "iam", "s3", "sts"), url)],
        }  # fmt: skip
        aliases = re.findall(r'alias\s+= "(\w+)"\s+region = "([\w-]+)"', text)
        providers = [override | {"alias": alias, "region": region} for alias, region in aliases]
        # Variables have it all, but for the style of paths: so each provider is said again.
        body = json.dumps({"provider": {"aws": providers}})
        (folder / "main_override.tf.json").write_text(body)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TF_"))}
    env |= {"HOME": str(folder), "CHECKPOINT_DISABLE": "1", "AWS_EC2_METADATA_DISABLED": "true"}
    said = ""
    for command in (["init", f"-plugin-dir={mirror}", "-input=false"], *commands):
        done = subprocess.run(
            ["terraform", *command, "-no-color"], cwd=folder, env=env, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        )  # fmt: skip
        said = done.stdout
        assert done.returncode == 0, said
    return said


@pytest.mark.terraform
@BOTH
def test_terraform_is_valid_and_laid_out_as_usual(wanted: things.Things, tmp_path: Path) -> None:
    said = terraformed(
        tmp_path, terraform.rendered(wanted), ["fmt", "-check", "-diff"], ["validate"]
    )
    assert "Success" in said


@pytest.mark.terraform
@pytest.mark.parametrize("private", [False, True])
def test_what_terraform_made_is_adopted(
    private: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terraform takes half a minute to believe that a lifecycle is as it was put."""
    wanted = PRIVATE if private else things.described(STORE, "eu-west-1", ["eu-west-1"])
    with server.served() as url:
        server.entered(url, monkeypatch, tmp_path)
        apply = ["apply", "-auto-approve", "-input=false"]
        terraformed(tmp_path, terraform.rendered(wanted), apply, url=url)
        plan = plan_setup(Wish(store_url=STORE, regions=("eu-west-1",)))
        left: list[Any] = [
            (line.what, c.words) for line in plan.prepared.lines for c in line.changes
        ]
        assert left == []
        assert not plan.recorded
        record = plan.carry_out()
        assert record.regions["eu-west-1"].public is not private
        assert len(record.regions["eu-west-1"].subnets) == 3
        assert plan_setup(Wish(store_url=STORE)).recorded
