"""What a machine is told at its launch: one script, the same for all machines of a leg, or one for
each where a cloud launches them one by one and their `Boot` says which it is.

first.sh finds a Python and sees to it that the machine ends; first.py, inside it, finds out which
machine it is and takes the kit. Clouds take a few kilobytes; compressed, which cloud-init
understands, it is a quarter of that. A container is given the same as files, and container.sh in
the place of first.sh.
"""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Mapping
from importlib import resources

from msgspec import json, to_builtins

from tradewind.model.boot import Boot
from tradewind.model.run import Request
from tradewind.providers.base import Refused
from tradewind.providers.boot.luggage import Luggage

SPARE_S = 600
"""How much later than the supervisor's own the last hard stop comes."""
_FUTURE = "from __future__ import annotations\n"


def boot(
    request: Request,
    store_url: str,
    after: int,
    key: str,
    notice: str,
    *,
    rank: int = 0,
    machine_id: str = "",
) -> Boot:
    """What a supervisor of this purchase is told. `notice`: the cloud whose notices it hears.
    Without `machine_id` the machine finds out itself which it is."""
    return Boot(
        store_url=store_url,
        run_id=request.run_id,
        leg=request.leg,
        rank=rank,
        nodes=request.way.nodes,
        machine_id=machine_id,
        launch_id=request.launch_id,
        hard_stop_s=request.hard_stop_s,
        after=after,
        relieves=request.relieves,
        waits=request.waits,
        notice=notice,
        key=key,
    )


def script(boot: Boot, luggage: Luggage, who: str) -> str:
    """`who`: the package of the cloud's, whose who.py says which machine this is."""
    parts = {
        "STOP_S": str(boot.hard_stop_s + SPARE_S),
        "GIVEN": _given(boot, luggage),
        "PROGRAM": _program(who),
        **_common(luggage),
    }
    return _filled("first.sh", parts)


START, GIVEN, PROGRAM, INJECT = "start.sh", "given.json", "first.py", "inject.py"
NO_PYTHON = 78
"""How a container ends whose image has no Python: a code of sysexits.h, for a wrong
configuration."""


def files(boot: Boot, luggage: Luggage, who: str) -> dict[str, str]:
    """For a container, by name, in one folder: it runs `sh start.sh`. Where the image may have no
    Python, another runs `python3 inject.py $TRADEWIND_HOME/python` before."""
    return {
        START: _filled("container.sh", {"NO_PYTHON": str(NO_PYTHON), **_common(luggage)}),
        GIVEN: _given(boot, luggage),
        PROGRAM: _program(who),
        INJECT: _file(__package__, INJECT),
    }


def _given(boot: Boot, luggage: Luggage) -> str:
    given = {
        "kit": luggage.kit,
        "sha256": luggage.sha256,
        "boot": {k: v for k, v in to_builtins(boot).items() if k not in _found_out(boot)},
        "first_pass": luggage.first_pass,
    }
    return json.encode(given).decode()


def _program(who: str) -> str:
    asks = _file(who, "who.py").replace(_FUTURE, "")
    return f"{_file(__package__, PROGRAM)}\n{asks}\n\nmain(Path(sys.argv[1]), who)"


def _common(luggage: Luggage) -> dict[str, str]:
    return {
        "ENVIRONMENT": _exports(luggage.environment),
        "FIND_PYTHON": _file(__package__, "find_python.sh").rstrip(),
        "TELL": " ".join(shlex.quote(link) for link in luggage.tell),
    }


def _filled(name: str, parts: Mapping[str, str]) -> str:
    text = _file(__package__, name)
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


def _found_out(boot: Boot) -> tuple[str, ...]:
    """What each machine finds out by itself."""
    own = () if boot.machine_id else ("machine_id", "rank")
    return (*own, "host", "public", "kit", "python")


def _exports(environment: Mapping[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items())


def _file(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text("utf-8")
