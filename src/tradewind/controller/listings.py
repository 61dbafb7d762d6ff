"""What all providers have of ours, asked at once: one that is slow holds up no other.

A provider that does not answer in time is not seen in this pass, as one that fails. It is not asked
again while it still has not answered: threads of passes that gave it up would pile up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from tradewind.base.errors import SourceFailed, TradewindError, bug
from tradewind.model.run import Listing
from tradewind.providers.asking import within
from tradewind.providers.base import ListAll, Listed, Provider

PATIENCE_S = 30.0
"""Several tries of a cloud that is slow today, and less than what a lost machine may take to be
noticed."""


class Listings:
    def __init__(self, providers: Mapping[str, Provider], patience_s: float = PATIENCE_S) -> None:
        self._providers, self._patience_s = providers, patience_s
        self._asked = {name: threading.Lock() for name in providers}

    def __call__(self, step: ListAll) -> Listed:
        if len(step.providers) == 1:
            (only,) = step.providers
            return {only: self._one(only)}
        found = within(self._patience_s, {name: self._asker(name) for name in step.providers})
        late = SourceFailed(
            f"it did not list its machines within {self._patience_s:.0f} s",
            hint="the next pass asks again; machines of other providers are seen to meanwhile",
        )
        return {name: found.get(name, late) for name in step.providers}

    def _asker(self, name: str) -> Callable[[], Listing | TradewindError]:
        return lambda: self._one(name)

    def _one(self, name: str) -> Listing | TradewindError:
        asked = self._asked[name]
        if not asked.acquire(blocking=False):
            return SourceFailed("it has not answered since an earlier pass")
        try:
            return self._providers[name].list_machines()
        except TradewindError as error:
            return error
        except Exception as error:  # of a vendor's library, or ours: the others are seen to
            return bug(name, error)
        finally:
            asked.release()
