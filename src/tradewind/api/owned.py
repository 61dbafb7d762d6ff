"""Which runs may use this computer: those that were submitted from this home.

Whoever may write a store may put a run into it that is to be carried out by `local`. That must not
start anything on the computers of others who look after the same store. So a run that is submitted
from this home is written down in it (`$TRADEWIND_HOME/local/runs/<run-id>.json`), with the hash of
its job. One that is not there, or whose job has changed since, is not started here, whatever the
store says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, json

from tradewind.base.decoding import decoder
from tradewind.base.ownfiles import home, replace
from tradewind.base.plaintext import one_line
from tradewind.model.boot import sha256_of
from tradewind.model.run import Spec
from tradewind.providers.local.files import is_name


class _Owned(Struct, frozen=True, forbid_unknown_fields=True):
    job_sha256: str


_decode = decoder(_Owned)


def keep(run_id: str, job: dict[str, Any]) -> None:
    """Before the run is recorded in the store: afterwards somebody may look at once."""
    replace(_place(run_id), json.encode(_Owned(sha256_of(job))))


def drop(run_id: str) -> None:
    _place(run_id).unlink(missing_ok=True)


def job_sha256(run_id: str) -> str | None:
    """None: it was not submitted from this home."""
    if not is_name(run_id):
        return None
    try:
        owned = _decode(_place(run_id).read_bytes())
    except OSError:
        return None
    return owned.job_sha256 if owned is not None else None


def may_use(run_id: str, provider: str) -> bool:
    """Clouds have rights of their own to ask; this computer has only this."""
    return provider != "local" or job_sha256(run_id) is not None


def elsewhere(run_id: str, spec: Spec | None) -> str:
    """What to tell whoever looks at a run that continues on another computer; empty where it may
    continue here."""
    if spec is None or any(may_use(run_id, way.provider) for way in spec.ways):
        return ""
    whose = f" ({one_line(spec.user)})" if spec.user else ""
    return (
        f"this is a local run, submitted from another home{whose}: this one shows it and can stop"
        " it, and never starts its machines. It continues where it was submitted: `tradewind watch`"
        " there"
    )


def folder() -> Path:
    return home() / "local" / "runs"


def _place(run_id: str) -> Path:
    return folder() / f"{run_id}.json"


# Services, in the same way: their replicas are runs, each of which is written down before it is
# submitted, if the service's engine is still the one that was submitted here.


def keep_service(service_id: str, job: dict[str, Any]) -> None:
    replace(_service(service_id), json.encode(_Owned(sha256_of(job))))


def drop_service(service_id: str) -> None:
    _service(service_id).unlink(missing_ok=True)


def is_own_service(service_id: str, job: dict[str, Any]) -> bool:
    if not is_name(service_id):
        return False
    try:
        found = _decode(_service(service_id).read_bytes())
    except OSError:
        return False
    return found is not None and found.job_sha256 == sha256_of(job)


def _service(service_id: str) -> Path:
    return home() / "local" / "services" / f"{service_id}.json"
