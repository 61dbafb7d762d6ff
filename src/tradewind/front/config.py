"""A Front as HAProxy's configuration (2.6 or later), and the maps beside it. Pure.

Two fronts that are told the same write the same text: the only state of a front is how often each
key has asked in the last seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tradewind.base.errors import InvalidValue
from tradewind.front.routes import Affinity, By, Front, Key, place

REPLICAS = "replicas"
HEALTH = "/front/health"  # of the front itself
RATE_WINDOW_S = 10  # a key's rate may be exceeded for moments, not over this long
_RETRY_AFTER_S = {"busy": 5, "none": 30, "rate": 1, "spent": 3600}


@dataclass(frozen=True, slots=True)
class Places:
    """Files of one front, by their paths."""

    socket: str
    hold: str
    order: str
    keys: str
    rates: str
    spent: str

    def __post_init__(self) -> None:
        for path in (self.socket, self.hold, self.order, self.keys, self.rates, self.spent):
            if not path.isprintable() or set(path) & set("'\"\\ ,()"):
                raise InvalidValue(
                    f"the folder of a front cannot lie at {path!r}",
                    hint="a path without spaces, quotes, commas and brackets",
                )


def text(front: Front, places: Places) -> str:
    """The whole file. Replicas are not in it: they are added at run time (`changes`)."""
    parts = [_global(front, places), _defaults(front), _frontend(front, places), _replicas(front)]
    if front.keys:
        parts.append(_rates())
    return "\n".join("\n".join(part) + "\n" for part in parts)


def keys_map(keys: Iterable[Key]) -> dict[str, str]:
    """Hash of a key → its name."""
    return {key.sha256: key.name for key in keys}


def rates_map(front: Front) -> dict[str, str]:
    """Name of a key → how often it may ask this one front in a window."""
    return {
        key.name: str(max(round(key.requests_per_s * RATE_WINDOW_S / front.fronts), 1))
        for key in front.keys
        if key.requests_per_s is not None
    }


def map_text(entries: dict[str, str]) -> str:
    return "".join(f"{key} {value}\n" for key, value in sorted(entries.items()))


def error(kind: str, code: str, message: str) -> str:
    """The body of an error as OpenAI's clients read it, in the quotes of a configuration file."""
    assert "'" not in message
    found = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return f"'{json.dumps(found)}'"


def _global(front: Front, places: Places) -> list[str]:
    return [
        "global",
        f"    stats socket {places.socket} mode 600 level admin expose-fd listeners",
        # Or a second HAProxy would share the port in silence. A reload hands the sockets over.
        "    noreuseport",
        # A request is kept, to be sent again, only if the whole of it fits into one buffer.
        f"    tune.bufsize {front.replay_bytes}",
        f"    setenv TRADEWIND_HOLD_S {front.hold_s:g}",
        f"    setenv TRADEWIND_HOLD_MOST {front.queue}",
        f"    lua-load {places.hold}",
        *(_order(front, places) if front.in_time_s else []),
        # Old processes end with their last answer after a reload, or then at the latest.
        f"    hard-stop-after {max(front.silence_s, 60):g}s",
        *([f"    nbthread {front.threads}"] if front.threads else []),
    ]


def _order(front: Front, places: Places) -> list[str]:
    return [
        f"    setenv TRADEWIND_IN_TIME_S {front.in_time_s:g}",
        f"    setenv TRADEWIND_PATIENT_S {front.patient_s:g}",
        f"    setenv TRADEWIND_QUEUE_WAIT_S {front.queue_wait_s:g}",
        f"    lua-load {places.order}",
    ]


