"""Addresses on the network: with TLS, on this computer, or on a host that the user has named.

Variables such as AWS_ENDPOINT_URL lead our clients anywhere, and may have been set for another
tool: journals, bundles, logs and session tokens would go through the network in clear. What is
downloaded over plain http can be replaced by anybody on the way. Whoever wants that, in a network
that they trust, names the hosts: `TRADEWIND_PLAIN_HTTP=host1,host2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from tradewind.base.errors import InvalidValue, NoAccess

ALLOW = "TRADEWIND_PLAIN_HTTP"


def is_plain(endpoint: str) -> bool:
    return endpoint.lower().startswith("http://")


def host_of(endpoint: str) -> str:
    """Empty where there is none that can be understood."""
    try:
        return (urlsplit(endpoint).hostname or "").lower()
    except ValueError:
        return ""


def is_exposed(endpoint: str) -> bool:
    """Whether it is without TLS, and others can listen."""
    if not is_plain(endpoint):
        return False
    import ipaddress

    host = host_of(endpoint)
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may lead anywhere but for this one
        return host != "localhost"


def is_allowed(endpoint: str, env: Mapping[str, str]) -> bool:
    named = {each.strip().lower() for each in env.get(ALLOW, "").split(",")} - {""}
    return not is_exposed(endpoint) or host_of(endpoint) in named


def check(endpoint: str, env: Mapping[str, str]) -> None:
    if endpoint and ("://" not in endpoint or not host_of(endpoint)):
        raise InvalidValue(
            f"{endpoint!r} is no address", hint="https://HOST, or unset the variable that names it"
        )
    if not is_allowed(endpoint, env):
        raise NoAccess(
            f"{endpoint} is not encrypted: credentials, journals and bundles could be read on the"
            " way",
            hint=f"use https://, or unset the variable that names it; in a network that you trust,"
            f" {ALLOW}={host_of(endpoint)}",
        )
