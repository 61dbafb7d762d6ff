"""Who we are at AWS, as boto3 finds it out: by the environment, profiles or single sign-on."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import NoAccess


def session() -> Any:
    """A session of boto3 that has credentials. Where boto3 is not installed, an ImportError."""
    import boto3
    from botocore.exceptions import BotoCoreError, PartialCredentialsError

    try:
        made = boto3.Session()
        found = made.get_credentials()
    except PartialCredentialsError as error:
        raise NoAccess(
            str(error), hint="set both halves of the key; or neither, and AWS_PROFILE"
        ) from None
    except BotoCoreError as error:  # such as a profile that there is not
        raise NoAccess(str(error), hint="look at AWS_PROFILE and ~/.aws/config") from None
    if found is None:
        raise NoAccess(
            "there are no AWS credentials",
            hint="`aws configure`, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    return made
