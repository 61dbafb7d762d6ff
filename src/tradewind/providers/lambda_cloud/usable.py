"""Of a plan's ways, those that Lambda can be asked for, at the prices of now.

What Lambda says it has in a region is of this moment, and no promise: a way without it is kept,
with a warning, since a launch that is refused costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from tradewind.base.errors import NoAccess
from tradewind.base.units import format_names
from tradewind.model.run import Way
from tradewind.providers import recorded
from tradewind.providers.lambda_cloud.api import Api, Offered
from tradewind.providers.lambda_cloud.facts import UNGUARDED
from tradewind.providers.lambda_cloud.footprint import Footprint, setup_command
from tradewind.providers.usable import Reason, Usable

_MICROS_PER_CENT = 10_000


def check_account(api: Api, footprint: Footprint, store_url: str) -> None:
    """That this key is of the account that was set up: Lambda does not tell whose a key is, but
    lists the account's SSH keys, of which one was written down."""
    keys = {each.id: each.name for each in api.ssh_keys()}
    if footprint.ssh_key_id not in keys:
        raise NoAccess(
            f"the key of {api.key_from} is of another account than {store_url} was set up with, or"
            f" the SSH key {footprint.ssh_key} is not there any more",
            hint=f"look at LAMBDA_API_KEY; {setup_command(store_url)} sets this account up",
        )
    if (name := keys[footprint.ssh_key_id]) != footprint.ssh_key:  # machines are asked for by it
        what = f"its SSH key is {footprint.ssh_key!r}, and {footprint.ssh_key_id} is {name!r}"
        raise recorded.differs("lambda", what, setup_command(store_url))


def usable(api: Api, footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
    check_account(api, footprint, store_url)
    offers = api.offers()
    kept: list[Way] = []
    rejected: list[Reason] = []
    for way in ways:
        reason = _reason(offers, footprint, way, store_url)
        if reason is None:
            cents = offers[way.instance_type].instance_type.price_cents_per_hour
            kept.append(replace(way, price=cents * _MICROS_PER_CENT))
        else:
            rejected.append(reason)
    empty = [way.what for way in kept if way.region not in offers[way.instance_type].regions]
    warnings = []
    if empty and len(empty) == len(kept):
        warnings.append(
            f"Lambda has none of these just now: {format_names(list(dict.fromkeys(empty)), 4)};"
            " the run waits until it has"
        )
    return Usable(ways=tuple(kept), rejected=tuple(rejected), warnings=tuple(warnings))


def _reason(
    offers: Mapping[str, Offered], footprint: Footprint, way: Way, store_url: str
) -> Reason | None:
    def because(kind: str, words: str, hint: str = "") -> Reason:
        return Reason(way=way, kind=kind, words=words, hint=hint)

    if way.region not in footprint.regions:
        adds = setup_command(store_url, way.region)
        return because("no_setup", f"nothing is set up in {way.region}", adds)
    if way.market != "on_demand":
        return because("no_spot", "Lambda sells on demand only")
    if way.instance_type not in offers:
        return because("not_offered", f"Lambda has no machines of the type {way.instance_type}")
    if way.nodes > 1 and not footprint.admit:
        return because(
            "apart",
            "machines of Lambda let nobody in, so several of them cannot train together",
            f"{setup_command(store_url)} --admit NETWORK, such as 10.0.0.0/8, opens their firewall"
            " to each other",
        )
    if way.nodes > 1 and way.region in UNGUARDED:
        return because("apart", f"Lambda's firewall rules do not apply in {way.region}")
    return None
