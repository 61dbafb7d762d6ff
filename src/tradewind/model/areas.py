"""Where data may be, as people say it: countries by their two letters, and groups of them."""

from __future__ import annotations

_EU = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
_ASIA = (
    "AE AF AM AZ BD BH BN BT CN GE HK ID IL IN IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV "
    "MY NP OM PH PK PS QA SA SG SY TH TJ TL TM TR TW UZ VN YE"
)
AREAS: dict[str, frozenset[str]] = {
    "EU": frozenset(_EU.split()),  # member states
    "US": frozenset({"US"}),
    "ASIA": frozenset(_ASIA.split()),
}
SPELLED = {"EU": "EU", "US": "US", "ASIA": "Asia"}


def countries(text: str) -> frozenset[str]:
    """Of `EU`, `US`, `Asia`, and of any two letters in capitals, `DE`; else none."""
    name = text.strip()
    if name.upper() in AREAS:
        return AREAS[name.upper()]
    is_country = len(name) == 2 and name.isascii() and name.isalpha() and name.isupper()
    return frozenset({name}) if is_country else frozenset()
