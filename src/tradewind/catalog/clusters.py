"""Which machines are sold with a network between them, and how fast it is.

Unknown means unknown: machines of a marketplace or of a broker are strangers to each other, and a
training that is spread over them would wait for the internet. So several machines are planned with
only where `data/clusters.csv` says that the provider sells them together. Its columns:

    provider, types   globs of types, `|` between them; the first line that fits counts
    together          yes or no
    gbps              Gbit/s of a machine, or `stated`: as the offer says, unknown if it does not
    fabric            what carries it
    evidence          seen: read at the source; recall: general knowledge, not read again
    source, note      where it stands, and what to know of it

Machines of one's own are together where `network` in account.yaml says how fast.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from tradewind.base import csvfile
from tradewind.base.errors import BadFile
from tradewind.catalog.globs import fits

TABLE = Path(__file__).parent / "data" / "clusters.csv"
LEAST_GBPS = 10.0
"""Of a machine, below which several are not tried together."""


class Rule(NamedTuple):
    types: tuple[str, ...]
    together: bool
    gbps: float | None  # None: as the offer states
    fabric: str
    evidence: str
    source: str
    note: str


class Link(NamedTuple):
    """The network between machines of a type. `gbps` is 0 where there is none to count on."""

    gbps: float
    words: str


@cache
def rules() -> dict[str, tuple[Rule, ...]]:
    """By provider, in the order of the table."""
    found: dict[str, list[Rule]] = {}
    for line, cells in csvfile.rows(TABLE):
        if cells["together"] not in ("yes", "no") or cells["evidence"] not in ("seen", "recall"):
            raise BadFile(f"{TABLE} line {line}: together is yes or no, evidence seen or recall")
        stated = cells["gbps"] in ("stated", "")
        rule = Rule(
            types=tuple(cells["types"].lower().split("|")),
            together=cells["together"] == "yes",
            gbps=None if stated else csvfile.number(cells, "gbps"),
            fabric=cells["fabric"],
            evidence=cells["evidence"],
            source=cells["source"],
            note=cells["note"],
        )
        found.setdefault(cells["provider"], []).append(rule)
    return {provider: tuple(several) for provider, several in found.items()}


def link(
    provider: str, instance_type: str, stated_gbps: float | None, *, own: bool = False
) -> Link:
    """`stated_gbps`: what the offer says of the machine's network; None or 0 where it does not."""
    if own:
        if not stated_gbps:
            return Link(0.0, "account.yaml does not say how fast the `network` between them is")
        return _judged(stated_gbps, "the network that account.yaml states")
    rule = _rule(provider, instance_type)
    if rule is None:
        return Link(0.0, f"nothing is known of a network between machines of {provider}")
    source = f"{rule.source}; {rule.evidence}"
    if not rule.together:
        return Link(0.0, f"{rule.note} ({source})")
    rate = rule.gbps if rule.gbps is not None else stated_gbps or 0.0
    if not rate:
        return Link(0.0, f"nobody states how fast the network of {instance_type} is")
    return _judged(rate, f"{rule.fabric} ({source})")


def _judged(gbps: float, words: str) -> Link:
    if gbps < LEAST_GBPS:
        return Link(0.0, f"{gbps:g} Gbit/s is too slow to train over: {words}")
    return Link(gbps, f"{gbps:,g} Gbit/s a machine: {words}")


def _rule(provider: str, instance_type: str) -> Rule | None:
    name = instance_type.lower()
    for rule in rules().get(provider, ()):
        if any(fits(name, glob) for glob in rule.types):
            return rule
    return None