def _defaults(front: Front) -> list[str]:
    silence = f"{_ms(front.silence_s)}ms"
    server = "service_unavailable"
    errors = {
        400: error("invalid_request_error", "bad_request", "this is not a valid HTTP request"),
        408: error(
            "invalid_request_error",
            "request_timeout",
            f"the request was not complete within {front.request_s:g} s",
        ),
        500: error(server, "internal_error", "the front failed"),
        502: error(
            server,
            "replica_failed",
            "the replica ended before it answered, and so did those tried after it",
        ),
        503: error(
            server, "no_replica", "no replica could take this request in time; try again later"
        ),
        504: error(server, "replica_silent", f"the replica said nothing for {front.silence_s:g} s"),
    }
    after = f" hdr retry-after {_RETRY_AFTER_S['busy']}"
    return [
        "defaults",
        "    mode http",
        "    timeout connect " + f"{_ms(front.connect_s)}ms",
        # Nothing comes from a client while it waits for its answer: as long as from the replica.
        f"    timeout client {silence}",
        f"    timeout server {silence}",
        f"    timeout queue {_ms(front.queue_wait_s)}ms",
        f"    timeout http-request {_ms(front.request_s)}ms",
        "    timeout http-keep-alive 60s",
        "    option http-no-delay",  # each event of a stream goes out when it comes
        *(
            f"    http-error status {status} content-type application/json string {body}"
            + (after if status in (502, 503) else "")
            for status, body in errors.items()
        ),
    ]


def _frontend(front: Front, places: Places) -> list[str]:
    tls = ""
    if front.certificate is not None:
        tls = f" ssl crt '{front.certificate}' alpn h2,http/1.1 ssl-min-ver TLSv1.2"
    return [
        "frontend front",
        f"    bind {place(front.address, front.port)}{tls}",
        f"    monitor-uri {HEALTH}",
        # A line is written when its request is over; longer ones would be cut and be no JSON.
        "    log stdout len 4096 format raw local0",
        f"    log-format {_log_format()}",
        "    unique-id-format %[uuid()]",
        "    unique-id-header x-request-id",
        "    option dontlognull",
        "    option forwardfor",
        "    http-request set-var(txn.path) path,bytes(0,200)",
        "    http-request del-header x-tradewind-key",
        *(_keys(places) if front.keys else []),
        f"    http-request deny status 413 {_json(_too_large(front))} "
        f"if {{ req.body_size gt {front.body_bytes} }}",
        *(_limits(places) if front.keys else []),
        f"    http-request lua.hold if {{ nbsrv({REPLICAS}) eq 0 }}",
        _unavailable("queue_full", f"{front.queue} requests wait already", "busy")
        + " if { var(txn.full) -m bool }",
        _unavailable("no_replica", f"no replica has come up within {front.hold_s:g} s", "none")
        + f" if {{ nbsrv({REPLICAS}) eq 0 }}",
        _unavailable("queue_full", f"{front.queue} requests wait already", "busy")
        + f" if {{ queue({REPLICAS}) gt 0 }} {{ queue({REPLICAS}) ge {front.queue} }}",
        f"    default_backend {REPLICAS}",
    ]


def _keys(places: Places) -> list[str]:
    """The key's hash is looked up; what goes on to the replica is its name."""
    unknown = error(
        "invalid_request_error",
        "invalid_api_key",
        "this API key is not known here: send Authorization: Bearer KEY",
    )
    return [
        "    http-request set-var(txn.key) "
        f"http_auth_bearer,sha2(256),hex,lower,map_str({places.keys})",
        f"    http-request deny status 401 {_json(unknown)} hdr www-authenticate Bearer "
        "unless { var(txn.key) -m found }",
        "    http-request del-header authorization",
        "    http-request set-header x-tradewind-key %[var(txn.key)]",
    ]


def _limits(places: Places) -> list[str]:
    """A request that is refused does not count: who asks too often gets the rate, not nothing."""
    spent = error("insufficient_quota", "insufficient_quota", "the budget of this key is spent")
    often = error(
        "requests", "rate_limit_exceeded", "this key asks more often than it may; try again later"
    )
    return [
        f"    http-request deny status 429 {_json(spent)} hdr retry-after "
        f"{_RETRY_AFTER_S['spent']} if {{ var(txn.key),map_str({places.spent}) -m found }}",
        "    http-request track-sc0 var(txn.key) table rates",
        f"    http-request set-var(txn.limit) var(txn.key),map_str_int({places.rates},0)",
        "    http-request set-var(txn.over) sc_gpc0_rate(0),sub(txn.limit)",
        "    acl limited var(txn.limit) -m int gt 0",
        f"    http-request deny status 429 {_json(often)} hdr retry-after "
        f"{_RETRY_AFTER_S['rate']} if limited {{ var(txn.over) -m int ge 0 }}",
        "    http-request sc-inc-gpc0(0) if limited",
    ]


