"""Zones of Compute Engine, and which of them offer a machine type, an accelerator or a TPU slice.

Everything is asked at most once an hour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct

from tradewind.base.errors import TradewindError
from tradewind.providers import remembered
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.facts import TPU
from tradewind.providers.gcp.operations import last
from tradewind.providers.gcp.troubles import is_off


class Offered(Struct, frozen=True, kw_only=True):
    """A machine type, in a zone."""

    cpus: int = 0
    gpus: int = 0
    gpu: str = ""
    """As Compute Engine calls it; "": none is part of the type."""


class _Accelerators(Struct, frozen=True, rename="camel"):
    guest_accelerator_type: str = ""
    guest_accelerator_count: int = 0


class _Thing(Struct, frozen=True, rename="camel"):
    name: str
    status: str = "UP"
    zone: str = ""
    guest_cpus: int = 0
    accelerators: tuple[_Accelerators, ...] = ()


class _Listed(Struct, frozen=True, rename="camel"):
    items: tuple[_Thing, ...] = ()
    next_page_token: str | None = None


class _Scope(Struct, frozen=True, rename="camel"):
    machine_types: tuple[_Thing, ...] = ()
    accelerator_types: tuple[_Thing, ...] = ()


class _Aggregated(Struct, frozen=True, rename="camel"):
    items: dict[str, _Scope] = {}
    next_page_token: str | None = None


class _Slice(Struct, frozen=True, rename="camel"):
    name: str = ""
    type: str = ""


class _Slices(Struct, frozen=True, rename="camel"):
    accelerator_types: tuple[_Slice, ...] = ()
    next_page_token: str | None = None


def zones(google: Google, project: str) -> dict[str, bool]:
    """All that there are, and whether each is up."""

    def ask() -> dict[str, bool]:
        pages = google.rest("compute").pages(
            f"/projects/{project}/zones",
            _Listed,
            "asking Google for its zones",
            lambda page: page.next_page_token,
            "pageToken",
        )
        return {each.name: each.status == "UP" for page in pages for each in page.items}

    return remembered.one(google, ("zones", project), ask)


def offering(google: Google, project: str, types: Collection[str]) -> dict[str, dict[str, Offered]]:
    """Of each machine type the zones that offer it; one that none offers has none."""

    def ask(names: list[str]) -> dict[str, dict[str, Offered]]:
        return {name: dict(_offered(google, project, name)) for name in names}

    return remembered.many(google, ("offering", project), types, ask)


def _offered(google: Google, project: str, name: str) -> Iterator[tuple[str, Offered]]:
    for zone, scope in _aggregated(google, project, "machineTypes", name):
        for each in scope.machine_types:
            if each.name == name:
                built_in = each.accelerators[:1]
                yield (
                    zone,
                    Offered(
                        cpus=each.guest_cpus,
                        gpus=sum(it.guest_accelerator_count for it in each.accelerators),
                        gpu=built_in[0].guest_accelerator_type if built_in else "",
                    ),
                )


def accelerators(google: Google, project: str, names: Collection[str]) -> dict[str, frozenset[str]]:
    """The zones in which each of these GPUs can be attached to a machine."""

    def ask(names: list[str]) -> dict[str, frozenset[str]]:
        return {
            name: frozenset(
                zone
                for zone, scope in _aggregated(google, project, "acceleratorTypes", name)
                if any(each.name == name for each in scope.accelerator_types)
            )
            for name in names
        }

    return remembered.many(google, ("accelerators", project), names, ask)


def slices(google: Google, project: str, places: Collection[str]) -> dict[str, frozenset[str]]:
    """By zone, the TPU slices that there are, as the catalog names them. A zone that does not tell
    is left out; where the API is off, that is raised."""

    def ask(names: list[str]) -> dict[str, frozenset[str]]:
        found = {}
        for zone in names:
            try:
                found[zone] = frozenset(_slices(google, project, zone))
            except TradewindError as error:
                if is_off(error):
                    raise
        return found

    return remembered.many(google, ("slices", project), places, ask)


def _slices(google: Google, project: str, zone: str) -> Iterator[str]:
    pages = google.rest("tpu").pages(
        f"/v2/projects/{project}/locations/{zone}/acceleratorTypes",
        _Slices,
        f"asking Google for TPUs in {zone}",
        lambda page: page.next_page_token,
        "pageToken",
    )
    for page in pages:
        for each in page.accelerator_types:
            yield TPU + (each.type or last(each.name))


def _aggregated(google: Google, project: str, what: str, name: str) -> Iterator[tuple[str, _Scope]]:
    asked: Mapping[str, str] = {"filter": f'name = "{name}"', "maxResults": "500"}

    def token(page: Any) -> str | None:
        return page.next_page_token or None

    pages = google.rest("compute").pages(
        f"/projects/{project}/aggregated/{what}",
        _Aggregated,
        f"asking Google which zones offer {name}",
        token,
        "pageToken",
        asked,
    )
    for page in pages:
        for place, scope in page.items.items():
            yield last(place), scope
