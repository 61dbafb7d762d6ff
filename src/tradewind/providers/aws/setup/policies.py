"""What machines may do, what their users may do, and what nobody may: policies as plain data.

IAM knows which role asks, and of which machine (`aws:userid` ends in its instance id, and
`ec2:SourceInstanceARN` is its ARN), but not which run that machine is of, and neither value is part
of a key in the store. So machines of one store can read each other's runs, and write where machines
write; no machine can touch a journal, a mark of a live run, a bundle, a kit or the record of what
is set up. Who must not trust each other take a store each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tradewind.model.places import DELETED_BY_MACHINES, WRITTEN_BY_MACHINES
from tradewind.providers.aws.footprint import OWNER, bucket_of, is_home, name, secrets_path

Document = dict[str, Any]

NEVER_WRITTEN = ("journal", "volumes", "job")
"""Of runs. In a pattern `*` matches slashes too, so `runs/*/logs/*` alone would let a machine put
`logs/x` below somebody's journal: these are denied in so many words."""

NEVER_TOUCHED = ("live", "kits", "providers", "controllers", "keys")
"""Of the store."""

TLS_ONLY = "TradewindTlsOnly"


def partition(region: str) -> str:
    """The first part of every ARN there: China and GovCloud are worlds of their own."""
    for start, found in (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov")):
        if region.startswith(start):
            return found
    return "aws"


def trust(region: str) -> Document:
    """EC2, and it alone, may lend this role, to the machines that it runs."""
    allowed = {"Principal": {"Service": _service(region)}, "Action": "sts:AssumeRole"}
    return document([{"Effect": "Allow", **allowed}])


def _service(region: str) -> str:
    return "ec2.amazonaws.com.cn" if partition(region) == "aws-cn" else "ec2.amazonaws.com"


def machines(store_url: str, region: str) -> Document:
    if not is_home(store_url):
        return document(_secrets(store_url, region))  # by a pass they are somebody to the rest
    bucket, prefix = arns(store_url, region)
    statements = [
        allow("List", ["s3:ListBucket"], [bucket], _listing(store_url, "runs/*")),
        allow("Read", ["s3:GetObject"], [f"{prefix}runs/*", f"{prefix}kits/*"]),
        allow(
            "Write",
            ["s3:PutObject", "s3:AbortMultipartUpload"],
            [f"{prefix}runs/*/{folder}/*" for folder in WRITTEN_BY_MACHINES],
        ),
        allow(
            "Prune",
            ["s3:DeleteObject"],
            [f"{prefix}runs/*/{folder}/*" for folder in DELETED_BY_MACHINES],
        ),
        deny(
            "NeverWrite",
            ["s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"],
            [
                *(f"{prefix}runs/*/{folder}/*" for folder in NEVER_WRITTEN),
                *(f"{prefix}{folder}/*" for folder in NEVER_TOUCHED),
            ],
        ),
        # Who has the store's seed can speak for every machine (tradewind/base/signing.py).
        deny("NeverRead", ["s3:GetObject", "s3:GetObjectVersion"], [f"{prefix}keys/*"]),
        *_secrets(store_url, region),
    ]
    return document(statements)


LONGEST_PASS_S = 12 * 3600
"""Of a session of the lending role, by AWS."""


def lend_name(store_url: str) -> str:
    return f"{name(store_url)}-lend"


def lend_arn(store_url: str, region: str, account: str) -> str:
    return f"arn:{partition(region)}:iam::{account}:role/{lend_name(store_url)}"


def trust_account(region: str, account: str) -> Document:
    """Whoever of this account is allowed it by a policy of their own."""
    root = f"arn:{partition(region)}:iam::{account}:root"
    allowed = {"Principal": {"AWS": root}, "Action": "sts:AssumeRole"}
    return document([{"Effect": "Allow", **allowed}])


def lending(store_url: str, region: str) -> Document:
    """What can be lent to machines that are nobody here: what machines may, and no secrets. A pass
    is this role with a policy of its session, which names the run (store/lending/s3.py)."""
    _, prefix = arns(store_url, region)
    kept = [each for each in machines(store_url, region)["Statement"] if each["Sid"] in _LENT]
    passes = f"{prefix}passes/*"
    never = ["s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"]
    return document(
        [*kept, allow("Renewed", ["s3:GetObject"], [passes]), deny("NeverLend", never, [passes])]
    )


_LENT = ("List", "Read", "Write", "Prune", "NeverWrite", "NeverRead")


def _secrets(store_url: str, region: str) -> list[Document]:
    """Those of this store's jobs, by their names."""
    world, path = partition(region), secrets_path(store_url)
    parameters = f"arn:{world}:ssm:*:*:parameter/{path}*"
    entries = f"arn:{world}:secretsmanager:*:*:secret:{path}*"
    return [
        allow("Parameters", ["ssm:GetParameter"], [parameters]),
        allow("Secrets", ["secretsmanager:GetSecretValue"], [entries]),
    ]


def boundary_name(store_url: str) -> str:
    return f"{name(store_url)}-boundary"


def lend_boundary_name(store_url: str) -> str:
    """Of the lending role. What it may do is its own policy, once more."""
    return f"{lend_name(store_url)}-boundary"


def policy_arn(called: str, region: str, account: str) -> str:
    return f"arn:{partition(region)}:iam::{account}:policy/{called}"


def boundary(store_url: str, region: str) -> Document:
    """The most that the role of machines may ever do, whatever policies somebody puts on it: what
    it does, and shells. A boundary allows nothing by itself, so shells are in it with `--ssm` and
    without. AWS's own policy for them would also read every parameter of the account: not here."""
    machine = machines(store_url, region)["Statement"]
    return document([*machine, allow("Shells", list(_SHELLS), ["*"])])


_SHELLS = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
    # Older agents are told of a session this way.
    "ec2messages:AcknowledgeMessage",
    "ec2messages:DeleteMessage",
    "ec2messages:FailMessage",
    "ec2messages:GetEndpoint",
    "ec2messages:GetMessages",
    "ec2messages:SendReply",
)


