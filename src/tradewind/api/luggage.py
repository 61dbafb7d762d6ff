"""What machines of a cloud take along: the kit, which is made and sent once, links to it that are
fresh, and a first pass where they are nobody to the store. Clouds know nothing of stores; here the
kit and the pass are put into one."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tradewind.api.lending import Lending
from tradewind.model import places

if TYPE_CHECKING:
    from tradewind.model.run import Request
    from tradewind.providers.boot.luggage import Luggage
    from tradewind.providers.cloud import Links, Rentable
    from tradewind.store.base import Store

_LINK_S = 3600
"""A machine that has not come up by then never will."""
_QUEUED_LINK_S = 7 * 86_400
"""Nor will one whose launch has been in a queue for so long; no bucket signs for longer. Links that
are signed with a session's keys end with the session."""
_MOST_TELL = 8
"""Links to leave word by: clouds take a few kilobytes. Of more machines some share one."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Those of images that users name, as far as first.sh takes them and there are wheels for them."""
_PROCESSORS = {"x86_64": "x86_64", "arm64": "aarch64"}


class Packer:
    def __init__(
        self, store: Store, cloud: Rentable, record: Any, lending: Lending | None = None
    ) -> None:
        self._store, self._cloud, self._record = store, cloud, record
        self._lending = lending or Lending(store)
        self._lock = threading.Lock()
        self._links: Links | None = None
        self._kits: dict[str, bytes] = {}

    def __call__(self, request: Request, architecture: str) -> Luggage:
        from tradewind.providers.boot.luggage import Luggage

        links = self._made_links()
        links.check()
        kit = self._sent(architecture)
        link_s = _QUEUED_LINK_S if request.way.facts.queues else _LINK_S
        return Luggage(
            kit=links.get(kit, link_s),
            sha256=kit.split("/")[-2],
            tell=tuple(
                links.put(places.first_log(request.run_id, request.leg, rank), link_s)
                for rank in range(min(request.way.nodes, _MOST_TELL))
            ),
            first_pass=self._lent(request, links, link_s),
            environment={
                **(self._lending.lender.environment if request.way.pass_s else {}),
                **self._cloud.environment(self._record, os.environ),
            },
        )

    def _lent(self, request: Request, links: Links, link_s: int) -> str:
        """A link to the pass that machines begin with. It lies in the store from just before they
        are launched until they are up; while they are in a queue, controllers replace it there
        (lifecycle/decide.py)."""
        from tradewind.store.lending import encoded

        if not request.way.pass_s:
            return ""
        key = places.first_pass(request.run_id, request.launch_id)
        self._store.replace(key, encoded(self._lending(request.run_id, request.way.pass_s)))
        return links.get(key, link_s)

    def _made_links(self) -> Links:
        with self._lock:
            if self._links is None:
                from tradewind.api import clouds

                signs, record = clouds.signing(self._store, self._cloud, self._record)
                self._links = signs.links(record, self._store.url)
            return self._links

    def _pythons(self) -> tuple[Sequence[str], Sequence[str]]:
        """Those that machines have, and those that they may have."""
        from tradewind.providers.cloud import Inspected

        if isinstance(self._cloud, Inspected):
            return self._cloud.pythons_at(self._record), ()
        usual = self._cloud.pythons
        return usual, [each for each in PYTHONS if each not in usual]

    def _sent(self, architecture: str) -> str:
        from tradewind.supervisor import kit

        usual, wished = self._pythons()
        with self._lock:
            if architecture not in self._kits:
                self._kits[architecture] = kit.build(
                    self._store.url,
                    targets=targets(architecture, usual),
                    wished=targets(architecture, wished),
                )
            # Each time: buckets forget kits after a month.
            return kit.publish(self._store, self._kits[architecture])


def targets(architecture: str, pythons: Sequence[str]) -> list[tuple[str, str]]:
    """Those for which this computer's own wheels are not enough."""
    import platform
    import sys

    processor = _PROCESSORS.get(architecture, architecture)
    own = (f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine())
    alike = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    return [(each, processor) for each in pythons if not alike or (each, processor) != own]
