"""What a machine is told at its launch: one script, the same for all machines of a leg.

first.sh finds a Python and sees to it that the machine ends; first.py, inside it, finds out which
machine it is and takes the kit. EC2 takes 16 KB; compressed, which cloud-init understands, it is a
quarter of that.
"""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Mapping
from importlib import resources

from msgspec import Struct, json, to_builtins

from tradewind.model.boot import Boot
from tradewind.providers.base import Refused

MOST_BYTES = 16384
_SPARE_S = 600
"""How much later than the supervisor's own the last hard stop comes."""


class Luggage(Struct, frozen=True, kw_only=True):
    """What a machine needs of the store before it can ask for anything itself."""

    kit: str
    """A link to it."""
    sha256: str
    tell: str
    """A link by which it may leave word that it could not begin."""
    environment: dict[str, str] = {}


def script(boot: Boot, luggage: Luggage) -> str:
    given = {
        "kit": luggage.kit,
        "sha256": luggage.sha256,
        "boot": {k: v for k, v in to_builtins(boot).items() if k not in _OWN},
    }
    parts = {
        "STOP_S": str(boot.hard_stop_s + _SPARE_S),
        "ENVIRONMENT": _exports(luggage.environment),
        "GIVEN": json.encode(given).decode(),
        "PROGRAM": _file("first.py").rstrip(),
        "TELL": luggage.tell.replace("'", "%27"),
    }
    return re.sub(r"@([A-Z_]+)@", lambda found: parts.get(found[1], found[0]), _file("first.sh"))


def user_data(boot: Boot, luggage: Luggage) -> bytes:
    made = gzip.compress(script(boot, luggage).encode(), mtime=0)
    if len(made) > MOST_BYTES:
        raise Refused(
            "not_allowed",
            f"what a machine is told at its launch has {len(made):,} bytes, and EC2 takes"
            f" {MOST_BYTES:,}",
            hint="the links are long: use credentials with a shorter session token",
        )
    return made


_OWN = ("machine_id", "rank", "host", "kit", "python")
"""What each machine finds out by itself."""


def _exports(environment: Mapping[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items())


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
