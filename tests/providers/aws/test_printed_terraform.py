"""The Terraform that we print, held against HashiCorp's own parser and the provider's own schema.

Neither Terraform nor its provider is needed for it, so it runs wherever npm packages can be had.
What only Terraform itself can tell is in `test_printed.py`, marked `terraform`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from tests.providers.aws.tf_check import faults
from tests.providers.aws.tf_schema import FETCHED, schema
from tradewind.providers.aws.setup import terraform, things

pytestmark = pytest.mark.system

HOME, OTHER = "eu-west-1", "us-east-1"
PUBLIC = things.described("s3://my-bucket/tw", HOME, [HOME, OTHER], ssm=True)
PRIVATE = things.described("s3://my-bucket/tw", HOME, [HOME], private=[HOME])
PRINTED = {
    "public": PUBLIC,
    "private": PRIVATE,
    "other region": things.described("s3://my-bucket", HOME, [OTHER]),
    "whole bucket": things.described("s3://my-bucket", HOME, [HOME, OTHER], private=[HOME]),
    "odd name": things.described("s3://my-bucket/${tw}/%{x}", HOME, [HOME]),
}

SCRIPT = """
const { parse } = require("@cdktf/hcl2json"), { format } = require("@cdktf/hcl-tools");
const told = (text) => parse("main.tf", text).then(() => format(text), (error) => `${error}`);
Promise.all(JSON.parse(require("fs").readFileSync(0, "utf8")).map(told))
  .then((all) => process.stdout.write(JSON.stringify(all), () => process.exit(0)));