def bucket(store_url: str, region: str) -> Document:
    """Whoever it is, and whatever else they may: not without TLS."""
    arn = f"arn:{partition(region)}:s3:::{bucket_of(store_url)[0]}"
    return document([{
        "Sid": TLS_ONLY,
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }])  # fmt: skip


def user(
    store_url: str,
    region: str,
    *,
    ssm: bool = False,
    lend: bool = False,
    image: str = "",
    key_pair: str = "",
) -> Document:
    """Of the person or the CI that runs Tradewind; not enough to set it up (setter.py). `image`: a
    parameter of the account's own that names one."""
    world, role = partition(region), name(store_url)
    statements = [
        allow("Look", list(_LOOKED_AT), ["*"]),
        *_renting(store_url, world, key_pair),
        allow(
            "LendOurRole",
            ["iam:PassRole"],
            [f"arn:{world}:iam::*:role/{role}"],
            to_ec2(region),
        ),
        allow(
            "SeeOurRole",
            ["iam:GetInstanceProfile"],
            [f"arn:{world}:iam::*:instance-profile/{role}"],
        ),
        allow(
            "FirstSpotMachine",
            ["iam:CreateServiceLinkedRole"],
            [f"arn:{world}:iam::*:role/aws-service-role/spot.amazonaws.com/*"],
            {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
        ),
        allow("Images", ["ssm:GetParameter"], _parameters(world, image)),
        *_using(store_url, region),
    ]
    if lend:
        statements.append(
            allow("LendPasses", ["sts:AssumeRole"], [lend_arn(store_url, region, "*")])
        )
    return document(statements + (_shell(world, store_url) if ssm else []))


def _using(store_url: str, region: str) -> list[Document]:
    if not is_home(store_url):
        return []
    bucket, prefix = arns(store_url, region)
    used = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    return [
        allow("ListStore", ["s3:ListBucket"], [bucket], _listing(store_url, "*")),
        allow("UseStore", used, [f"{prefix}*"]),
    ]


def _renting(store_url: str, world: str, key_pair: str) -> list[Document]:
    """Of machines that carry our tag, and of what belongs to them."""
    ours, born_ours = tagged(store_url), created_tagged(store_url)

    def ec2(*kinds: str, id_: str = "*") -> list[str]:
        return [f"arn:{world}:ec2:*:*:{kind}/{id_}" for kind in kinds]

    return [
        allow(
            "RunOurs",
            ["ec2:RunInstances"],
            ec2("instance", "volume", "network-interface"),
            born_ours,
        ),
        # One that is there already brings its own groups and address. What a launch creates has no
        # id yet, and is asked for as network-interface/*.
        deny("NoInterfaceOfOthers", ["ec2:RunInstances"], ec2("network-interface", id_="eni-*")),
        allow("RunBehindOurGroup", ["ec2:RunInstances"], ec2("security-group"), ours),
        allow(
            "RunFrom",
            ["ec2:RunInstances"],
            [
                *(f"arn:{world}:ec2:*::{kind}/*" for kind in ("image", "snapshot")),
                *ec2("subnet", "placement-group"),
                *ec2("spot-instances-request", "capacity-reservation"),
                *(ec2("key-pair", id_=key_pair) if key_pair else ()),
            ],
        ),
        allow("MakeGroup", ["ec2:CreateSecurityGroup"], ec2("security-group"), born_ours),
        allow("MakeGroupIn", ["ec2:CreateSecurityGroup"], ec2("vpc")),
        allow(
            "RuleOurGroups",
            [
                "ec2:AuthorizeSecurityGroupEgress",
                "ec2:AuthorizeSecurityGroupIngress",
                "ec2:DeleteSecurityGroup",
            ],
            ec2("security-group"),
            ours,
        ),
        allow("GroupOurs", ["ec2:CreatePlacementGroup"], ec2("placement-group"), born_ours),
        allow(
            "TagAtBirth",
            ["ec2:CreateTags"],
            ec2("instance", "volume", "network-interface", "spot-instances-request")
            + ec2("placement-group", "security-group"),
            at_creation("RunInstances", "CreatePlacementGroup", "CreateSecurityGroup"),
        ),
        allow("EndOurs", ["ec2:TerminateInstances"], ec2("instance"), ours),
        allow("UngroupOurs", ["ec2:DeletePlacementGroup"], ec2("placement-group"), ours),
    ]


_LOOKED_AT = (
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeRegions",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotInstanceRequests",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
    "ec2:GetEbsDefaultKmsKeyId",
    "ec2:GetSpotPlacementScores",
    "servicequotas:GetServiceQuota",
    "servicequotas:ListServiceQuotas",
    "sts:DecodeAuthorizationMessage",
)
"""Things that can only be allowed for all, or not at all. They change nothing."""


def _parameters(world: str, image: str) -> list[str]:
    own = [f"arn:{world}:ssm:*:*:parameter{image}"] if image.startswith("/") else []
    # AWS's own belong to no account.
    return [*(f"arn:{world}:ssm:*:{a}:parameter/aws/service/*" for a in ("", "*")), *own]


def _shell(world: str, store_url: str) -> list[Document]:
    """A shell on a machine, through Systems Manager: only on ours, and only one's own sessions."""
    return [
        allow(
            "ShellOnOurs",
            ["ssm:StartSession"],
            [f"arn:{world}:ec2:*:*:instance/*"],
            {"StringEquals": {f"ssm:resourceTag/{OWNER}": store_url}},
        ),
        allow(
            "ShellsOfKinds",
            ["ssm:StartSession"],
            [
                f"arn:{world}:ssm:*:*:document/SSM-SessionManagerRunShell",
                f"arn:{world}:ssm:*::document/AWS-StartSSHSession",
                f"arn:{world}:ssm:*::document/AWS-StartInteractiveCommand",
            ],
        ),
        allow(
            "EndOwnShells",
            ["ssm:TerminateSession", "ssm:ResumeSession"],
            [f"arn:{world}:ssm:*:*:session/${{aws:userid}}-*"],
        ),
    ]


def _listing(store_url: str, below: str) -> Document | None:
    """Only below the store's prefix. Of a key that is not there S3 says so (404) only to those who
    may list, and asks that without a prefix: hence IfExists. Who lists without a prefix then sees
    the names of all keys in the bucket, so stores that must not know of each other take a bucket
    each. A store that is a whole bucket needs no condition."""
    prefix = bucket_of(store_url)[1]
    return {"StringLikeIfExists": {"s3:prefix": [f"{prefix}{below}"]}} if prefix else None


def arns(store_url: str, region: str) -> tuple[str, str]:
    """Of the bucket, and what the ARNs of its objects begin with."""
    found, prefix = bucket_of(store_url)
    arn = f"arn:{partition(region)}:s3:::{found}"
    return arn, f"{arn}/{prefix}"


def allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], only_if: Document | None = None
) -> Document:
    made: Document = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": list(actions),
        "Resource": list(resources),
    }
    return made | ({"Condition": only_if} if only_if else {})


def deny(sid: str, actions: Sequence[str], resources: Sequence[str]) -> Document:
    """Whatever other policies allow."""
    return allow(sid, actions, resources) | {"Effect": "Deny"}


def tagged(store_url: str) -> Document:
    """Only what carries the store's tag already."""
    return {"StringEquals": {f"aws:ResourceTag/{OWNER}": store_url}}


def created_tagged(store_url: str) -> Document:
    """Only what is created with the store's tag."""
    return {"StringEquals": {f"aws:RequestTag/{OWNER}": store_url}}


def at_creation(*actions: str) -> Document:
    """Tags only by what creates the tagged thing: whoever may tag what is there already makes it
    ours, and then may change or delete it."""
    return {"StringEquals": {"ec2:CreateAction": list(actions)}}


def to_ec2(region: str) -> Document:
    """A role only for machines, not for some function that runs with it."""
    return {"StringEquals": {"iam:PassedToService": _service(region)}}


def document(statements: list[Document]) -> Document:
    return {"Version": "2012-10-17", "Statement": statements}
