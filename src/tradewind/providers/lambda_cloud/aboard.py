"""On a machine of Lambda: it is never interrupted with notice, and has no identity to look up
secrets with."""

from __future__ import annotations

from tradewind.base.errors import InvalidValue
from tradewind.model.secrets import Reference


class _Never:
    at_risk = False

    def __call__(self) -> float | None:
        return None


class _Aboard:
    def notice(self) -> _Never:
        return _Never()

    def secret(self, reference: Reference, *, rented: bool) -> str:
        raise InvalidValue(
            "Lambda keeps no secrets for machines",
            hint="let the job read it from a bucket of yours that its machines can reach",
        )


ABOARD = _Aboard()
