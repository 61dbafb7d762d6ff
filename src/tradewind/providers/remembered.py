"""What an account has answered, kept for a while: regions, zones and types change by the month.

One memory for each account, and gone with it. Safe from several threads; two that ask for the same
at once may both ask the cloud, which does no harm.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tradewind.base import clock

HOUR_S = 3600.0

T = TypeVar("T")
_memories: WeakKeyDictionary[Any, dict[Any, tuple[float, Any]]] = WeakKeyDictionary()
_lock = threading.Lock()


def one(account: Any, key: tuple[str, ...], ask: Callable[[], T], age_s: float = HOUR_S) -> T:
    """What fails is asked again the next time."""
    return many(account, key, [""], lambda _: {"": ask()}, age_s)[""]


def many(
    account: Any,
    key: tuple[str, ...],
    names: Collection[str],
    ask: Callable[[list[str]], Mapping[str, T]],
    age_s: float = HOUR_S,
) -> dict[str, T]:
    """Only the names that are not known are asked for, all at once. What `ask` does not tell of is
    not there, which is remembered as well."""
    now = clock.monotonic()
    with _lock:
        known = _memories.setdefault(account, {})
        lacking = [
            name
            for name in dict.fromkeys(names)
            if (key, name) not in known or now - known[key, name][0] > age_s
        ]
    if lacking:
        told = ask(lacking)
        with _lock:
            known.update({(key, name): (now, told.get(name)) for name in lacking})
    with _lock:
        found = {name: known[key, name][1] for name in names}
    return {name: value for name, value in found.items() if value is not None}
