"""The bucket of a store: what it lacks. What others have set on it stays."""

from __future__ import annotations

import json
from typing import Any

from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.providers.aws.footprint import OWNER, tag_list, tags_of
from tradewind.providers.aws.setup.calls import DENIED, Calls
from tradewind.providers.aws.setup.policies import TLS_ONLY
from tradewind.providers.aws.setup.things import Bucket, Rule
from tradewind.providers.changes import Line

_YOUNG = ("NoSuchBucket", "OperationAborted")
"""Of a bucket that was made a moment ago, or is being changed by another."""
CLOSED = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}


def region_of(calls: Calls, bucket: str, asked_in: str) -> str:
    """Where it is; "" if there is none of this name."""
    from botocore.exceptions import ClientError

    from tradewind.providers.aws.troubles import code_of, explained

    s3 = calls.account.client("s3", asked_in)
    with explained(f"looking for the bucket {bucket}"):
        try:
            s3.head_bucket(Bucket=bucket, ExpectedBucketOwner=calls.account.number())
            told = s3.get_bucket_location(Bucket=bucket).get("LocationConstraint") or "us-east-1"
        except ClientError as error:
            if code_of(error) in ("404", "NoSuchBucket"):
                return ""
            if code_of(error) in DENIED:
                raise NoAccess(
                    f"the bucket {bucket} belongs to another account, or these credentials may not"
                    " look at it (s3:ListBucket, s3:GetBucketLocation)",
                    hint="bucket names are shared by all AWS accounts: choose another, or another"
                    " AWS_PROFILE",
                ) from None
            raise
    return "eu-west-1" if told == "EU" else str(told)


def look(calls: Calls, wanted: Bucket, *, there: bool) -> Line:
    line = Line("bucket", wanted.name, wanted.region, there)
    put = _Bucket(calls, wanted)
    if not there:
        line.add("make it", put.create)
    for words, right, act in (
        ("versions on", put.versioned, put.version),
        ("encryption by default", put.encrypted, put.encrypt),
        ("all public access blocked", put.closed, put.close),
        ("its owner owns all objects", put.enforced, put.enforce),
    ):
        if not there or not right():
            line.add(words, act)
    statements = put.statements() if there else []
    kept = [each for each in statements if each.get("Sid") != TLS_ONLY]
    if [each for each in statements if each.get("Sid") == TLS_ONLY] != wanted.policy["Statement"]:
        line.add("refuses requests without TLS", lambda: put.put_policy(kept))
    rules = put.rules() if there else []
    ids = {rule.id for rule in wanted.rules}
    if {rule for each in rules if (rule := parsed(each)) and rule.id in ids} != {*wanted.rules}:
        others = [each for each in rules if each.get("ID") not in ids]
        line.add("what expires and what never does", lambda: put.put_rules(others))
    tags = put.tags() if there else {}
    if tags.get(OWNER, wanted.tags[OWNER]) != wanted.tags[OWNER]:
        raise InvalidValue(
            f"the bucket {wanted.name} is tagged {OWNER}={tags[OWNER]}: it is something else's",
            hint="choose another bucket, or remove that tag",
        )
    if any(tags.get(key) != value for key, value in wanted.tags.items()):
        line.add("tagged as ours", lambda: put.tag(tags | wanted.tags))
    return line


