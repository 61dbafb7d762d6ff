"""Which services this home keeps: those on rented machines that can be rented from here; and those
on this computer that were submitted from it (owned.py)."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from tradewind.api import owned
from tradewind.base.ownfiles import home, replace
from tradewind.model.service import ServiceSpec
from tradewind.providers.local.files import secrets_of


class Keeper:
    """As controller/services.py asks."""

    def __init__(self, providers: Collection[str] = ()) -> None:
        """Where this controller can rent."""
        self._providers = providers

    def mine(self, service_id: str, spec: ServiceSpec) -> bool:
        if spec.rented:
            ways = (*spec.ways, *spec.front_ways)
            return all(way.provider in self._providers for way in ways)
        return owned.is_own_service(service_id, spec.engine.job)

    def own(self, service_id: str, run_id: str, job: dict[str, Any]) -> None:
        owned.keep(run_id, job)
        with suppress(FileNotFoundError):  # it has no secrets in files
            replace(secrets_of(home(), run_id), secrets_of(home(), service_id).read_bytes())
