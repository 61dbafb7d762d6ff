"""An AWS account in moto, over real HTTP, and what is in it read back with boto3.

moto 5.2 takes a bucket policy's conditions for nothing, so ours, which refuses requests without
TLS, would refuse all: its statement is left out of what moto judges by (it is kept, and read back).
And it forgets the sizes in rules of a lifecycle, so those are kept beside it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import boto3
import pytest

from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.setup.policies import TLS_ONLY

_SIZES = ("x-amz-transition-default-minimum-object-size", "all_storage_classes_128K")


REFUSED: dict[str, str] = {}
"""Actions, or methods and paths of S3, and the code with which they are refused."""


class Front:
    """Between a client and moto: rules are given back as they were put, and REFUSED refused."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._kept: dict[str, bytes] = {}

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if REFUSED:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = BytesIO(body)
            asked = parse_qs(body.decode("latin-1")).get("Action", [f"{method} {path}"])[0]
            if asked in REFUSED:
                start("403 Forbidden", [("Content-Type", "application/xml")])
                error = f"<Error><Code>{REFUSED[asked]}</Code><Message>no</Message></Error>"
                whole = error if " " in asked else f"<R><Errors>{error}</Errors></R>"
                return [] if method == "HEAD" else [whole.encode()]
        if path == "/moto-api/reset" or method == "DELETE":
            self._kept = {} if path == "/moto-api/reset" else self._without(path)
        if environ.get("QUERY_STRING", "").rstrip("=") != "lifecycle":
            return self._app(environ, start)
        if method == "GET" and path in self._kept:
            start("200 OK", [("Content-Type", "application/xml"), _SIZES])
            return [self._kept[path]]
        if method == "PUT":
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            self._kept[path] = body
            environ["wsgi.input"] = BytesIO(body)
        return self._app(environ, start)

    def _without(self, path: str) -> dict[str, bytes]:
        return {key: body for key, body in self._kept.items() if key != path}


@contextmanager
def served() -> Iterator[str]:
    """The URL of a fresh one; it serves one request at a time."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.s3.models import FakeBucket
    from werkzeug.serving import WSGIRequestHandler, make_server

    judged = FakeBucket.get_permission

    def without_tls(self: Any, action: str, resource: str) -> Any:
        whole = self.policy
        if whole and TLS_ONLY in whole.decode():
            policy = json.loads(whole)
            kept = [each for each in policy["Statement"] if each.get("Sid") != TLS_ONLY]
            self.policy = json.dumps(policy | {"Statement": kept}).encode() if kept else None
        try:
            return judged(self, action, resource)
        finally:
            self.policy = whole

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: Any) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeBucket, "get_permission", without_tls)
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # thousands, in each region
        app = Front(DomainDispatcherApplication(create_backend_app))
        server = make_server("127.0.0.1", 0, app, threaded=False, request_handler=Quiet)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def entered(url: str, patch: pytest.MonkeyPatch, home: Path) -> None:
    """From now on AWS is there, and empty, and nothing of this computer's account is seen."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        patch.delenv(name, raising=False)
    for name, value in {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "example",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": str(home),
        "TRADEWIND_HOME": str(home / "tradewind"),
    }.items():
        patch.setenv(name, value)
    emptied(url)


def emptied(url: str) -> None:
    import urllib3

    assert urllib3.request("POST", f"{url}/moto-api/reset", timeout=10).status == 200


def with_managed_policies(url: str, patch: pytest.MonkeyPatch) -> None:
    """AWS's own, which are many: it takes a second."""
    patch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
    emptied(url)


_clients: dict[tuple[str, str, str], Any] = {}


def client(service: str, region: str = "us-east-1") -> Any:
    where = (os.environ["AWS_ENDPOINT_URL"], service, region)
    if where not in _clients:
        _clients[where] = boto3.client(service, region_name=region)
    return _clients[where]


class Cut(Exception):
    pass


