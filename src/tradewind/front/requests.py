"""The front's log, a JSON object a request, as values; and what each key has asked for. Pure.

Tokens are not in it: HAProxy sees an answer's bytes, not its `usage`, unless it holds back whole
answers. Engines count tokens (their metrics), and keys are told apart by requests and bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """Times in milliseconds; None for those of a stage that it did not reach."""

    id: str
    accepted_s: float
    key: str  # its name; empty where none is asked for, or it is not known
    replica: str  # empty where none was asked
    path: str
    status: int
    end: str  # HAProxy's two letters; "--" is an answer to its last byte
    retries: int
    received_ms: int | None
    held_ms: int
    queue_ms: int | None
    connect_ms: int | None
    response_ms: int | None
    total_ms: int
    bytes_in: int
    bytes_out: int

    @property
    def whole(self) -> bool:
        """Answered to the last byte."""
        return self.end == "--"


def read(lines: Iterable[str | bytes]) -> Iterator[Request]:
    """Lines that are not a request's (one that is being written) are left out."""
    for line in lines:
        try:
            yield _request(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _request(found: dict[str, str]) -> Request:
    replica = found["replica"]
    return Request(
        id=found["id"],
        accepted_s=float(found["accepted_s"]),
        key="" if found["key"] == "-" else found["key"],
        replica="" if replica in ("-", "<NOSRV>") else replica,
        path=found["path"],
        status=int(found["status"]),
        end=found["end"],
        retries=int(found["retries"].removeprefix("+")),  # a plus: the last at another replica
        received_ms=_stage(found["received_ms"]),
        held_ms=int(found["held_ms"]) if found["held_ms"].isdigit() else 0,
        queue_ms=_stage(found["queue_ms"]),
        connect_ms=_stage(found["connect_ms"]),
        response_ms=_stage(found["response_ms"]),
        total_ms=int(found["total_ms"]),
        bytes_in=int(found["bytes_in"]),
        bytes_out=int(found["bytes_out"]),
    )


def _stage(value: str) -> int | None:
    return None if int(value) < 0 else int(value)


@dataclass(slots=True)
class Account:
    requests: int = 0
    failed: int = 0  # not answered with 2xx to the last byte
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0  # of all its requests together


def by_key(requests: Iterable[Request]) -> dict[str, Account]:
    found: dict[str, Account] = {}
    for request in requests:
        account = found.setdefault(request.key, Account())
        account.requests += 1
        account.failed += not (request.whole and 200 <= request.status < 300)
        account.bytes_in += request.bytes_in
        account.bytes_out += request.bytes_out
        account.seconds += request.total_ms / 1000
    return found
