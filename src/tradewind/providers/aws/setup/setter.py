"""What whoever runs `tradewind aws setup` and `teardown` needs: enough to make, look at, mend and
remove what things.py describes, and nothing of machines.

Where AWS lets a permission be limited it is: to the one bucket, to the one role, and removing and
changing of networks to what carries our tag.
"""

from __future__ import annotations

from tradewind.providers.aws.footprint import OWNER, bucket_of, name
from tradewind.providers.aws.setup.policies import Document, allow, document, partition

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
_OF_OBJECTS = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:GetObject",
    "s3:PutObject",
)
_OF_ROLE = (
    "iam:CreateRole",
    "iam:DeleteRole",
    "iam:DeleteRolePolicy",
    "iam:GetRole",
    "iam:GetRolePolicy",
    "iam:ListAttachedRolePolicies",
    "iam:ListRolePolicies",
    "iam:PassRole",
    "iam:PutRolePolicy",
    "iam:TagRole",
    "iam:UpdateAssumeRolePolicy",
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


def setter(store_url: str, region: str, *, private: bool = False, ssm: bool = False) -> Document:
    world, role = partition(region), name(store_url)
    bucket = f"arn:{world}:s3:::{bucket_of(store_url)[0]}"
    ours = {"StringEquals": {f"aws:ResourceTag/{OWNER}": store_url}}

    def ec2(*kinds: str) -> list[str]:
        return [f"arn:{world}:ec2:*:*:{kind}/*" for kind in kinds]

    statements = [
        allow(
            "Look", [*_LOOKED_AT, *(["ec2:DescribeAvailabilityZones"] if private else [])], ["*"]
        ),
        allow("Bucket", _OF_BUCKET, [bucket]),
        allow("Objects", _OF_OBJECTS, [f"{bucket}/*"]),
        allow("Role", _OF_ROLE, [f"arn:{world}:iam::*:role/{role}"]),
        allow("Profile", _OF_PROFILE, [f"arn:{world}:iam::*:instance-profile/{role}"]),
        allow("MakeGroup", ["ec2:CreateSecurityGroup"], ec2("security-group", "vpc")),
        allow("Tag", ["ec2:CreateTags"], ec2("security-group", *(_NETWORK if private else ()))),
        allow(
            "RuleGroup",
            [
                "ec2:AuthorizeSecurityGroupEgress",
                "ec2:AuthorizeSecurityGroupIngress",
                "ec2:DeleteSecurityGroup",
            ],
            ec2("security-group"),
            ours,
        ),
    ]
    if ssm:
        managed = f"arn:{world}:iam::aws:policy/AmazonSSMManagedInstanceCore"
        only = {"ArnEquals": {"iam:PolicyARN": managed}}
        statements.append(allow("Shells", _MANAGED, [f"arn:{world}:iam::*:role/{role}"], only))
    if private:
        statements += [
            allow(
                "MakeNetwork",
                [
                    "ec2:CreateRouteTable",
                    "ec2:CreateSubnet",
                    "ec2:CreateVpc",
                    "ec2:CreateVpcEndpoint",
                ],
                ec2(*_NETWORK),
            ),
            allow(
                "ChangeNetwork",
                [
                    "ec2:AssociateRouteTable",
                    "ec2:DeleteRouteTable",
                    "ec2:DeleteSubnet",
                    "ec2:DeleteVpc",
                    "ec2:DeleteVpcEndpoints",
                    "ec2:DisassociateRouteTable",
                    "ec2:ModifyVpcEndpoint",
                ],
                ec2(*_NETWORK),
                ours,
            ),
        ]
    return document(statements)


_NETWORK = ("vpc", "subnet", "route-table", "vpc-endpoint")