def _replicas(front: Front) -> list[str]:
    large = error(
        "invalid_request_error",
        "length_required",
        "a body of this size must come with its Content-Length",
    )
    # Without a length only what lies in the buffer is known, and a part of that is for headers.
    seen = min(front.body_bytes, front.replay_bytes // 2)
    wait = f"time {_ms(front.request_s)}ms"
    return [
        f"backend {REPLICAS}",
        *_balance(front.affinity, wait),
        f"    http-request wait-for-body {wait} unless {{ req.hdr(content-length) -m found }}",
        f"    http-request deny status 413 {_json(large)} "
        f"if !{{ req.hdr(content-length) -m found }} {{ req.body_size gt {seen} }}",
        # Here, and not before the body has come: it is for those who begin to wait now.
        *(
            [f"    http-request lua.order if {{ queue({REPLICAS}) gt 0 }}"]
            if front.in_time_s
            else []
        ),
        f"    option httpchk GET {front.health_path}",
        "    http-check expect status 200",
        # HAProxy keeps a request to send it again only if it has all of it before the first byte
        # goes to a replica. Here and not in the frontend: nothing is read from strangers.
        "    option http-buffer-request",
        "    option redispatch 1",  # each further try at another replica
        f"    retries {front.retries}",
        # All of these are before the first byte of an answer; a replica that is slow is not asked
        # a second time. 503 is an engine's word for "not now" (still loading, or full).
        "    retry-on conn-failure empty-response 503",
    ]


def _balance(affinity: Affinity | None, wait: str) -> list[str]:
    if affinity is None:
        return ["    balance leastconn"]
    value, first = "", []
    if affinity.by is By.PREFIX:
        first = [f"    http-request wait-for-body {wait} at-least {affinity.bytes}"]
        value = f"req.body,bytes(0,{affinity.bytes})"
    elif affinity.by is By.HEADER:
        value = f"req.hdr({affinity.name})"
    else:
        value = f"req.cook({affinity.name})"
    return [
        # Consistent: a replica that comes or goes moves its share of requests only. The factor
        # is the most that one may have above the mean, so that a hot prefix is spread.
        "    balance hash var(txn.affinity)",
        "    hash-type consistent",
        "    hash-balance-factor 200",
        *first,
        f"    http-request set-var(txn.affinity) {value}",
        "    http-request set-var(txn.affinity) rand unless { var(txn.affinity) -m len gt 0 }",
    ]


def _rates() -> list[str]:
    return [
        "backend rates",
        f"    stick-table type string len 63 size 100k expire {6 * RATE_WINDOW_S}s "
        f"store gpc0_rate({RATE_WINDOW_S}s)",
    ]


def _log_format() -> str:
    """One JSON object a request. Values of clients (path) are escaped; keys are there by name."""
    fields = {
        "id": '"%ID"',
        "accepted_s": "%Ts.%ms",
        "key": '"%[var(txn.key)]"',
        "replica": '"%s"',
        "path": '"%[var(txn.path),json(utf8s)]"',
        "status": "%ST",
        "end": '"%ts"',
        "retries": '"%rc"',
        "received_ms": "%TR",
        "held_ms": '"%[var(txn.held_ms)]"',
        "queue_ms": "%Tw",
        "connect_ms": "%Tc",
        "response_ms": "%Tr",
        "total_ms": "%Ta",
        "bytes_in": "%U",
        "bytes_out": "%B",
    }
    return "'{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}'"


def _too_large(front: Front) -> str:
    return error(
        "invalid_request_error",
        "request_too_large",
        f"the body is larger than {front.body_bytes} bytes",
    )


def _unavailable(code: str, message: str, wait: str) -> str:
    body = error("service_unavailable", code, message)
    return f"    http-request deny status 503 {_json(body)} hdr retry-after {_RETRY_AFTER_S[wait]}"


def _json(body: str) -> str:
    return f"content-type application/json string {body}"


def _ms(seconds: float) -> int:
    return round(1000 * seconds)
