"""Whether the machines' instance profile is there. EC2 says the same of one that is gone and of one
that was made a moment ago, which it does not know yet: IAM tells them apart."""

from __future__ import annotations

from typing import Any

from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.troubles import code_of

_UNKNOWN = "IAM Instance Profile"


def is_meant(error: Any) -> bool:
    """By EC2's refusal of a launch."""
    words = str(error.response.get("Error", {}).get("Message", ""))
    return code_of(error) == "InvalidParameterValue" and _UNKNOWN in words


def is_gone(account: Account, region: str, name: str) -> bool:
    """False also where IAM cannot be asked: then it may be a new one."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        account.client("iam", region).get_instance_profile(InstanceProfileName=name)
    except ClientError as error:
        return code_of(error) == "NoSuchEntity"
    except BotoCoreError:
        return False
    return False