class Watched(Account):
    """An account that notes what it was asked to change, and may be cut off when the answer to such
    a call arrives. Kept from one test to the next: to make clients is what takes time."""

    READS = ("Get", "List", "Describe", "Head")

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[str] = []
        self.reads = 0
        self.cut_after = 0
        self._session.events.register("after-call", self._answered)

    def again(self, *, cut_after: int = 0) -> Watched:
        self.changed, self.reads, self.cut_after = [], 0, cut_after
        return self

    def _answered(self, model: Any, **_: Any) -> None:
        if model.name.startswith(self.READS):
            self.reads += 1
            return
        self.changed.append(model.name)
        if len(self.changed) == self.cut_after:
            raise Cut


def bucket_state(name: str, region: str) -> dict[str, Any]:
    s3 = client("s3", region)
    rules = s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"]
    encryption = s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]
    return {
        "versioning": s3.get_bucket_versioning(Bucket=name)["Status"],
        "encryption": encryption["Rules"][0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"],
        "closed": s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"],
        "ownership": s3.get_bucket_ownership_controls(Bucket=name)["OwnershipControls"]["Rules"],
        "policy": json.loads(s3.get_bucket_policy(Bucket=name)["Policy"]),
        "rules": sorted(rules, key=lambda rule: str(rule["ID"])),
        "tags": s3.get_bucket_tagging(Bucket=name)["TagSet"],
        "keys": [each["Key"] for each in s3.list_objects_v2(Bucket=name).get("Contents", [])],
    }


def roles_state(name: str) -> dict[str, Any]:
    iam = client("iam")
    role = iam.get_role(RoleName=name)["Role"]
    policies = iam.list_role_policies(RoleName=name)["PolicyNames"]
    attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    profile = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    within = role["PermissionsBoundary"]["PermissionsBoundaryArn"]
    return {
        "trust": role["AssumeRolePolicyDocument"],
        "boundary": within,
        "bounded": boundary_document(within),
        "tags": role["Tags"],
        "policies": {
            each: iam.get_role_policy(RoleName=name, PolicyName=each)["PolicyDocument"]
            for each in policies
        },
        "attached": sorted(each["PolicyName"] for each in attached),
        "profile": [each["RoleName"] for each in profile["Roles"]],
    }


def boundary_document(arn: str) -> Any:
    iam = client("iam")
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    return iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]


def network_state(region: str, owner: str) -> dict[str, Any]:
    """Without ids, which differ from one making to the next."""
    ec2 = client("ec2", region)
    ours = [{"Name": "tag:tradewind:owner", "Values": [owner]}]
    groups = ec2.describe_security_groups(Filters=ours)["SecurityGroups"]
    subnets = ec2.describe_subnets(Filters=ours)["Subnets"]
    tables = ec2.describe_route_tables(Filters=ours)["RouteTables"]
    ends = ec2.describe_vpc_endpoints(Filters=ours)["VpcEndpoints"]
    return {
        "groups": [
            {
                "name": group["GroupName"],
                "in": _rules(group, "IpPermissions"),
                "out": _rules(group, "IpPermissionsEgress"),
            }
            for group in groups
        ],
        "vpcs": [vpc["CidrBlock"] for vpc in ec2.describe_vpcs(Filters=ours)["Vpcs"]],
        "subnets": sorted((s["AvailabilityZoneId"], s["CidrBlock"]) for s in subnets),
        "routed": [sum("SubnetId" in each for each in t["Associations"]) for t in tables],
        "endpoints": [
            (end["ServiceName"], len(end["RouteTableIds"]))
            for end in ends
            if end["State"] != "deleted"
        ],
    }


def _rules(group: dict[str, Any], key: str) -> list[tuple[str, str]]:
    found = []
    for rule in group[key]:
        for pair in rule.get("UserIdGroupPairs", []):
            itself = pair["GroupId"] == group["GroupId"]
            found.append((rule["IpProtocol"], "itself" if itself else pair["GroupId"]))
        found += [(rule["IpProtocol"], each["CidrIp"]) for each in rule.get("IpRanges", [])]
    return sorted(found)
