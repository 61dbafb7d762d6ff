"""Who asks, and whether they may: what the server asks before it does anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Asked:
    """One request, as far as the gate looks at it."""

    method: str
    path: str
    """As it was sent, without the query."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    address: str
    xml: bool


class Gate(Protocol):
    def who(self, asked: Asked) -> str:
        """The caller, for `may`; raises objects.Refused (401, 403) for nobody."""

    def may(self, who: str, permission: str, bucket: str, key: str, prefix: str = "") -> bool:
        """`key` "": of the bucket; `bucket` "": of the project."""

    def project(self) -> str:
        """In which a bucket is made where the request does not say."""


class Open:
    """Everybody may do everything."""

    def who(self, asked: Asked) -> str:
        return asked.address

    def may(self, who: str, permission: str, bucket: str, key: str, prefix: str = "") -> bool:
        return True

    def project(self) -> str:
        return "project"
