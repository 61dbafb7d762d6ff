"""What holds for every price source: silence, refused keys and missing ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.refresh.asking import context
from tests.catalog.refresh.test_ecb import BANK, rates
from tests.local_http import LocalHttp, Reply
from tradewind.base.errors import SourceFailed
from tradewind.catalog import refresh
from tradewind.catalog.refresh import SOURCES, source
from tradewind.catalog.refresh.base import Listing

# The addresses that a source asks, one after the other, as far as they matter here.
ASKED = {
    "aws": ["/offers/v1.0/aws/AmazonEC2/current/region_index.json"],
    "azure": ["/api/retail/prices"],
    "gcp": ["/v1/services/6F81-5844-456A/skus"],
    "oci": ["/pls/apex/cetools/api/v1/products/"],
    "ibm": ["/api/v1/is.instance/plan", "/api/v1/h100/pricing/deployment"],
    "lambda": ["/api/v1/instance-types"],
    "runpod": ["/graphql"],
    "vast": ["/api/v0/bundles/"],
    "verda": ["/v1/instance-types"],
    "hyperstack": ["/v1/pricebook", "/v1/core/flavors"],
    "shadeform": ["/v1/instances/types"],
    "primeintellect": ["/api/v1/availability/gpus"],
    "seeweb": [BANK, "/ecs/v2/plans"],
    "vultr": ["/v2/plans"],
    "scaleway": [BANK, "/instance/v1/zones/fr-par-1/products/servers"],
    "digitalocean": ["/v2/sizes"],
}
# What the first ones say, so that the last one is asked.
ANSWERS = {
    "/api/v1/is.instance/plan": {"resources": [{"name": "gx3d-160x1792x8h100", "id": "h100"}]},
    "/v1/pricebook": [{"name": "L40", "value": 1}],
    BANK: rates(),
}


def keys(provider: str) -> tuple[str, ...]:
    return (*source(provider).credentials, *source(provider).optional_keys)


def ask(
    provider: str,
    server: LocalHttp,
    path: str,
    answer: Any,
    *,
    with_keys: bool = True,
    patience_s: float | None = None,
) -> list[Listing]:
    """What the source makes of `answer` at `path`."""
    for other, fine in ANSWERS.items():
        server.on(other, fine)
    server.on(path, answer)
    env = {"TRADEWIND_ECB_URL": server.url + BANK}
    if with_keys:
        env |= dict.fromkeys(keys(provider), "a-secret")
    return refresh.ask(source(provider), context(provider, server, env, patience_s=patience_s))


def test_every_source_is_here() -> None:
    assert list(ASKED) == list(SOURCES)


@pytest.mark.parametrize(
    ("provider", "path"), [(name, path) for name, paths in ASKED.items() for path in paths]
)
def test_a_server_that_does_not_answer(server: LocalHttp, provider: str, path: str) -> None:
    with pytest.raises(SourceFailed, match="timed out"):
        ask(provider, server, path, Reply({}, delay_s=1), patience_s=0.2)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("provider", [name for name in SOURCES if keys(name)])
def test_a_key_that_is_refused_is_named(server: LocalHttp, provider: str, status: int) -> None:
    with pytest.raises(SourceFailed, match=f"HTTP {status}.*who are you") as caught:
        ask(provider, server, ASKED[provider][-1], Reply("who are you?", status=status))
    assert caught.value.status == status
    hint = caught.value.hint or ""
    assert hint.startswith(f"check {' and '.join(keys(provider))}")
    assert ("or unset" in hint) == (not source(provider).credentials)
    assert source(provider).key_needs in hint
    assert "a-secret" not in str(caught.value)


@pytest.mark.parametrize("provider", [name for name in SOURCES if not source(name).credentials])
def test_no_key_is_blamed_where_none_was_sent(server: LocalHttp, provider: str) -> None:
    with pytest.raises(SourceFailed, match="HTTP 403") as caught:
        ask(provider, server, ASKED[provider][-1], Reply(status=403), with_keys=False)
    assert caught.value.hint is None


@pytest.mark.parametrize("provider", ["seeweb", "scaleway"])
def test_the_banks_refusal_is_not_the_keys_fault(server: LocalHttp, provider: str) -> None:
    with pytest.raises(SourceFailed, match="HTTP 403") as caught:
        ask(provider, server, BANK, Reply(status=403))
    assert caught.value.hint == "the prices are in EUR; the old ones stay in place"


@pytest.mark.parametrize("provider", [name for name in SOURCES if source(name).credentials])
def test_a_key_that_is_missing_is_named_before_anybody_is_asked(
    server: LocalHttp, provider: str
) -> None:
    with pytest.raises(SourceFailed, match=f"{source(provider).credentials[0]} not set"):
        ask(provider, server, "/", {}, with_keys=False)
    assert not server.requests
