"""JSON that others have written, as a value or as nothing, whatever the bytes are.

Whoever may write into a store may write anything there, and a disk may lose half of a file. msgspec
tells of most of that by one error; text that is not UTF-8, nesting without end and numbers without
end have errors of their own, which are easily forgotten. So all that is not certainly ours is read
through here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from msgspec.json import Decoder

T = TypeVar("T")
_LEARNING = threading.Lock()

UNREADABLE = (ValueError, RecursionError, OverflowError)
"""All that decoding raises: msgspec's errors, those of text, and what our own values say of
themselves are ValueErrors."""


def learn(kind: type[T]) -> Decoder[T]:
    """Reads this kind of value. What msgspec must know of a class it works out when that is first
    read, and two threads that do so at once have crashed the interpreter: so what threads read, one
    of them learns first."""
    from msgspec import json  # what reads checkpoints does without

    with _LEARNING:
        return json.Decoder(kind)


@overload
def decoder(kind: type[T]) -> Callable[[bytes], T | None]: ...
@overload
def decoder(kind: Any) -> Callable[[bytes], Any]: ...
def decoder(kind: Any) -> Callable[[bytes], Any]:
    """Reads this kind of value, or one of several; None where the bytes are not one."""
    decode = learn(kind).decode

    def read(data: bytes) -> Any:
        try:
            return decode(data)
        except UNREADABLE:
            return None

    return read
