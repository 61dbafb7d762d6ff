"""What we may do, as IAM itself tells (testIamPermissions), and whether machines may do what they
must."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from urllib.parse import quote, urlencode

from tradewind.base.errors import NoAccess
from tradewind.base.units import format_names
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers.gcp.checks.findings import found
from tradewind.providers.gcp.footprint import Footprint, setup_command
from tradewind.providers.gcp.setup import accounts, roles
from tradewind.providers.gcp.setup.accounts import BucketPolicy
from tradewind.providers.gcp.setup.calls import Calls

_AT_ONCE = 100
_EXTRA = ("tpu.", "cloudquotas.", "compute.reservations.", "compute.resourcePolicies.")
"""For some runs only."""


def checks(calls: Calls, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    account = footprint.service_account
    lacking: list[tuple[str, str, str]] = []
    if "cloudresourcemanager" not in calls.off:
        for each in _missing_on_project(calls, roles.RUNNER):
            lacking.append((each, f"the project {calls.project}", ""))
    for each in _missing_on_account(calls, account, roles.ACT):
        lacking.append((each, f"the service account {account}", "_act"))
    for each in () if footprint.lent else _missing_on_bucket(calls, footprint.bucket, roles.STORE):
        lacking.append((each, f"the bucket {footprint.bucket}", "_store"))
    grouped: dict[tuple[bool, str, str], list[str]] = {}
    for permission, where, role in lacking:
        grouped.setdefault((permission.startswith(_EXTRA), where, role), []).append(permission)
    for (extra, where, role), names in grouped.items():
        yield found(
            WARNING if extra else BROKEN,
            f"these credentials may not, of {where}: {format_names(names, 6)}",
            why="some runs need it"
            if extra
            else "no controller of these credentials can launch or end machines",
            todo=f"grant them projects/{calls.project}/roles/{footprint.role}{role} there;"
            " `tradewind setup gcp --print role` lists all that is needed, and where",
            measured={"missing": names},
        )
    if not lacking:
        yield found(OK, "machines may be launched, listed and ended, and the store be used")


def _missing_on_project(calls: Calls, wanted: Sequence[str]) -> list[str]:
    path = f"/v3/projects/{calls.project}:testIamPermissions"
    has: set[str] = set()
    for start in range(0, len(wanted), _AT_ONCE):
        asked = {"permissions": list(wanted[start : start + _AT_ONCE])}
        told = calls.send("cloudresourcemanager", "POST", path, "testIamPermissions", asked)
        has.update((told or {}).get("permissions") or ())
    return [each for each in wanted if each not in has]


def _missing_on_account(calls: Calls, email: str, wanted: Sequence[str]) -> list[str]:
    path = f"/v1/projects/{calls.project}/serviceAccounts/{quote(email)}:testIamPermissions"
    if "iam" in calls.off:
        return []
    asked = {"permissions": list(wanted)}
    told = calls.send("iam", "POST", path, "testIamPermissions", asked) or {}
    return [each for each in wanted if each not in (told.get("permissions") or ())]


def _missing_on_bucket(calls: Calls, bucket: str, wanted: Sequence[str]) -> list[str]:
    asked = urlencode([("permissions", each) for each in wanted])
    path = f"/b/{quote(bucket, safe='')}/iam/testPermissions?{asked}"
    told = calls.get("storage", path, "testIamPermissions") or {}
    return [each for each in wanted if each not in (told.get("permissions") or ())]


def machine_checks(calls: Calls, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    """Their service account is there, and has what this version grants, of the bucket. To look at
    the grants is no part of running: who may not is told so."""
    email = footprint.service_account
    path = f"/v1/projects/{calls.project}/serviceAccounts/{quote(email)}"
    told = calls.get("iam", path, "iam.serviceAccounts.get")
    if told is None or told.get("disabled"):
        yield found(
            BROKEN,
            f"the service account {email} is {'disabled' if told else 'not there'}",
            why="machines could reach no bucket",
            todo=setup_command(store_url),
        )
        return
    if footprint.lent:
        yield found(OK, f"machines are {email}, and are lent passes to the store")
        return
    wanted = [grant for grant in roles.grants(store_url) if grant.on == "bucket"]
    policy = BucketPolicy(calls, footprint.bucket)
    try:
        bindings = policy.bindings()
    except NoAccess:
        yield found(
            OK,
            f"machines are {email}; what they may was not compared with what this version grants:"
            " these credentials may not storage.buckets.getIamPolicy",
        )
        return
    change = partial(accounts.granted, calls.project, email, wanted)
    if change(bindings) != bindings:
        yield found(
            WARNING,
            f"{email} may do other things of the bucket than this version grants",
            why="machines may be refused what they must do, or may do more",
            todo=setup_command(store_url),
        )
    else:
        yield found(OK, f"machines are {email}, and may do in the bucket what they must")
