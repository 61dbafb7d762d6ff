"""AWS's error codes, in one table, and what each means to us.

Five kinds are Refused: nothing was bought, and a caller acts differently on each (base.py).
`unknown` is OutcomeUnknown: it may have been done. What is in no row is taken for unknown when it
is the server's fault (5xx), else for not allowed: nothing was done, and asking again will not help.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.providers.base import OutcomeUnknown, Refused

_SETUP = "tradewind doctor aws says what is missing; tradewind setup aws makes it"
_KEYS = "renew them: `aws sso login`, or new keys; `aws sts get-caller-identity` tries them"


class Row(NamedTuple):
    kind: str
    """Of base.KINDS, or unknown, or no_access: we are nobody there."""
    hint: str = ""


TABLE = {
    # There is none to be had now.
    "InsufficientInstanceCapacity": Row("no_capacity"),
    "InsufficientHostCapacity": Row("no_capacity"),
    "InsufficientReservedInstanceCapacity": Row("no_capacity"),
    "InsufficientCapacity": Row("no_capacity"),
    "InsufficientCapacityOnOutpost": Row("no_capacity"),
    "ReservationCapacityExceeded": Row("no_capacity"),
    "UnfulfillableCapacity": Row("no_capacity"),
    "InsufficientVolumeCapacity": Row("no_capacity"),
    "InsufficientAddressCapacity": Row("no_capacity"),
    "SpotMaxPriceTooLow": Row("no_capacity"),
    "MaxSpotFleetRequestCountExceeded": Row("no_capacity"),
    "Unsupported": Row("not_found"),
    "UnsupportedOperation": Row("not_allowed"),
    # The account may not have so many.
    "VcpuLimitExceeded": Row(
        "no_quota", "tradewind doctor aws names the quota and how to raise it"
    ),
    "InstanceLimitExceeded": Row("no_quota", "tradewind doctor aws names the quota"),
    "MaxSpotInstanceCountExceeded": Row("no_quota", "tradewind doctor aws names the quota"),
    "VolumeLimitExceeded": Row("no_quota", "raise the EBS quota of this region"),
    "MaxIOPSLimitExceeded": Row("no_quota", "raise the EBS quota of this region"),
    "ResourceCountLimitExceeded": Row("no_quota"),
    "AddressLimitExceeded": Row("no_quota"),
    "InsufficientFreeAddressesInSubnet": Row("no_capacity", "its subnet has no address left"),
    "PlacementGroupLimitExceeded": Row("no_quota", "tradewind sweep removes unused ones"),
    "LimitExceeded": Row("no_quota"),
    # Ask again, later.
    "RequestLimitExceeded": Row("throttled"),
    "Throttling": Row("throttled"),
    "ThrottlingException": Row("throttled"),
    "RequestThrottled": Row("throttled"),
    "TooManyRequestsException": Row("throttled"),
    "SlowDown": Row("throttled"),
    "EC2ThrottledException": Row("throttled"),
    "ConcurrentTagAccess": Row("throttled"),
    "IncorrectState": Row("throttled"),
    "DependencyViolation": Row("throttled"),
    # We may not.
    "UnauthorizedOperation": Row("not_allowed", _SETUP),
    "AccessDenied": Row("not_allowed", _SETUP),
    "AccessDeniedException": Row("not_allowed", _SETUP),
    "OperationNotPermitted": Row("not_allowed"),
    "OptInRequired": Row("not_allowed", "the account must be signed up for this service first"),
    "PendingVerification": Row(
        "not_allowed", "AWS is still verifying the account; ask its support"
    ),
    "Blocked": Row("not_allowed", "the account is blocked; ask AWS's support"),
    "InvalidParameterValue": Row("not_allowed"),
    "InvalidParameterCombination": Row("not_allowed"),
    "MissingParameter": Row("not_allowed"),
    # What was named is not there.
    "InvalidAMIID.NotFound": Row("not_found", "the image is of another region, or gone"),
    "InvalidAMIID.Unavailable": Row("not_found"),
    "InvalidAMIID.Malformed": Row("not_found"),
    "InvalidSubnetID.NotFound": Row("not_found", _SETUP),
    "InvalidGroup.NotFound": Row("not_found", _SETUP),
    "InvalidSecurityGroupID.NotFound": Row("not_found", _SETUP),
    "InvalidVpcID.NotFound": Row("not_found", _SETUP),
    "InvalidInstanceID.NotFound": Row("not_found"),
    "InvalidInstanceID.Malformed": Row("not_found"),
    "InvalidInstanceType": Row("not_found"),
    # One that was just made is not known everywhere yet.
    "InvalidPlacementGroup.Unknown": Row("throttled"),
    "InvalidCapacityReservationId.NotFound": Row("not_found"),
    "ParameterNotFound": Row("not_found"),
    "NoSuchEntity": Row("not_found", _SETUP),
    "NoSuchBucket": Row("not_found", _SETUP),
    # Who are we? Nothing was done.
    "AuthFailure": Row("no_access", _KEYS),
    "UnrecognizedClientException": Row("no_access", _KEYS),
    "InvalidClientTokenId": Row("no_access", _KEYS),
    "InvalidAccessKeyId": Row("no_access", _KEYS),
    "SignatureDoesNotMatch": Row("no_access", _KEYS),
    "ExpiredToken": Row("no_access", _KEYS),
    "ExpiredTokenException": Row("no_access", _KEYS),
    "RequestExpired": Row("no_access", "this computer's clock may be wrong: `timedatectl` tells"),
    "RequestTimeTooSkewed": Row("no_access", "this computer's clock is wrong: `timedatectl` tells"),
    # Done, perhaps.
    "IdempotentParameterMismatch": Row("unknown"),
    "InternalError": Row("unknown"),
    "InternalFailure": Row("unknown"),
    "ServiceUnavailable": Row("unknown"),
    "Unavailable": Row("unknown"),
}


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """What AWS answers badly within, in our words: Refused, OutcomeUnknown, or NoAccess."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except ClientError as error:
        raise of_code(doing, error) from error
    except BotoCoreError as error:
        raise _without_answer(doing, error) from error
    except ResponseParserError as error:  # a page of some proxy: no BotoCoreError, unlike the rest
        raise OutcomeUnknown(f"{doing}: {_short(str(error))}") from error


