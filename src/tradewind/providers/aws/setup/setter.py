"""What whoever runs `tradewind setup aws` and `teardown` needs: enough to make, look at, mend and
remove what things.py describes, and nothing of machines.

Where AWS lets a permission be limited it is: to the one bucket, to the one role, and in networks to
what is created with our tag or carries it. Nothing that is there already can be tagged. Of the
bucket it is as good as the owner: whoever may set its policy may allow themselves the rest.

The role is no way to more rights. It can be made and be given policies only while it is inside the
store's permissions boundary, and that boundary can be neither made, changed nor taken off with this
policy: an administrator makes it (`--print boundary`) when they hand this policy out.
"""

from __future__ import annotations

from tradewind.providers.aws.footprint import KEY, is_home, name
from tradewind.providers.aws.setup.policies import (
    Document,
    allow,
    arns,
    at_creation,
    boundary_name,
    created_tagged,
    deny,
    document,
    lend_boundary_name,
    lend_name,
    partition,
    policy_arn,
    tagged,
    to_ec2,
)

_LOOKED_AT = (
    "ec2:DescribeInstances",
    "ec2:DescribeKeyPairs",
    "ec2:DescribeRegions",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
)
_OF_BUCKET = (
    "s3:CreateBucket",
    "s3:DeleteBucket",
    "s3:GetBucketLocation",
    "s3:GetBucketOwnershipControls",
    "s3:GetBucketPolicy",
    "s3:GetBucketPublicAccessBlock",
    "s3:GetBucketTagging",
    "s3:GetBucketVersioning",
    "s3:GetEncryptionConfiguration",
    "s3:GetLifecycleConfiguration",
    "s3:ListBucket",
    "s3:ListBucketMultipartUploads",
    "s3:ListBucketVersions",
    "s3:PutBucketOwnershipControls",
    "s3:PutBucketPolicy",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketTagging",
    "s3:PutBucketVersioning",
    "s3:PutEncryptionConfiguration",
    "s3:PutLifecycleConfiguration",
)
_OF_STORE = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:GetObject",
)
"""Teardown reads which runs are live, and empties a bucket that is to go."""
_BOUNDED = ("iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy")
_OF_ROLE = (
    "iam:DeleteRole",
    "iam:DeleteRolePolicy",
    "iam:GetRole",
    "iam:GetRolePolicy",
    "iam:ListAttachedRolePolicies",
    "iam:ListRolePolicies",
    "iam:TagRole",
)
_OF_PROFILE = (
    "iam:AddRoleToInstanceProfile",
    "iam:CreateInstanceProfile",
    "iam:DeleteInstanceProfile",
    "iam:GetInstanceProfile",
    "iam:RemoveRoleFromInstanceProfile",
    "iam:TagInstanceProfile",
)
_MANAGED = ("iam:AttachRolePolicy", "iam:DetachRolePolicy")
_OF_POLICIES = (
    "iam:CreatePolicy",
    "iam:CreatePolicyVersion",
    "iam:DeletePolicy",
    "iam:DeletePolicyVersion",
    "iam:SetDefaultPolicyVersion",
)
_OF_RULES = (
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:DeleteSecurityGroup",
    "ec2:RevokeSecurityGroupIngress",
)
_INSIDE_VPC = ("ec2:CreateRouteTable", "ec2:CreateSubnet", "ec2:CreateVpcEndpoint")
_OF_NETWORK = (
    "ec2:AssociateRouteTable",
    "ec2:DeleteRouteTable",
    "ec2:DeleteSubnet",
    "ec2:DeleteVpc",
    "ec2:DeleteVpcEndpoints",
    "ec2:DisassociateRouteTable",
    "ec2:ModifyVpcEndpoint",
)


