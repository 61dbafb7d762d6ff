"""Whether machines of AWS could be rented from here now: who we are, the clock, the role, and in
each region image, network, permissions and quotas (regions.py). Nothing is bought or changed:
what would be is asked as a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers.asking import within
from tradewind.providers.aws.checks import regions
from tradewind.providers.aws.checks.lending import lending_checks
from tradewind.providers.aws.checks.permissions import found, todo
from tradewind.providers.aws.checks.policies import policy_checks
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, setup_command
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import Refused

FAR_S = 60.0
"""AWS refuses requests that are five minutes wrong, some services sooner."""
_PATIENCE_S = 60.0


def checks(
    account: Account,
    footprint: Footprint | None,
    *,
    known: bool = True,
    store_url: str = "",
    patience_s: float = _PATIENCE_S,
    now_s: Callable[[], float] = clock.epoch,
) -> Iterator[Finding]:
    """`footprint`: what setup has left in the store; None: nothing, or it is not `known`.
    `store_url`: the owner of our machines."""
    who = list(_who(account, footprint, now_s))
    yield from who
    if any(finding.level == BROKEN for finding in who):
        return  # nothing else would be answered
    if footprint is None:
        if known:
            yield _without_setup(store_url)
        if account.region:
            yield from regions.quota_checks(account, account.region)
        return
    yield from _role(account, footprint, store_url)
    yield from _policies(account, footprint, store_url)
    yield from lending_checks(account, footprint, store_url)
    jobs = {
        region: partial(regions.region_checks, account, footprint, region, store_url)
        for region in footprint.regions
    }
    told = within(patience_s, jobs)
    for region in sorted(jobs):
        yield from told.get(region) or [_unanswered(region, patience_s)]


def _who(
    account: Account, footprint: Footprint | None, now_s: Callable[[], float]
) -> Iterator[Finding]:
    before = now_s()
    try:
        with explained("asking AWS who we are"):
            sts = account.client("sts", account.region or "us-east-1")
            told = sts.get_caller_identity()
    except TradewindError as error:
        cause = getattr(error.__cause__, "response", {})
        yield found(
            BROKEN if isinstance(error, NoAccess | Refused) else WARNING,
            "the credentials are not accepted"
            if isinstance(error, NoAccess)
            else "AWS could not be asked who we are",
            why=error.message,
            todo=todo(error, "run it again; `aws sts get-caller-identity` tries the same"),
            measured={"error": type(error).__name__},
        )
        yield from _clock(cause, (before + now_s()) / 2, told_ok=False)
        return
    number, name = told["Account"], str(told["Arn"]).rpartition(":")[2]
    if footprint is not None and footprint.account != number:
        yield found(
            BROKEN,
            f"the credentials are of account {number}, and the store's machines of"
            f" {footprint.account}",
            why="none of them would be seen, and none could be launched beside them",
            todo="look at AWS_PROFILE and `aws sts get-caller-identity`",
            measured={"account": number},
        )
    else:
        yield found(OK, f"account {number}, as {name}", measured={"account": number})
    yield from _clock(told, (before + now_s()) / 2, told_ok=True)


def _clock(told: Mapping[str, Any], now_s: float, *, told_ok: bool) -> Iterator[Finding]:
    """By the date that an answer carries, whether it was a good one or not."""
    date = told.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        skew = now_s - parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return  # no answer, or one without a date: said already
    if abs(skew) > FAR_S:
        yield found(
            BROKEN,
            f"this computer's clock is {abs(skew):,.0f} s {'ahead' if skew > 0 else 'behind'}",
            why="AWS refuses requests whose time is wrong, and says that the keys are",
            todo="set it: `timedatectl set-ntp true`",
            measured={"skew_s": round(skew, 1)},
        )
    elif told_ok:
        yield found(
            OK, "this computer's clock agrees with AWS's", measured={"skew_s": round(skew, 1)}
        )


def _role(account: Account, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    name = footprint.instance_profile
    try:
        with explained(f"looking at the instance profile {name}"):
            iam = account.client("iam", account.region or "us-east-1")
            profile = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    except TradewindError as error:
        gone = isinstance(error, Refused) and error.kind == "not_found"
        yield found(
            BROKEN if gone else WARNING,
            f"the instance profile {name} {'is not there' if gone else 'could not be looked at'}",
            why="machines could reach no bucket" if gone else error.message,
            todo=setup_command(store_url)
            if gone
            else "allow iam:GetInstanceProfile, to have it checked",
        )
        return
    if not profile.get("Roles"):
        yield found(
            BROKEN,
            f"the instance profile {name} has no role",
            why="machines could reach no bucket",
            todo=setup_command(store_url),
        )
        return
    yield found(OK, f"machines have the role {profile['Roles'][0]['RoleName']}")


def _policies(account: Account, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    try:
        yield from policy_checks(account, footprint, store_url)
    except TradewindError as error:
        yield found(
            WARNING,
            "policies could not be looked at",
            why=error.message,
            todo=todo(error, "run it again"),
        )


def _without_setup(store_url: str) -> Finding:
    return found(
        WARNING,
        "nothing is set up for this store",
        why="without network and role no machine is launched",
        todo=setup_command(store_url),
    )


def _unanswered(region: str, patience_s: float) -> Finding:
    return found(
        WARNING,
        f"{region} has not answered within {patience_s:g} s",
        why="what is there was not looked at",
        todo="run it again",
    )