def of_code(doing: str, error: Any) -> TradewindError:
    """Of botocore's ClientError."""
    told = error.response.get("Error", {})
    code, words = str(told.get("Code", "")), str(told.get("Message", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    row = TABLE.get(code) or Row("unknown" if status >= 500 else "not_allowed")
    if code == "InvalidParameterValue" and "IAM Instance Profile" in words:
        # EC2 does not know a new one for a minute (machines/profile.py: or it is gone).
        row = Row("throttled", _SETUP)
    if code == "AuthFailure" and "image" in words.lower():
        row = Row("not_found", "the image is not shared with this account")
    message = f"{doing}: {code}: {_short(words)}"
    if row.kind == "unknown":
        return OutcomeUnknown(message, hint=row.hint or None)
    if row.kind == "no_access":
        return NoAccess(message, hint=row.hint)
    return Refused(row.kind, message, hint=row.hint or None)


def code_of(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _without_answer(doing: str, error: Exception) -> TradewindError:
    """A request that was sent may have been carried out; one that never left was not."""
    from botocore import exceptions as known

    message = f"{doing}: {_short(str(error))}"
    if isinstance(error, known.NoCredentialsError | known.PartialCredentialsError):
        return NoAccess(message, hint=_KEYS)
    if isinstance(error, known.TokenRetrievalError | known.SSOError):
        return NoAccess(message, hint=_KEYS)
    if isinstance(error, known.CredentialRetrievalError):
        return NoAccess(message, hint=_KEYS)
    if isinstance(error, known.EndpointConnectionError | known.ConnectTimeoutError):
        return Refused("throttled", message, hint="check the network, and that the region exists")
    if isinstance(error, known.ParamValidationError):
        return Refused("not_allowed", message)
    return OutcomeUnknown(
        message, hint="unknown whether AWS did it; the next pass checks before trying again"
    )


def _short(words: str) -> str:
    """AWS puts an encoded message of a kilobyte behind a refusal; troubles that are told again and
    again should not."""
    words = re.sub(r"\s*Encoded authorization failure message: \S+", "", " ".join(words.split()))
    return words if len(words) <= 400 else words[:399] + "…"
