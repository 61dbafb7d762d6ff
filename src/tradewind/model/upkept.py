"""How a service is kept up: where its front listens, what its replicas are asked, how many."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.model import checks
from tradewind.model.checks import Fault
from tradewind.model.circle import check_range

MOST_REPLICAS = 1000
MOST_FRONTS = 4
_PATH = re.compile(r"/[A-Za-z0-9._~/-]{0,200}")
_KEY = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:[^\0\n]+)")
_KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_AFFINITY = re.compile(r"prefix|(header|cookie):[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkept:
    port: int = 8080
    address: str = "127.0.0.1"
    fronts: int = 1
    """Of rented machines: so many are its front."""
    allow: tuple[str, ...] = ()
    """From where rented fronts are reached; none: from their own network."""
    certificate: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    """By name, where each is: `env:NAME` or `file:PATH`."""
    queue: int = 1000
    queue_wait_s: int = 120
    hold_s: int = 600
    body_bytes: int = 8 << 20
    silence_s: int = 600
    affinity: str | None = None
    engine_port: int | None = None
    health: str = "/health"
    metrics: str = "/metrics"
    up_within_s: int = 600
    drain_s: int = 120
    at_once: int | None = None
    """None: by the plan."""
    warm_up: str | None = None
    warm_path: str = "/v1/completions"
    most: int | None = None
    idle_s: int = 300

    def __post_init__(self) -> None:
        checks.raise_any("service", self.faults(checks.fields_of(self)))

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        for name in ("port", "engine_port"):
            port = values.get(name)
            if port is not None and not (type(port) is int and 1 <= port <= 65535):
                yield Fault(name, f"{checks.shown(port)} is no port", f"{name}: 8080")
        if values.get("port") is not None and values.get("port") == values.get("engine_port"):
            yield Fault("engine_port", "it is the front's port too", "leave it out: a free one")
        yield from _address(values)
        yield from checks.text(values, "certificate", "warm_up", most=100_000)
        for name in ("health", "metrics", "warm_path"):
            path = values.get(name)
            if path is not None and not (isinstance(path, str) and _PATH.fullmatch(path)):
                yield Fault(name, f"{checks.shown(path)} is no path", f"{name}: /health")
        yield from checks.whole(values, "queue", "at_once", "most", "fronts")
        fronts = values.get("fronts")
        if isinstance(fronts, int) and fronts > MOST_FRONTS:
            yield Fault("fronts", f"{fronts:,} fronts; at most {MOST_FRONTS}")
        for each in values.get("allow") or ():
            try:
                check_range(str(each))
            except InvalidValue as error:
                yield Fault("allow", error.message, error.hint or "")
        for name in ("queue_wait", "hold", "silence", "up_within", "drain", "idle"):
            yield from checks.whole(values, f"{name}_s", field=name)
            seconds = values.get(f"{name}_s")
            if isinstance(seconds, int) and seconds > 86_400:
                yield Fault(name, "it is more than a day")
        yield from checks.whole(values, "body_bytes", field="body")
        body = values.get("body_bytes")
        if isinstance(body, int) and not 1024 <= body <= 1 << 40:
            yield Fault("body", "it is not from 1 KB to 1 TB", "body: 8MB")
        most = values.get("most")
        if isinstance(most, int) and most > MOST_REPLICAS:
            yield Fault("most", f"{most:,} replicas; at most {MOST_REPLICAS:,}")
        affinity = values.get("affinity")
        if affinity is not None and not _AFFINITY.fullmatch(str(affinity)):
            yield Fault(
                "affinity",
                f"{checks.shown(affinity)} is none of prefix, header:NAME, cookie:NAME",
            )
        for name, where in (values.get("keys") or {}).items():
            if not _KEY_NAME.fullmatch(str(name)):
                yield Fault("keys", f"{name!r} is no name of a key", "letters, digits, . _ -")
            if not _KEY.fullmatch(str(where)):
                # Not repeated: it may well be the key itself.
                yield Fault(
                    "keys", f"{name}: it does not say where the key is", "env:NAME, or file:PATH"
                )


def _address(values: Mapping[str, Any]) -> Iterator[Fault]:
    import ipaddress

    address = values.get("address")
    if address is None:
        return
    try:
        ipaddress.ip_address(str(address))
    except ValueError:
        yield Fault("address", f"{checks.shown(address)} is no IP address", "address: 127.0.0.1")
