"""What machines of a cloud take along: the kit, which is made and sent once, and links to it that
are fresh. Clouds know nothing of stores; here the kit is put into one."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tradewind.model import places

if TYPE_CHECKING:
    from tradewind.model.run import Request
    from tradewind.providers.boot.luggage import Luggage
    from tradewind.providers.cloud import Links, Rentable
    from tradewind.store.base import Store

_LINK_S = 3600
"""A machine that has not come up by then never will."""
_MOST_TELL = 8
"""Links to leave word by: clouds take a few kilobytes. Of more machines some share one."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Those of images that users name, as far as first.sh takes them and there are wheels for them."""
_PROCESSORS = {"x86_64": "x86_64", "arm64": "aarch64"}


class Packer:
    def __init__(self, store: Store, cloud: Rentable, record: Any) -> None:
        self._store, self._cloud, self._record = store, cloud, record
        self._lock = threading.Lock()
        self._links: Links | None = None
        self._kits: dict[str, bytes] = {}

    def __call__(self, request: Request, architecture: str) -> Luggage:
        from tradewind.providers.boot.luggage import Luggage

        links = self._made_links()
        links.check()
        kit = self._sent(architecture)
        return Luggage(
            kit=links.get(kit, _LINK_S),
            sha256=kit.split("/")[-2],
            tell=tuple(
                links.put(places.first_log(request.run_id, request.leg, rank), _LINK_S)
                for rank in range(min(request.way.nodes, _MOST_TELL))
            ),
            environment=self._cloud.environment(self._record, os.environ),
        )

    def _made_links(self) -> Links:
        with self._lock:
            if self._links is None:
                self._links = self._cloud.links(self._record, self._store.url)
            return self._links

    def _sent(self, architecture: str) -> str:
        from tradewind.supervisor import kit

        usual = self._cloud.pythons
        with self._lock:
            if architecture not in self._kits:
                self._kits[architecture] = kit.build(
                    self._store.url,
                    targets=targets(architecture, usual),
                    wished=targets(architecture, [each for each in PYTHONS if each not in usual]),
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