class _Bucket:
    """Its settings, each as AWS wants to be asked for it."""

    def __init__(self, calls: Calls, wanted: Bucket) -> None:
        self._calls, self._wanted = calls, wanted

    def _call(self, method: str, **more: Any) -> Any:
        name, region = self._wanted.name, self._wanted.region
        again = _YOUNG if method.startswith("put") else ()
        return self._calls("s3", region, method, Bucket=name, again=again, **more)

    def create(self) -> None:
        region = self._wanted.region
        place = {"CreateBucketConfiguration": {"LocationConstraint": region}}
        more = {} if region == "us-east-1" else place  # which has no name there
        self._call("create_bucket", fine=("BucketAlreadyOwnedByYou",), **more)

    def versioned(self) -> bool:
        return bool(self._call("get_bucket_versioning").get("Status") == "Enabled")

    def version(self) -> None:
        self._call("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})

    def encrypted(self) -> bool:
        """With whatever key: who has chosen one of their own keeps it."""
        none = ("ServerSideEncryptionConfigurationNotFoundError",)
        return self._call("get_bucket_encryption", fine=none) is not None

    def encrypt(self) -> None:
        by_default = {
            "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": self._wanted.encryption}
        }
        self._call(
            "put_bucket_encryption", ServerSideEncryptionConfiguration={"Rules": [by_default]}
        )

    def closed(self) -> bool:
        none = ("NoSuchPublicAccessBlockConfiguration",)
        found = self._call("get_public_access_block", fine=none) or {}
        return bool(found.get("PublicAccessBlockConfiguration") == CLOSED)

    def close(self) -> None:
        self._call("put_public_access_block", PublicAccessBlockConfiguration=CLOSED)

    def enforced(self) -> bool:
        none = ("OwnershipControlsNotFoundError",)
        found = self._call("get_bucket_ownership_controls", fine=none) or {}
        rules = found.get("OwnershipControls", {}).get("Rules", [])
        return bool(rules == [{"ObjectOwnership": self._wanted.ownership}])

    def enforce(self) -> None:
        rules = [{"ObjectOwnership": self._wanted.ownership}]
        self._call("put_bucket_ownership_controls", OwnershipControls={"Rules": rules})

    def statements(self) -> list[dict[str, Any]]:
        found = self._call("get_bucket_policy", fine=("NoSuchBucketPolicy",))
        return list(json.loads(found["Policy"])["Statement"]) if found else []

    def put_policy(self, others: list[dict[str, Any]]) -> None:
        policy = self._wanted.policy
        whole = policy | {"Statement": [*others, *policy["Statement"]]}
        self._call("put_bucket_policy", Policy=json.dumps(whole))

    def rules(self) -> list[dict[str, Any]]:
        none = ("NoSuchLifecycleConfiguration",)
        return list(
            (self._call("get_bucket_lifecycle_configuration", fine=none) or {}).get("Rules", [])
        )

    def put_rules(self, others: list[dict[str, Any]]) -> None:
        rules = [*others, *map(spelled, self._wanted.rules)]
        self._call("put_bucket_lifecycle_configuration", LifecycleConfiguration={"Rules": rules})

    def tags(self) -> dict[str, str]:
        found = self._call("get_bucket_tagging", fine=("NoSuchTagSet",)) or {}
        return tags_of(found.get("TagSet"))

    def tag(self, tags: dict[str, str]) -> None:
        self._call("put_bucket_tagging", Tagging={"TagSet": tag_list(tags)})


def spelled(rule: Rule) -> dict[str, Any]:
    """A rule as S3 wants it."""
    where: dict[str, Any] = {"Prefix": rule.prefix}
    if rule.larger_than:
        where = {"And": where | {"ObjectSizeGreaterThan": rule.larger_than}}
    made: dict[str, Any] = {"ID": rule.id, "Status": "Enabled", "Filter": where}
    if rule.expire_days:
        made["Expiration"] = {"Days": rule.expire_days}
    if rule.markers:
        made["Expiration"] = {"ExpiredObjectDeleteMarker": True}
    if rule.noncurrent_days:
        made["NoncurrentVersionExpiration"] = {"NoncurrentDays": rule.noncurrent_days}
    if rule.unfinished_days:
        made["AbortIncompleteMultipartUpload"] = {"DaysAfterInitiation": rule.unfinished_days}
    return made


def parsed(found: dict[str, Any]) -> Rule | None:
    """A rule as S3 tells it; None: it is off."""
    if found.get("Status") != "Enabled":
        return None
    where = found.get("Filter") or {}
    where = where.get("And") or where
    ends = found.get("Expiration") or {}
    return Rule(
        id=found.get("ID", ""),
        prefix=where.get("Prefix", found.get("Prefix", "")) or "",
        larger_than=int(where.get("ObjectSizeGreaterThan") or 0),
        expire_days=int(ends.get("Days") or 0),
        markers=bool(ends.get("ExpiredObjectDeleteMarker")),
        noncurrent_days=int(
            (found.get("NoncurrentVersionExpiration") or {}).get("NoncurrentDays") or 0
        ),
        unfinished_days=int(
            (found.get("AbortIncompleteMultipartUpload") or {}).get("DaysAfterInitiation") or 0
        ),
    )
