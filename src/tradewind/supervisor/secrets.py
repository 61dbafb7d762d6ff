"""The values of a job's secrets, looked up on its machine just before the job starts.

They go into the job's environment and nowhere else: no log, no journal, no file of the machine's.
Messages name the variable and the place. A secret that cannot be had fails the job as a mistake of
its own would: on another machine it would be the same. SourceFailed is for what may pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import InvalidValue, NotFound, SourceFailed, TradewindError
from tradewind.model import secrets
from tradewind.model.boot import Boot
from tradewind.model.secrets import FILE, Reference
from tradewind.providers import registry
from tradewind.supervisor import notice

_MOST_CHARACTERS = 100_000
"""Linux takes 128 KiB for one variable."""


def values(references: Mapping[str, str], boot: Boot) -> dict[str, str]:
    return {name: _value(name, where, boot) for name, where in references.items()}


def _value(name: str, where: str, boot: Boot) -> str:
    try:
        reference = secrets.parse(where)
        found = _looked_up(reference, boot)
    except SourceFailed as error:
        raise SourceFailed(f"secret {name} ({where}): {error.message}", hint=error.hint) from None
    except TradewindError as error:
        message = f"secret {name} ({where}) cannot be read: {error.message}"
        raise InvalidValue(message, hint=error.hint) from None
    found = found.rstrip("\r\n")  # of a file, or of a parameter that was made from one
    if not found or "\0" in found or len(found) > _MOST_CHARACTERS:
        raise InvalidValue(f"secret {name} ({where}) is empty, too long, or not text")
    return found


def _looked_up(reference: Reference, boot: Boot) -> str:
    if reference.scheme == FILE:
        return _handed_over(reference, boot)
    # Schemes begin with their cloud's name.
    aboard = registry.aboard(reference.scheme.partition("-")[0])
    return aboard.secret(reference, rented=notice.is_rented(boot.notice))


def _handed_over(reference: Reference, boot: Boot) -> str:
    """Read where the run was submitted, and kept beside the machines there: this machine is another
    process of that user, and a path in a store is never a reason to read a file."""
    try:
        kept = json.decode(Path(boot.secrets).read_bytes(), type=dict[str, str])
        return kept[reference.name]
    except (OSError, *UNREADABLE, KeyError):
        raise NotFound(
            "its value was not handed over, or is not kept any more",
            hint="submit the run again, on the computer that has the file",
        ) from None
