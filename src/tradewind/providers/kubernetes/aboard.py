"""In a pod: SIGTERM is its notice, and its secrets are mounted or are variables.

However a pod is taken (a spot node, a drain, an eviction, a pod of higher priority), it is sent
SIGTERM, and killed when its grace is over. How long that is it cannot ask; it was told at its
launch (`TRADEWIND_GRACE_S`).

A secret is the key of a Secret in the pods' namespace, `kubernetes-secret:NAME#KEY`: the pod's
manifest has it as a file, so the pod needs no right to read Secrets.
"""

from __future__ import annotations

import os
from pathlib import Path

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.secrets import Reference

GRACE = "TRADEWIND_GRACE_S"
SECRETS = Path("/var/run/tradewind/secrets")
"""Below it, mounted: NAME/KEY."""
_USUAL_S = 30.0


class Sigterm:
    """A notice by signal."""

    at_risk = False

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._taken_at: float | None = None

    def heard(self) -> None:
        if self._taken_at is None:
            self._taken_at = clock.monotonic() + self._grace_s

    def __call__(self) -> float | None:
        at = self._taken_at
        return None if at is None else max(at - clock.monotonic(), 0.1)


class _Aboard:
    def notice(self) -> Sigterm:
        try:
            return Sigterm(max(float(os.environ.get(GRACE, "")), 1.0))
        except ValueError:
            return Sigterm(_USUAL_S)

    def secret(self, reference: Reference, *, rented: bool) -> str:
        if not rented:
            raise InvalidValue(
                "a Secret of a cluster is for its pods alone", hint="file:PATH is for this computer"
            )
        try:
            return (SECRETS / reference.name / reference.key).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise NotFound(
                f"the pod has no key {reference.key} of a Secret {reference.name}",
                hint=f"kubectl create secret generic {reference.name}"
                f" --from-literal={reference.key}=…, in the pods' namespace",
            ) from None


ABOARD = _Aboard()
