"""JSON that others have written, as a value or as nothing, whatever the bytes are.

Whoever may write into a store may write anything there, and a disk may lose half of a file. msgspec
tells of most of that by one error; text that is not UTF-8, nesting without end and numbers without
end have errors of their own, which are easily forgotten. So all that is not certainly ours is read
through here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

UNREADABLE = (ValueError, RecursionError, OverflowError)
"""All that decoding raises: msgspec's errors, those of text, and what our own values say of
themselves are ValueErrors."""


@overload
def decoder(kind: type[T]) -> Callable[[bytes], T | None]: ...
@overload
def decoder(kind: Any) -> Callable[[bytes], Any]: ...
def decoder(kind: Any) -> Callable[[bytes], Any]:
    """Reads this kind of value, or one of several; None where the bytes are not one."""
    from msgspec import json  # what reads checkpoints does without

    decode = json.Decoder(kind).decode

    def read(data: bytes) -> Any:
        try:
            return decode(data)
        except UNREADABLE:
            return None

    return read
