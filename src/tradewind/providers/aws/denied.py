"""What AWS means when it says no: the message behind that is encoded, and only AWS reads it."""

from __future__ import annotations

import re
from typing import Any

from msgspec import DecodeError, json

from tradewind.base.errors import TradewindError
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import Refused

_ENCODED = re.compile(r"Encoded authorization failure message: (\S+)")


def decoded(account: Account, region: str, refused: Refused) -> Refused:
    """The same, with what was not allowed on what; as it is where AWS does not say, or we may not
    ask for that either."""
    response: dict[str, Any] = getattr(refused.__cause__, "response", {})
    found = _ENCODED.search(str(response.get("Error", {}).get("Message", "")))
    if found is None:
        return refused
    try:
        with explained("asking AWS why"):
            sts = account.client("sts", region)
            told = sts.decode_authorization_message(EncodedMessage=found[1])
        said = json.decode(told["DecodedMessage"])
    except (TradewindError, DecodeError, KeyError):
        return refused
    words = _words(said)
    if not words:
        return refused
    made = Refused(refused.kind, f"{refused.message} ({words})", hint=refused.hint)
    made.__cause__ = refused.__cause__
    return made


def _words(said: Any) -> str:
    context = said.get("context", {}) if isinstance(said, dict) else {}
    action, resource = context.get("action", ""), context.get("resource", "")
    if not action:
        return ""
    how = "a policy forbids" if said.get("explicitDeny") else "no policy allows"
    return f"{how} {action} on {resource}" if resource else f"{how} {action}"
