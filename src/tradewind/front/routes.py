"""What a front is told: where it listens, who may ask, how much may wait; and its replicas.

Values only, checked when they are made: whatever passes here can be written into a configuration
file without quoting trouble.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass
from enum import Enum
from typing import Self

from tradewind.base.errors import InvalidValue

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_PATH = re.compile(r"/[A-Za-z0-9._~/-]{0,200}")
_HASH = re.compile(r"[0-9a-f]{64}")
_SHORTEST_KEY = 16
"""Shorter keys could be guessed from their hash."""


@dataclass(frozen=True, slots=True)
class Key:
    """An API key, as the SHA-256 of it: the key itself is in no file, log or command line."""

    name: str
    sha256: str
    requests_per_s: float | None = None  # None: no limit
    tokens: int | None = None  # a budget; who counts tokens tells the front when it is spent

    @classmethod
    def of(
        cls,
        name: str,
        secret: str,
        *,
        requests_per_s: float | None = None,
        tokens: int | None = None,
    ) -> Self:
        if len(secret) < _SHORTEST_KEY or not secret.isascii() or not secret.isprintable():
            raise InvalidValue(
                f"the API key {name!r} has fewer than {_SHORTEST_KEY} characters, or some that are "
                "not printable ASCII",
                hint="make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
            )
        if " " in secret:
            raise InvalidValue(f"the API key {name!r} has a space in it", hint="leave it out")
        hashed = hashlib.sha256(secret.encode()).hexdigest()
        return cls(name, hashed, requests_per_s, tokens)

    def __post_init__(self) -> None:
        _check_name("API key", self.name)
        if not _HASH.fullmatch(self.sha256):
            raise InvalidValue(
                f"the hash of API key {self.name!r} is not a SHA-256 in lower-case hex",
                hint="Key.of(name, secret) makes it",
            )
        if self.requests_per_s is not None and not 0.1 <= self.requests_per_s <= 1e6:
            raise InvalidValue(
                f"API key {self.name!r}: {self.requests_per_s:g} requests/s",
                hint="from 0.1 to 1,000,000, or none at all for no limit",
            )
        if self.tokens is not None and self.tokens < 0:
            raise InvalidValue(f"API key {self.name!r}: a budget of {self.tokens} tokens")


class By(Enum):
    HEADER = "header"
    COOKIE = "cookie"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True)
class Affinity:
    """Requests that are alike go to the same replica, unless it has much more to do than others.

    `name` is of the header or cookie; of a prefix, `bytes` of the body's beginning are compared,
    which hold the prompt's beginning as clients write the same fields in the same order.
    """

    by: By
    name: str = ""
    bytes: int = 1024

    def __post_init__(self) -> None:
        if self.by is not By.PREFIX and not _HEADER.fullmatch(self.name):
            raise InvalidValue(
                f"affinity by {self.by.value}: {self.name!r} is not the name of one",
                hint="for example x-session-id",
            )
        if not 16 <= self.bytes <= 8192:
            raise InvalidValue(f"affinity by {self.bytes} bytes of a prompt", hint="16 to 8192")


@dataclass(frozen=True, slots=True)
class Front:
    """Seconds and bytes are limits; `fronts` stand side by side and share keys' rates evenly."""

    port: int
    address: str = "127.0.0.1"
    certificate: str | None = None  # a PEM file of chain and private key; None: plain HTTP
    keys: tuple[Key, ...] = ()  # none: everyone may ask
    health_path: str = "/health"  # of replicas
    health_every_s: float = 1.0
    queue: int = 1000  # requests that may wait for a replica
    queue_wait_s: float = 120.0  # for a replica that has room
    in_time_s: float = 0.0  # who waits longer is late, and waits for others; 0: all in turn
    patient_s: float = 30.0  # so long at most do they wait for others
    hold_s: float = 600.0  # for the first replica, while there is none
    body_bytes: int = 8 << 20
    replay_bytes: int = 32 << 10  # a request up to this size can be sent again; larger costs speed
    connect_s: float = 2.0
    request_s: float = 30.0  # to receive a request
    silence_s: float = 600.0  # to the first byte of an answer, and between two
    retries: int = 3
    affinity: Affinity | None = None
    threads: int | None = None  # None: as many as there are cores
    fronts: int = 1

    def __post_init__(self) -> None:
        _check_address("the front", self.address, self.port)
        if not _PATH.fullmatch(self.health_path):
            raise InvalidValue(f"{self.health_path!r} is not a path of a probe", hint="/health")
        if self.certificate is not None and not _is_plain(self.certificate):
            raise InvalidValue(
                f"the certificate's path {self.certificate!r} has characters that cannot be used",
                hint="no quotes, backslashes, and no control characters",
            )
        for name, low, high in (
            ("health_every_s", 0.05, 3600), ("queue", 0, 1_000_000), ("queue_wait_s", 0.1, 86400),
            ("in_time_s", 0, 3600), ("patient_s", 0, 500), ("hold_s", 0, 86400),
            ("body_bytes", 1024, 1 << 40), ("replay_bytes", 16384, 1 << 24),
            ("connect_s", 0.05, 3600), ("request_s", 0.1, 86400), ("silence_s", 1, 86400),
            ("retries", 0, 10), ("fronts", 1, 100),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidValue(f"front: {name} is {value:g}", hint=f"from {low:g} to {high:g}")
        if self.threads is not None and not 1 <= self.threads <= 64:
            raise InvalidValue(f"front: {self.threads} threads", hint="from 1 to 64")
        _check_twice("API key", [key.name for key in self.keys])
        _check_twice("hash of an API key", [key.sha256 for key in self.keys])


class State(Enum):
    READY = "ready"
    DRAINING = "draining"  # running answers finish, and no new ones begin


@dataclass(frozen=True, slots=True)
class Backend:
    """A replica. Its id is of one launch: what comes up at another address has another id."""

    id: str
    address: str
    port: int
    weight: int = 100
    state: State = State.READY
    at_once: int = 0  # requests that it takes at once, and others queue; 0: as many as come

    def __post_init__(self) -> None:
        _check_name("replica", self.id)
        if self.id.upper() in ("FRONTEND", "BACKEND"):
            raise InvalidValue(f"a replica cannot be called {self.id!r}")
        _check_address(f"replica {self.id}", self.address, self.port)
        if not 0 <= self.weight <= 256:
            raise InvalidValue(f"replica {self.id}: weight {self.weight}", hint="from 0 to 256")
        if self.at_once < 0:
            raise InvalidValue(f"replica {self.id}: {self.at_once} requests at once")

    @property
    def place(self) -> str:
        return place(self.address, self.port)


def place(address: str, port: int) -> str:
    """As HAProxy writes an address and a port."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidValue(
            f"{name!r} cannot be the name of a{'n' if what[0] in 'AEIOU' else ''} {what}",
            hint="letters, digits, '.', '_' and '-', at most 63",
        )


def _check_address(what: str, address: str, port: int) -> None:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise InvalidValue(
            f"{what}: {address!r} is not an IP address", hint="for example 10.0.0.7 or 127.0.0.1"
        ) from None
    if "%" in address:
        raise InvalidValue(f"{what}: {address!r} has a zone", hint="give a global address")
    if not 1 <= port <= 65535:
        raise InvalidValue(f"{what}: there is no port {port}", hint="from 1 to 65535")


def _check_twice(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidValue(f"the {what} {twice[0]} is there twice", hint="leave one out")


def _is_plain(path: str) -> bool:
    return path.isprintable() and not set(path) & set("'\"\\")
