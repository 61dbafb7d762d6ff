"""Whether machines of Lambda could be rented from here now. Nothing is bought or changed."""

from __future__ import annotations

from collections.abc import Iterator

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.model.finding import BROKEN, MISSING, OK, WARNING, About, Finding
from tradewind.providers.lambda_cloud import names
from tradewind.providers.lambda_cloud.api import ENDING, Api, Offered
from tradewind.providers.lambda_cloud.footprint import Footprint, called, setup_command
from tradewind.providers.lambda_cloud.usable import check_account

_found = About("lambda")


def checks(
    api: Api, footprint: Footprint | None, *, known: bool, store_url: str
) -> Iterator[Finding]:
    try:
        offers = api.offers()
        up = api.instances()
        yield _found(OK, f"the key of {api.key_from} is accepted")
        if footprint is None:
            if known:
                yield _found(
                    MISSING,
                    "nothing is set up for this store",
                    why="renting machines of Lambda",
                    todo=setup_command(store_url),
                )
            return
        yield from _account(api, footprint, store_url)
        yield _capacity(offers, footprint)
        yield from _firewall(api, footprint, store_url)
        owner = names.owner_of(store_url)
        ours = [
            each
            for each in up
            if each.status not in ENDING
            and (name := names.parsed(each.name)) is not None
            and name.owner == owner
        ]
        yield _found(
            OK,
            f"{len(ours)} of the account's {len(up)} machines are of this store; Lambda bills each"
            " until a controller ends it, also after it has shut down",
            measured={"machines": len(ours)},
        )
    except TradewindError as error:
        yield _found(
            BROKEN if isinstance(error, NoAccess) else WARNING,
            "no key is accepted" if isinstance(error, NoAccess) else "Lambda did not answer",
            why=error.message,
            todo=error.hint or "run it again",
        )


def _account(api: Api, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    try:
        check_account(api, footprint, store_url)
    except NoAccess as error:
        yield _found(
            BROKEN, "another account, or no SSH key", why=error.message, todo=error.hint or ""
        )
    else:
        yield _found(OK, f"machines are launched with the SSH key {footprint.ssh_key}")


def _capacity(offers: dict[str, Offered], footprint: Footprint) -> Finding:
    here = set(footprint.regions)
    now = sorted(name for name, offered in offers.items() if offered.regions & here)
    if not now:
        return _found(
            WARNING,
            "none of the regions that are set up has a machine just now",
            why="launches will be refused",
            todo="tradewind setup lambda --region REGION adds one",
        )
    some = ", ".join(now[:6]) + (" …" if len(now) > 6 else "")
    return _found(
        OK, f"{len(now)} of {len(offers)} types are available now: {some}", measured={"types": now}
    )


def _firewall(api: Api, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    if not footprint.admit:
        yield _found(OK, "machines let nobody in but by SSH: runs have one machine")
        return
    name = called(store_url)
    there = {rule.get("source_network") for rule in api.rules() if rule.get("description") == name}
    if footprint.admit in there:
        yield _found(OK, f"machines let each other in from {footprint.admit}")
    else:
        yield _found(
            BROKEN,
            f"the firewall rule {name} is not there any more",
            why="several machines cannot train together",
            todo=f"{setup_command(store_url)} --admit {footprint.admit}",
        )
