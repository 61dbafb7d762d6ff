"""What a front can be told, and what it refuses before HAProxy would."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tradewind.base.errors import InvalidValue
from tradewind.front.routes import Affinity, Backend, By, Front, Key

SECRET = "0123456789abcdef-secret"


def test_a_key_is_known_by_its_hash_alone() -> None:
    key = Key.of("alice", SECRET)
    assert key.sha256 == hashlib.sha256(SECRET.encode()).hexdigest()
    assert SECRET not in repr(key)


@pytest.mark.parametrize(
    "options",
    [
        {"port": 0}, {"address": "localhost"}, {"address": "fe80::1%eth0"}, {"queue": -1},
        {"health_path": "health"}, {"health_path": "/a b"}, {"health_path": "/a\n  http-request"},
        {"certificate": "/a'b"}, {"certificate": "/a\nb"}, {"replay_bytes": 10}, {"retries": 99},
        {"threads": 0}, {"silence_s": float("nan")},
        {"keys": (Key.of("a", SECRET), Key.of("a", SECRET + "2"))},
        {"keys": (Key.of("a", SECRET), Key.of("b", SECRET))},
    ],
)  # fmt: skip
def test_what_a_front_cannot_be_is_said(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Front(**{"port": 8000, **options})


@pytest.mark.parametrize(
    ("name", "secret", "limits"),
    [
        ("a b", SECRET, {}), ("", SECRET, {}), ("a\nb", SECRET, {}), ("a", "short", {}),
        ("a", "has a space in it, and is long", {}), ("a", SECRET + "\n", {}),
        ("a", SECRET, {"requests_per_s": 0.0}), ("a", SECRET, {"tokens": -1}),
    ],
)  # fmt: skip
def test_what_a_key_cannot_be_is_said_without_the_key(
    name: str, secret: str, limits: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValue) as refused:
        Key.of(name, secret, **limits)
    assert secret not in str(refused.value)


def test_what_replicas_and_affinities_cannot_be() -> None:
    for wrong in (
        ("a b", "127.0.0.1", 1),
        ("a", "host", 1),
        ("a", "::1", 0),
        ("BACKEND", "::1", 1),
    ):
        with pytest.raises(InvalidValue):
            Backend(*wrong)
    with pytest.raises(InvalidValue):
        Backend("a", "::1", 1, weight=257)
    for by, name, size in ((By.HEADER, "a b", 64), (By.COOKIE, "", 64), (By.PREFIX, "", 1)):
        with pytest.raises(InvalidValue):
            Affinity(by, name, size)
    assert Backend("a", "::1", 80).place == "[::1]:80"
