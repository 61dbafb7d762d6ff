"""Which gangs of a cluster are to be let go now (gates.py), asked of its API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.providers.kubernetes import asking, gates
from tradewind.providers.kubernetes.client import Client
from tradewind.providers.kubernetes.objects import Pod

LOOKS_S = 5.0
"""While gangs wait: so often all pods and nodes of a cluster are listed for them."""
_LIVING = "status.phase!=Succeeded,status.phase!=Failed"


class Gatekeeper:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._looked = float("-inf")
        self._told: dict[str, tuple[int, bool]] = {}

    def rooms(self, gangs: Mapping[str, Sequence[Pod]]) -> Mapping[str, tuple[int | None, bool]]:
        """Of each, by its Job: for how many of its pods there is room, and whether all may go.
        Where one may not look any more, nobody is held back: a gate that nobody opens is a run
        that never begins."""
        if not gangs:
            return {}
        now = clock.monotonic()
        if now - self._looked >= LOOKS_S or not gangs.keys() <= self._told.keys():
            try:
                nodes = asking.listed(self._client, "/api/v1/nodes", "listing nodes")
                where = "listing pods of all namespaces"
                pods = asking.listed(self._client, "/api/v1/pods", where, _LIVING)
            except TradewindError:
                return {}  # no answer: the next pass asks again
            if nodes is None or pods is None:
                return dict.fromkeys(gangs, (None, True))
            uids = {name: [pod.metadata.uid for pod in gang] for name, gang in gangs.items()}
            self._looked, self._told = now, gates.rooms(nodes, pods, uids)
            return self._told
        return {name: (self._told[name][0], False) for name in gangs}
