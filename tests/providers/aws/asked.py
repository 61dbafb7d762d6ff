"""What is asked of AWS by boto3, as names of permissions. All of it is asked all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_NAMED_OTHERWISE = {
    "s3:HeadBucket": {"s3:ListBucket"},
    "s3:ListObjectVersions": {"s3:ListBucketVersions"},
    "s3:ListMultipartUploads": {"s3:ListBucketMultipartUploads"},
    "s3:DeleteObjects": {"s3:DeleteObject", "s3:DeleteObjectVersion"},
    "s3:GetBucketEncryption": {"s3:GetEncryptionConfiguration"},
    "s3:PutBucketEncryption": {"s3:PutEncryptionConfiguration"},
    "s3:GetPublicAccessBlock": {"s3:GetBucketPublicAccessBlock"},
    "s3:PutPublicAccessBlock": {"s3:PutBucketPublicAccessBlock"},
    "s3:GetBucketLifecycleConfiguration": {"s3:GetLifecycleConfiguration"},
    "s3:PutBucketLifecycleConfiguration": {"s3:PutLifecycleConfiguration"},
    "sts:GetCallerIdentity": set[str](),  # that needs none
}
"""By AWS's Service Authorization Reference."""


@contextmanager
def noted() -> Iterator[set[str]]:
    """The permissions that were needed meanwhile."""
    from botocore.client import BaseClient

    found: set[str] = set()
    whole = BaseClient._make_api_call

    def call(self: Any, operation: str, parameters: Any) -> Any:
        name = f"{self.meta.service_model.signing_name}:{operation}"
        found.update(_NAMED_OTHERWISE.get(name, {name}))
        if "TagSpecifications" in (parameters or {}):
            found.add("ec2:CreateTags")
        if "Tags" in (parameters or {}) and name == "iam:CreateRole":
            found.add("iam:TagRole")
        if "Tags" in (parameters or {}) and name == "iam:CreateInstanceProfile":
            found.add("iam:TagInstanceProfile")
        if "IamInstanceProfile" in (parameters or {}) or name == "iam:AddRoleToInstanceProfile":
            found.add("iam:PassRole")
        return whole(self, operation, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", call)
        yield found