def setter(
    store_url: str,
    region: str,
    *,
    private: bool = False,
    ssm: bool = False,
    lend: bool = False,
) -> Document:
    world, called = partition(region), name(store_url)
    ours, born_ours = tagged(store_url), created_tagged(store_url)
    role = [f"arn:{world}:iam::*:role/{called}"]
    bounded, boundary = _inside(boundary_name(store_url), region)
    lent = [f"arn:{world}:iam::*:role/{lend_name(store_url)}"]
    lent_bounded, lent_boundary = _inside(lend_boundary_name(store_url), region)

    def ec2(*kinds: str) -> list[str]:
        return [f"arn:{world}:ec2:*:*:{kind}/*" for kind in kinds]

    zones = ["ec2:DescribeAvailabilityZones"] if private else []
    network = ("vpc", "subnet", "route-table", "vpc-endpoint") if private else ()
    making = ("CreateVpc", "CreateSubnet", "CreateRouteTable", "CreateVpcEndpoint")
    statements = [
        allow("Look", [*_LOOKED_AT, *zones], ["*"]),
        *_of_store(store_url, region),
        allow("RoleInBoundary", _BOUNDED, role, {"ArnEquals": bounded}),
        allow("Role", _OF_ROLE, [*role, *lent]),  # teardown looks for what is lent, too
        allow("LendRole", ["iam:PassRole"], role, to_ec2(region)),
        allow("Profile", _OF_PROFILE, [f"arn:{world}:iam::*:instance-profile/{called}"]),
        allow(
            "LookAtBoundary", ["iam:GetPolicy", "iam:GetPolicyVersion"], [*boundary, *lent_boundary]
        ),
        deny("KeepBoundaryOn", ["iam:DeleteRolePermissionsBoundary"], role),
        deny("KeepBoundary", _OF_POLICIES, boundary),
        allow("MakeGroup", ["ec2:CreateSecurityGroup"], ec2("security-group"), born_ours),
        allow("MakeGroupIn", ["ec2:CreateSecurityGroup"], ec2("vpc")),
        allow(
            "TagAtBirth",
            ["ec2:CreateTags"],
            ec2("security-group", *network),
            at_creation("CreateSecurityGroup", *(making if private else ())),
        ),
        allow("RuleOurGroups", _OF_RULES, ec2("security-group"), ours),
    ]
    if lend:
        statements += [
            allow("LentInBoundary", _BOUNDED, lent, {"ArnEquals": lent_bounded}),
            deny("KeepLentBoundaryOn", ["iam:DeleteRolePermissionsBoundary"], lent),
            deny("KeepLentBoundary", _OF_POLICIES, lent_boundary),
        ]
    if ssm:
        managed = f"arn:{world}:iam::aws:policy/AmazonSSMManagedInstanceCore"
        only = {"ArnEquals": {"iam:PolicyARN": managed} | bounded}
        statements.append(allow("Shells", _MANAGED, role, only))
    if private:
        statements += [
            allow("MakeNetwork", ["ec2:CreateVpc"], ec2("vpc"), born_ours),
            allow("MakeInside", _INSIDE_VPC, ec2(*network[1:]), born_ours),
            allow("MakeInsideOurs", _INSIDE_VPC, ec2("vpc", "route-table"), ours),
            allow("ChangeNetwork", _OF_NETWORK, ec2(*network), ours),
        ]
    return document(statements)


def _of_store(store_url: str, region: str) -> list[Document]:
    """Nothing of a bucket that is another cloud's."""
    if not is_home(store_url):
        return []
    bucket, prefix = arns(store_url, region)
    return [
        allow("Bucket", _OF_BUCKET, [bucket]),
        allow("Store", _OF_STORE, [f"{prefix}*"]),
        allow("Record", ["s3:PutObject"], [f"{prefix}{KEY}"]),
    ]


def _inside(called: str, region: str) -> tuple[Document, list[str]]:
    """A condition, that a role is inside this boundary; and the boundary itself."""
    own = policy_arn(called, region, "${aws:PrincipalAccount}")
    return {"iam:PermissionsBoundary": own}, [policy_arn(called, region, "*")]
