"""What a machine is told at its launch: one script, the same for all machines of a leg.

first.sh finds a Python and sees to it that the machine ends; first.py, inside it, finds out which
machine it is and takes the kit. Clouds take a few kilobytes; compressed, which cloud-init
understands, it is a quarter of that.
"""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Mapping
from importlib import resources

from msgspec import json, to_builtins

from tradewind.model.boot import Boot
from tradewind.providers.base import Refused
from tradewind.providers.boot.luggage import Luggage

_SPARE_S = 600
"""How much later than the supervisor's own the last hard stop comes."""
_FUTURE = "from __future__ import annotations\n"


def script(boot: Boot, luggage: Luggage, who: str) -> str:
    """`who`: the package of the cloud's, whose who.py says which machine this is."""
    given = {
        "kit": luggage.kit,
        "sha256": luggage.sha256,
        "boot": {k: v for k, v in to_builtins(boot).items() if k not in _OWN},
    }
    asks = _file(who, "who.py").replace(_FUTURE, "")
    parts = {
        "STOP_S": str(boot.hard_stop_s + _SPARE_S),
        "ENVIRONMENT": _exports(luggage.environment),
        "GIVEN": json.encode(given).decode(),
        "PROGRAM": f"{_file(__package__, 'first.py')}\n{asks}\n\nmain(Path(sys.argv[1]), who)",
        "TELL": " ".join(shlex.quote(link) for link in luggage.tell),
    }
    text = _file(__package__, "first.sh")
    return re.sub(r"@([A-Z_]+)@", lambda found: parts.get(found[1], found[0]), text)


def compressed(boot: Boot, luggage: Luggage, who: str, most_bytes: int) -> bytes:
    made = gzip.compress(script(boot, luggage, who).encode(), mtime=0)
    if len(made) > most_bytes:
        raise Refused(
            "not_allowed",
            f"what a machine is told at its launch has {len(made):,} bytes, and this cloud takes"
            f" {most_bytes:,}",
            hint="the links are long: use credentials with a shorter session token",
        )
    return made


_OWN = ("machine_id", "rank", "host", "kit", "python")
"""What each machine finds out by itself."""


def _exports(environment: Mapping[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items())


def _file(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text("utf-8")
