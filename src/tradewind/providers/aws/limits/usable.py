"""Of the ways in which a run could be done, those that this account can really take.

A launch that must fail is not attempted: the way is left out, with the reason and what to do about
it. What cannot be learned is held against nothing: such a way stays, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from tradewind.base import clock
from tradewind.base.units import format_money
from tradewind.model.run import Way
from tradewind.providers.asking import within
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, setup_command
from tradewind.providers.aws.limits import images, prices, quotas, zones
from tradewind.providers.aws.limits.looking import Sight, look
from tradewind.providers.aws.limits.scores import scores
from tradewind.providers.usable import Reason, Usable

_PATIENCE_S = 45.0
_SCORES_S = 15.0
_MOST_SCORES = 4
"""Different questions for scores in one look: EC2 answers few a day."""


def usable(
    account: Account,
    footprint: Footprint,
    ways: Sequence[Way],
    *,
    now: datetime | None = None,
    patience_s: float = _PATIENCE_S,
    with_scores: bool = True,
    store_url: str = "",
) -> Usable:
    """`store_url`: for the commands in hints."""
    ours = [way for way in ways if way.provider == "aws"]
    warnings: list[str] = []
    told = within(patience_s, {"": lambda: zones.regions(account)} if ours else {})
    if ours and not told:
        warnings.append("which regions the account has switched on is not known")
    enabled = told.get("", {})
    reasons = {
        place: reason
        for place, way in enumerate(ways)
        if way.provider == "aws" and (reason := _barred(way, footprint, enabled, store_url))
    }
    open_ways = [
        way for place, way in enumerate(ways) if way.provider == "aws" and place not in reasons
    ]
    sights = look(account, open_ways, now or clock.now(), patience_s)
    warnings += [each for _, sight in sorted(sights.items()) for each in sight.warnings]
    kept: dict[int, Way] = {}
    for place, way in enumerate(ways):
        if way.provider != "aws":
            kept[place] = way
        elif place not in reasons:
            sight = sights[way.region]
            reason = _unfit(way, sight, footprint, store_url) or _over_quota(way, sight)
            if reason:
                reasons[place] = reason
            else:
                kept[place] = _priced(way, sight, footprint)
    _too_dear(kept, reasons)
    warnings += _slow_networks(kept.values(), sights, footprint, store_url)
    return Usable(
        ways=tuple(way for _, way in sorted(kept.items())),
        rejected=tuple(reason for _, reason in sorted(reasons.items(), key=lambda it: it[0])),
        warnings=tuple(dict.fromkeys(warnings)),
        scores=_scores(account, list(kept.values())) if with_scores else {},
    )


def _barred(
    way: Way, footprint: Footprint, enabled: Mapping[str, bool], store_url: str
) -> Reason | None:
    """Without a look at the region."""
    if enabled.get(way.region, True) is False:
        return Reason(
            way=way,
            kind="region_off",
            words=f"the account has not switched {way.region} on",
            hint=f"aws account enable-region --region-name {way.region}",
        )
    if way.region not in footprint.regions:
        return Reason(
            way=way,
            kind="no_setup",
            words=f"nothing is set up in {way.region}",
            hint=setup_command(store_url, way.region),
        )
    return None


def _unfit(way: Way, sight: Sight, footprint: Footprint, store_url: str) -> Reason | None:
    """The zone, or the type in it."""

    def reason(kind: str, words: str, hint: str = "") -> Reason:
        return Reason(way=way, kind=kind, words=words, hint=hint)

    kind, subnets = way.instance_type, footprint.regions[way.region].subnets
    if way.zone and sight.zones is not None:
        zone = sight.zones.get(way.zone)
        if zone is None or not zone.usable:
            return reason("zone_off", f"{way.zone} is not open to this account now")
    if sight.offering is not None:
        selling = sight.offering.get(kind, frozenset())
        others = f"{', '.join(sorted(selling))} does" if selling else ""
        if not selling:
            return reason("not_offered", f"no zone of {way.region} offers {kind}")
        if way.zone and way.zone not in selling:
            return reason("not_offered", f"{way.zone} does not offer {kind}", others)
        if not way.zone and not selling & set(subnets):
            setup = f"{setup_command(store_url, way.region)} makes one in each"
            return reason("no_subnet", f"no zone with a subnet of ours offers {kind}", setup)
    if way.zone and way.zone not in subnets:
        setup = f"{setup_command(store_url, way.region)} makes it"
        return reason("no_subnet", f"there is no subnet of ours in {way.zone}", setup)
    facts = (sight.facts or {}).get(kind)
    undriven = images.undriven(facts) if facts and not footprint.image else ""
    if undriven:
        return reason("no_driver", undriven, images.OWN_IMAGE)
    if way.market == "spot" and facts and not facts.spot:
        return reason("no_spot", f"{kind} is not sold on the spot market")
    return None


def _over_quota(way: Way, sight: Sight) -> Reason | None:
    facts = (sight.facts or {}).get(way.instance_type)
    key = quotas.governing(way.instance_type, way.market)
    quota = (sight.quotas or {}).get(key) if key else None
    if not facts or not quota or quota.limit is None or quota.free is None:
        return None
    needed = facts.vcpus * way.nodes
    if needed <= quota.free:
        return None
    lacking = quota.limit < needed
    in_use = f", of which {quota.used} are in use" if quota.used else ""
    return Reason(
        way=way,
        kind="quota" if lacking else "in_use",
        words=f"{way.words} needs {needed} vCPUs, and the account may have {quota.limit} in"
        f" {way.region}{in_use}: quota {quota.name!r} ({quota.code})",
        hint=f"{quota.raising(needed + (quota.used or 0))}, or {quota.link}",
    )


def _priced(way: Way, sight: Sight, footprint: Footprint) -> Way:
    """EC2 tells what holds now, so it is newer than any catalog."""
    if way.market != "spot" or not sight.prices:
        return way
    price = prices.of(sight.prices, way.instance_type, footprint.zones(way.region, way.zone))
    return way if price is None else way.costing(price)


def _slow_networks(
    ways: Iterable[Way], sights: Mapping[str, Sight], footprint: Footprint, store_url: str
) -> list[str]:
    """EC2 gives no public address to a machine with several interfaces (machines/order.py)."""
    found = []
    for way in ways:
        if way.provider != "aws" or way.nodes < 2 or not footprint.regions[way.region].public:
            continue
        facts = (sights[way.region].facts or {}).get(way.instance_type)
        most = len(facts.efa_cards) if facts else 0
        if facts and most > 1:
            found.append(
                f"{way.instance_type} has {most} EFA interfaces, and machines in {way.region} use"
                f" {int(facts.efa_first)}: their subnets are public. A network of its own uses all:"
                f" {setup_command(store_url, way.region)} --private"
            )
    return found


def _too_dear(kept: dict[int, Way], reasons: dict[int, Reason]) -> None:
    """Spot that costs as much as on-demand is of no use, where on-demand can be had at all."""
    listed: dict[tuple[str, str, int], int] = {}
    for way in kept.values():
        if way.provider == "aws" and way.market == "on_demand":
            key = way.region, way.instance_type, way.nodes
            listed[key] = min(way.price, listed.get(key, way.price))
    for place, way in list(kept.items()):
        price = listed.get((way.region, way.instance_type, way.nodes))
        if way.provider == "aws" and way.market == "spot" and price and way.price >= price:
            del kept[place]
            reasons[place] = Reason(
                way=way,
                kind="price",
                words=f"spot costs {format_money(way.price)} an hour in {way.place} now, and"
                f" on-demand {format_money(price)}",
            )


def _scores(account: Account, ways: Sequence[Way]) -> dict[str, int]:
    asked: dict[tuple[str, int], list[Way]] = {}
    for way in ways:
        if way.provider == "aws" and way.market == "spot" and way.zone:
            asked.setdefault((way.instance_type, way.nodes), []).append(way)

    def ask(kind: str, nodes: int) -> dict[str, int]:
        some = asked[kind, nodes]
        told = scores(account, kind, nodes, {way.region for way in some})
        return {way.what: told[way.zone] for way in some if way.zone in told}

    jobs = {f"{each}": partial(ask, *each) for each in list(asked)[:_MOST_SCORES]}
    found = [each for told in within(_SCORES_S, jobs).values() for each in told.items()]
    return dict(sorted(found, key=lambda it: (-it[1], it[0])))
