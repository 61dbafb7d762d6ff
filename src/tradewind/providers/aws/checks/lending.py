"""Whether the role that setup has made for lending is there, and passes can be made of it.

AWS refuses to assume a role that is not there as it refuses one that is not ours to assume, so both
are asked. The session that is assumed here may do nothing, and nobody keeps it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers.aws.checks.permissions import found
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, setup_command
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import Refused

_LEAST_S = 900
"""AWS makes no shorter ones."""
_NOTHING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}],
}
_WHY = "machines of other clouds could not be lent passes to the store"


def lending_checks(account: Account, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    if not footprint.lending_role:
        return
    name = footprint.lending_role.rpartition("/")[2]
    mend = f"{setup_command(store_url)} --lend"
    if _is_gone(account, name):
        yield found(BROKEN, f"the lending role {name} is not there", why=_WHY, todo=mend)
        return
    try:
        with explained(f"assuming the lending role {name}"):
            account.client("sts", account.region or "us-east-1").assume_role(
                RoleArn=footprint.lending_role,
                RoleSessionName="tradewind-doctor",
                DurationSeconds=_LEAST_S,
                Policy=json.dumps(_NOTHING),
            )
    except TradewindError as error:
        refused = isinstance(error, Refused | NoAccess)
        yield found(
            BROKEN if refused else WARNING,
            f"the lending role {name} {'may' if refused else 'could'} not be assumed",
            why=f"{_WHY}: {error.message}",
            todo=f"{mend} fixes the role; `{mend} --print policy` has what these credentials need"
            if refused
            else "run it again",
        )
        return
    yield found(OK, f"passes can be lent by the role {name}")


def _is_gone(account: Account, name: str) -> bool:
    """As far as these credentials may look: lending needs no permission to."""
    try:
        with explained(f"looking at the role {name}"):
            account.client("iam", account.region or "us-east-1").get_role(RoleName=name)
    except Refused as error:
        return error.kind == "not_found"
    except TradewindError:
        return False  # assuming it will tell
    return False
