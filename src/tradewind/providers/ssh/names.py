"""How hosts and their machines are called.

A host is written `[USER@]HOST[:PORT]`, where HOST may be a name of ~/.ssh/config. Its short name
is made of that, and stands in the ids of its machines: `ssh-<host>.<launch id>-<rank>`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

from tradewind.base.errors import InvalidValue

PREFIX = "ssh-"
TARGET = (
    r"(?P<login>(?:[A-Za-z0-9_][A-Za-z0-9_.\\+-]*@)?"
    r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9_][A-Za-z0-9_.-]*))(?::(?P<port>[0-9]{1,5}))?"
)
_TARGET = re.compile(TARGET)
PATH = r"/[A-Za-z0-9._/+@,=-]{1,1000}"
"""Of a folder there: it becomes a part of a command."""


def checked(text: str) -> str:
    """As it was written. What begins with a dash would be an option of ssh's."""
    found = _TARGET.fullmatch(text.strip())
    port = found["port"] if found else None
    if found is None or (port is not None and not 0 < int(port) < 65536):
        raise InvalidValue(
            f"{text!r} is no host",
            hint="--host user@box, --host user@box:2222, or a name of ~/.ssh/config",
        )
    return found[0]


def arguments(target: str) -> list[str]:
    """For ssh: where to, with the port."""
    found = _TARGET.fullmatch(target)
    assert found is not None  # it was checked when it was set up
    user, at, host = found["login"].rpartition("@")
    login = f"{user}{at}{host.strip('[]')}"
    return [*(["-p", found["port"]] if found["port"] else []), "--", login]


def short(target: str, taken: Collection[str] = ()) -> str:
    host = checked(target).rpartition("@")[2]
    base = re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-") or "host"
    base = base[:40].strip("-")
    if base not in taken:
        return base
    return next(name for n in range(2, 10_000) if (name := f"{base}-{n}") not in taken)


def owner_of(store_url: str) -> str:
    return hashlib.sha256(store_url.rstrip("/").encode()).hexdigest()[:16]


def machine_id(host: str, launch_id: str, rank: int) -> str:
    return f"{PREFIX}{host}.{launch_id}-{rank}"


def host_of(machine_id: str) -> str:
    """ "": it is none of ours."""
    if not machine_id.startswith(PREFIX):
        return ""
    host, dot, _ = machine_id.removeprefix(PREFIX).partition(".")
    return host if dot else ""


def model_of(gpu: str) -> str:
    """As it stands in the names of types: `NVIDIA GeForce RTX 4090` is RTX-4090."""
    plain = re.sub(r"^(NVIDIA|AMD|Tesla|GeForce|Graphics Device)\s+", "", gpu.strip())
    plain = re.sub(r"^(Tesla|GeForce|Instinct)\s+", "", plain, flags=re.IGNORECASE)
    return re.sub(r"[^A-Za-z0-9.]+", "-", plain).strip("-") or "GPU"


def instance_type(count: int, gpu: str) -> str:
    return f"{count}x{model_of(gpu)}"
