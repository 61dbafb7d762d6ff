"""What lies in the store and nobody has read for long: checkpoints and outputs of runs that are
over.

Nobody has read it, as far as Tradewind knows: neither a machine, since its run is over, nor a
command that fetches (`store/readers.py`), since so long. What other programs have read, no store
tells. The ledger stays: journals, logs and metrics are small, and reports need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from msgspec import Struct

from tradewind.base.errors import NotFound, TradewindError
from tradewind.journal import runs_store
from tradewind.journal.runs_store import Loaded
from tradewind.ledger.postings import cost_of
from tradewind.lifecycle.states import NO_RETURN
from tradewind.model import places
from tradewind.store.base import Dated, Pieced, Store, Weighed

OUTPUTS = "outputs"
KINDS = ("checkpoints", "shards", OUTPUTS, "batch")
"""In the order in which they are removed: a checkpoint is none once its manifest is gone."""
AFTER_S = 30 * 86_400


class Unread(Struct, frozen=True, kw_only=True):
    run_id: str
    name: str
    bytes: int
    month: int | None
    """Micro-dollars that it costs a month; None where nobody charges, or nobody knows."""
    since_s: float
    """When it was last written or fetched, by the store's clock."""
    outcome: str
    project: str = ""

    @property
    def resumable(self) -> bool:
        return self.outcome not in NO_RETURN


def find(
    store: Store, loaded: Sequence[Loaded], now_s: float, after_s: float = AFTER_S
) -> list[Unread]:
    """The largest first. `now_s` is the caller's own clock: days are meant, not seconds."""
    live = set(runs_store.live_ids(store))
    over = [each for each in loaded if each.state.phase == "closed" and each.run_id not in live]
    if not over:
        return []
    with ThreadPoolExecutor(min(runs_store.WORKERS, len(over))) as pool:
        looked = pool.map(lambda each: _look(store, each, now_s - after_s), over)
        return sorted((one for one in looked if one), key=lambda one: (-one.bytes, one.run_id))


def remove(store: Store, run_id: str, before_s: float) -> bool:
    """False: it is wanted after all. Looked at anew: between the look that has found it and the
    user's answer it may have been fetched, or have gone on, and be over again."""
    if _is_live(store, run_id):
        return False
    loaded = runs_store.load(store, run_id)
    if loaded.state.phase != "closed" or _look(store, loaded, before_s) is None:
        return False
    for kind in KINDS:
        keys = store.list_after(_folder(run_id, kind))
        if keys and kind != OUTPUTS:
            store.replace(places.swept(run_id), b"{}")
        if _is_live(store, run_id):
            return False
        for key in keys:
            store.delete(key)
    return True


def _is_live(store: Store, run_id: str) -> bool:
    return run_id in runs_store.live_ids(store)


def _look(store: Store, run: Loaded, before_s: float) -> Unread | None:
    lies = [each for kind in KINDS for each in _lies(store, _folder(run.run_id, kind))]
    if not lies:
        return None
    since_s = max([_read_s(store, run.run_id), *(written for _, written in lies)])
    if since_s >= before_s:
        return None
    size, spec = sum(size for size, _ in lies), run.state.spec
    return Unread(
        run_id=run.run_id,
        name=spec.name if spec else "",
        bytes=size,
        month=_month(run, size),
        since_s=since_s,
        outcome=run.state.outcome,
        project=spec.project if spec else "",
    )


def _month(run: Loaded, size: int) -> int | None:
    """By the price at which the run's own storage is counted."""
    with suppress(TradewindError):
        cost = cost_of(run.run_id, run.events)
        if cost.kept and cost.kept_month:
            return round(cost.kept_month * size / cost.kept)
    return None


def _lies(store: Store, folder: str) -> list[tuple[int, float]]:
    if isinstance(store, Weighed):
        return store.weigh(folder)
    found: list[tuple[int, float]] = []
    if isinstance(store, Dated) and isinstance(store, Pieced):
        for key in store.list_after(folder):
            with suppress(NotFound):  # replaced by its job's own end meanwhile
                found.append((store.size(key), store.written_s(key)))
    return found


def _read_s(store: Store, run_id: str) -> float:
    if not isinstance(store, Dated):
        return 0.0
    try:
        return store.written_s(places.read(run_id))
    except NotFound:
        return 0.0


def _folder(run_id: str, kind: str) -> str:
    return f"{places.run(run_id)}{kind}/"
