"""Secrets that a user hands over as files, for machines of the user's own computer.

Read when the run is submitted, because a user says so then, and kept in
`$TRADEWIND_HOME/local/secrets/<run-id>.json`, which nobody else may read: whoever looks after the
run may be another process, and the run may be resumed. `tradewind sweep` removes it when neither
can be any more. They enter neither the store nor the arguments of a process.

Rented machines cannot be given any: all that a launch hands over can be read by whoever may
describe the account's instances. Clouds have places for secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import json

from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.base.ownfiles import home, replace
from tradewind.model import secrets
from tradewind.providers.local.files import secrets_of

if TYPE_CHECKING:
    from tradewind.model.run import Spec

_MOST_BYTES = 65_536


def check(spec: Spec, instead: str) -> None:
    """That every machine of the run can be given its secrets; else `instead` is the hint."""
    if all(way.provider == "local" for way in spec.ways):
        return
    for name, where in _named(spec).items():
        if secrets.parse(where).scheme == secrets.FILE:
            raise InvalidValue(
                f"run.secrets: {name} is in a file of this computer, and rented machines cannot be"
                " given that in secret",
                hint=instead,
            )


def read(spec: Spec) -> dict[str, str]:
    """The values of its files, by how the workload names them."""
    paths = {
        reference.name: name
        for name, where in _named(spec).items()
        if (reference := secrets.parse(where)).scheme == secrets.FILE
    }
    return {path: _content(name, path) for path, name in paths.items()}


def keep(run_id: str, values: Mapping[str, str]) -> None:
    if values:
        replace(secrets_of(home(), run_id), json.encode(values))


def drop(run_id: str) -> None:
    secrets_of(home(), run_id).unlink(missing_ok=True)


def folder() -> Path:
    return secrets_of(home(), "x").parent


def _named(spec: Spec) -> dict[str, str]:
    named: dict[str, str] = spec.job.get("secrets", {})
    return named


def _content(name: str, path: str) -> str:
    where = f"run.secrets: {name}: {path}"
    try:
        with Path(path).expanduser().open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, RuntimeError) as error:  # the latter: a user whose home nobody knows
        words = getattr(error, "strerror", None) or error
        raise NoAccess(f"{where} cannot be read: {words}", hint="is the path right?") from None
    except UnicodeDecodeError:
        raise InvalidValue(f"{where} is not text") from None
    if len(data) > _MOST_BYTES or not text.strip() or "\0" in text:
        raise InvalidValue(f"{where} is empty or is not one secret", hint="one file for each")
    return text
