"""Addresses that variables lead our clients to (AWS_ENDPOINT_URL and the like): with TLS, or on
this computer.

Journals, bundles, logs and session tokens would else go through the network in clear, because of a
variable that may have been set for another tool. Whoever wants that, in a network that they trust,
says so by name: `TRADEWIND_ALLOW_HTTP=1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from tradewind.errors import NoAccess

ALLOW = "TRADEWIND_ALLOW_HTTP"


def is_plain(endpoint: str) -> bool:
    return endpoint.lower().startswith("http://")


def is_exposed(endpoint: str) -> bool:
    """Whether it is without TLS, and others can listen."""
    if not is_plain(endpoint):
        return False
    import ipaddress

    try:
        host = urlsplit(endpoint).hostname or ""
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may lead anywhere but for this one
        return host.lower() != "localhost"


def check(endpoint: str, env: Mapping[str, str]) -> None:
    if is_exposed(endpoint) and env.get(ALLOW) != "1":
        raise NoAccess(
            f"{endpoint} is not encrypted: credentials, journals and bundles could be read on the"
            " way",
            hint=f"use https://, or unset the variable that names it; in a network that you trust,"
            f" {ALLOW}=1",
        )
