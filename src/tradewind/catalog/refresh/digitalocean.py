"""DigitalOcean: the sizes of Droplets, with prices and the regions that can make one now.

`GET /v2/sizes?per_page=200&page=1`, Bearer token (scopes sizes:read, regions:read) → `{"sizes":
[{"slug", "price_hourly", "memory" (MiB), "vcpus", "available", "regions": ["tor1"], "gpu_info":
{"count", "model": "nvidia_h100", "vram": {"amount" (of all GPUs), "unit": "gib"}}}], "links":
{"pages": {"next"}}}`. The next link only tells that there is another page: we count them ourselves.

The answer is what this account may buy, so a size that is missing may still be sold to others:
not `complete`. Spot is a size of its own, `gpu-…-spot`. A size with no region at all is sold out
everywhere. CPU-only sizes that we know are renewed; the hundreds of others are not collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import (
    NUMBER,
    Context,
    Listing,
    Source,
    as_price,
    each,
    need,
)

_MOST_PAGES = 20


def fetch(context: Context) -> Iterator[Listing]:
    yield from each(context, _sizes(context), lambda size: _listings(context, size), called="size")


def _sizes(context: Context) -> Iterator[Any]:
    for page in range(1, _MOST_PAGES + 1):
        answer = need(
            context.http.get_json(
                f"{context.url}/v2/sizes",
                query={"per_page": 200, "page": page},
                headers=context.bearer("DIGITALOCEAN_TOKEN"),
            ),
            dict,
            "answer",
        )
        context.progress(page, None)
        yield from need(answer.get("sizes"), list, "answer.sizes")
        links = need(answer.get("links") or {}, dict, "answer.links")
        pages = need(links.get("pages") or {}, dict, "answer.links.pages")
        if not pages.get("next"):
            return
    raise SourceFailed(f"the sizes do not end (after {_MOST_PAGES} pages)")


def _listings(context: Context, entry: Any) -> Iterator[Listing]:
    size = need(entry, dict, "sizes[]")
    slug = need(size.get("slug"), str, "sizes[].slug")
    where = f"sizes[] {slug}"
    chip = _accelerator(context, slug, size, where)
    if chip is None:
        return
    if size.get("available") is False:
        return context.skip("closed to new Droplets")
    price = as_price(size.get("price_hourly"), f"{where}.price_hourly")
    if price is None:
        return context.skip("price of zero")
    spot = slug.endswith("-spot")
    regions = need(size.get("regions"), list, f"{where}.regions")
    if not regions and slug not in context.known:
        return context.skip("sold out everywhere, and new to us")
    for region in regions or ["any"]:
        yield Listing(
            region=need(region or None, str, f"{where}.regions[]"),
            instance_type=slug,
            accelerator=chip[0],
            accelerator_count=chip[1],
            vcpus=need(size.get("vcpus"), int, f"{where}.vcpus"),
            memory_gb=need(size.get("memory"), int, f"{where}.memory") / 1024,
            on_demand=None if spot else price,
            spot=price if spot else None,
            in_stock=bool(regions),
            stock_market="spot" if spot else "on_demand",
        )


def _accelerator(
    context: Context, slug: str, size: dict[str, Any], where: str
) -> tuple[str, float] | None:
    """Name and count; None for a size that we do not list, which is then accounted for."""
    known = context.known.get(slug) or context.known.get(slug.removesuffix("-spot"))
    if known:
        return known.accelerator, known.accelerator_count
    info = need(size.get("gpu_info") or {}, dict, f"{where}.gpu_info")
    if not info:
        return None
    count = need(info.get("count"), int, f"{where}.gpu_info.count")
    model = need(info.get("model"), str, f"{where}.gpu_info.model")
    vram = need(info.get("vram") or {}, dict, f"{where}.gpu_info.vram")
    memory = need(vram.get("amount") or 0, NUMBER, f"{where}.gpu_info.vram.amount")
    name = context.names.canonical(model, memory / count if count > 0 else None)
    if count <= 0 or name is None:
        context.skip(f"unknown accelerator {model!r}")
        return None
    return name, count


SOURCE = Source(
    provider="digitalocean",
    url="https://api.digitalocean.com",
    fetch=fetch,
    describes="DigitalOcean API v2 sizes",
    markets=("on_demand", "spot"),
    credentials=("DIGITALOCEAN_TOKEN",),
    key_needs="it needs the scopes sizes:read and regions:read",
)