"""


def told(texts: list[str]) -> list[str]:
    """Each as HashiCorp's formatter lays it out, or what its parser has against it.

    They are what Terraform is built on, compiled for Node, which takes seconds to get them ready.
    """
    node, packages = shutil.which("node"), FETCHED / "node_modules"
    assert node, "node is not installed; run `make test-system`"
    assert packages.is_dir(), f"{packages} is not there; run `make test-system`"
    done = subprocess.run(
        [node, "-e", SCRIPT], input=json.dumps(texts), text=True, check=True, timeout=300,
        stdout=subprocess.PIPE, env=os.environ | {"NODE_PATH": str(packages)},
    )  # fmt: skip
    found: list[str] = json.loads(done.stdout)
    return found


def test_hashicorps_parser_reads_it_and_its_formatter_leaves_it() -> None:
    texts = [terraform.rendered(each) for each in PRINTED.values()]
    broken = texts[0].replace("jsonencode({", "jsonencode({,", 1)
    askew = texts[0].replace("bucket   =", "bucket =", 1)
    *same, refused, straight = told([*texts, broken, askew])
    assert same == texts
    assert refused.startswith("Error: parse config: [main.tf:")
    assert straight == texts[0] != askew


@pytest.mark.parametrize("wanted", PRINTED.values(), ids=PRINTED)
def test_the_provider_knows_all_of_it(wanted: things.Things) -> None:
    assert faults(terraform.rendered(wanted), schema()) == []


def test_the_schema_is_of_the_provider_that_our_documentation_names() -> None:
    page = (FETCHED.parents[1] / "docs/aws.md").read_text()
    assert f"provider {schema().version()}" in page


BROKEN = [
    ("vpc_id      =", "vpc_ids     =", "aws_security_group.eu_west_1.vpc_ids: no such attribute"),
    ("sse_algorithm", "sse_algoritm",
     "aws_s3_bucket_server_side_encryption_configuration.store.rule."
     "apply_server_side_encryption_by_default.sse_algoritm: no such attribute"),
    ("abort_incomplete_multipart_upload {", "abort_incomplete_multipart {",
     "aws_s3_bucket_lifecycle_configuration.store.rule.abort_incomplete_multipart: no such block"),
    ('resource "aws_vpc_endpoint"', 'resource "aws_vpc_endpoints"',
     "aws_vpc_endpoints.eu_west_1: the provider has no such thing"),
    ('data "aws_availability_zones" "eu_west_1"', 'data "aws_zones" "eu_west_1"',
     "data.aws_zones.eu_west_1: the provider has no such thing"),
    ("versioning_configuration {", "versioning_configuration = {",
     "aws_s3_bucket_versioning.store.versioning_configuration: a block, written as an attribute"),
    ('  filter {\n    name   = "zone-type"\n    values = ["availability-zone"]\n  }',
     '  filter = [{\n    name   = "zone-type"\n    values = ["availability-zone"]\n  }]',
     "data.aws_availability_zones.eu_west_1.filter: a block, written as an attribute"),
    ('  tags = {\n    "tradewind:owner" = "s3://my-bucket"\n', "  tags {\n    owner = 1\n",
     "aws_s3_bucket.store.tags: an attribute, written as a block"),
    ("assume_role_policy = jsonencode(", "description = jsonencode(",
     "aws_iam_role.machines.assume_role_policy: required, and not there"),
    ("      noncurrent_days = 1\n", "",
     "aws_s3_bucket_lifecycle_configuration.store.rule.noncurrent_version_expiration."
     "noncurrent_days: required, and not there"),
    ('  versioning_configuration {\n    status = "Enabled"\n  }\n', "",
     "aws_s3_bucket_versioning.store.versioning_configuration: required, and not there"),
    ('  versioning_configuration {\n    status = "Enabled"\n  }\n',
     '  versioning_configuration {\n    status = "Enabled"\n  }\n' * 2,
     "aws_s3_bucket_versioning.store.versioning_configuration: may be there only once"),
    ("noncurrent_days = 1\n", 'noncurrent_days = "1"\n',
     "aws_s3_bucket_lifecycle_configuration.store.rule.noncurrent_version_expiration."
     "noncurrent_days: is string, not number"),
    ('["0.0.0.0/0"]', '"0.0.0.0/0"',
     "aws_security_group.eu_west_1.egress.cidr_blocks: is string, not stringList"),
    ("[aws_route_table.eu_west_1.id]", "[aws_route_table.eu_west_1]",
     "aws_vpc_endpoint.eu_west_1.route_table_ids: aws_route_table.eu_west_1 has no attribute"),
    ("route_table_id = aws_route_table.eu_west_1.id", "route_table_id = aws_route_table.home.id",
     "aws_route_table_association.eu_west_1.route_table_id: aws_route_table.home is not declared"),
    ("sort(data.aws_availability_zones.eu_west_1.zone_ids)", "sort(data.aws_vpc.home.zone_ids)",
     "aws_subnet.eu_west_1.availability_zone_id: data.aws_vpc.home is not declared"),
    ("sort(data.aws_availability_zones.eu_west_1.zone_ids)",
     "sort(data.aws_availability_zones.eu_west_1.ids)",
     "aws_subnet.eu_west_1.availability_zone_id: "
     "data.aws_availability_zones.eu_west_1 has no attribute ids"),
    ("aws_subnet.eu_west_1[count.index].id", "aws_subnet.eu_west_1.id",
     "aws_route_table_association.eu_west_1.subnet_id: aws_subnet.eu_west_1 has a count"),
    ('["0.0.0.0/0"]', "[count.index]",
     "aws_security_group.eu_west_1.egress.cidr_blocks: count.index, without a count"),
    ("depends_on = [aws_s3_bucket_versioning.store]", "depends_on = [aws_s3_bucket_versions.store]",
     "aws_s3_bucket_lifecycle_configuration.store.depends_on: "
     "aws_s3_bucket_versions.store is not declared"),
    ('provider   = aws.eu_west_1\n  cidr_block = "10', 'provider   = aws.home\n  cidr_block = "10',
     "aws_vpc.eu_west_1.provider: not a declared provider"),
    ("cidr_block = \"10.77.0.0/16\"", "cidr_block = aws_route_table.eu_west_1.vpc_id",
     "these need each other: aws_route_table.eu_west_1, aws_vpc.eu_west_1"),
    ("jsonencode({", "toset({",
     "aws_s3_bucket_policy.store.policy: toset() is not known to this check"),
    ('resource "aws_iam_role_policy" "machines"', 'resource "aws_iam_role" "machines"',
     "aws_iam_role.machines: declared twice"),
    ('region = "eu-west-1"', 'place = "eu-west-1"', "aws.eu_west_1.place: no such attribute"),
    ("hashicorp/aws", "example/aws",
     "terraform.required_providers: has to be aws, of hashicorp/aws"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "fault"), BROKEN, ids=[each[2] for each in BROKEN])
def test_a_broken_text_is_told_by_what_is_wrong_with_it(old: str, new: str, fault: str) -> None:
    text = terraform.rendered(PRIVATE)
    assert old in text
    assert fault in faults(text.replace(old, new, 1), schema())
