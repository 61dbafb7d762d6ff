"""haproxy.cfg from a Front. That HAProxy takes it is tests/system/test_front.py's affair."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tradewind.base.errors import InvalidValue
from tradewind.front import config
from tradewind.front.routes import Affinity, By, Front, Key

SECRET = "0123456789abcdef-secret"
PLACES = config.Places(
    "/f/a.sock", "/f/hold.lua", "/f/order.lua", "/f/keys.map", "/f/rates.map", "/f/spent.map"
)
KEYED = Front(8000, keys=(Key.of("alice", SECRET, requests_per_s=2.0), Key.of("bob", SECRET + "b")))


def lines(front: Front, section: str) -> list[str]:
    text = config.text(front, PLACES)
    found = re.search(rf"^{section}\n((?:    .*\n)*)", text, re.MULTILINE)
    assert found, section
    return [line.strip() for line in found[1].splitlines()]


def test_the_same_front_is_the_same_text_without_keys_or_replicas() -> None:
    assert config.text(KEYED, PLACES) == config.text(replace(KEYED), PLACES)
    text = config.text(KEYED, PLACES) + config.map_text(config.keys_map(KEYED.keys))
    assert SECRET not in text
    assert not re.search(r"^\s+server ", text, re.MULTILINE)


def test_requests_are_retried_before_the_first_byte_only() -> None:
    replicas = lines(Front(8000, retries=2), "backend replicas")
    (on,) = [line for line in replicas if line.startswith("retry-on")]
    assert set(on.split()[1:]) == {"conn-failure", "empty-response", "503"}
    assert {"retries 2", "option redispatch 1", "option http-buffer-request"} <= set(replicas)
    # Nothing is read from strangers: bodies are waited for behind the keys and limits.
    assert "option http-buffer-request" not in lines(KEYED, "frontend front")
    assert "tune.bufsize 32768" in lines(KEYED, "global")


def test_refusals_come_in_order_of_what_they_cost() -> None:
    rules = [line for line in lines(KEYED, "frontend front") if line.startswith("http-request")]
    statuses = [found[1] for line in rules if (found := re.search(r"deny status (\d+)", line))]
    assert statuses == ["401", "413", "429", "429", "503", "503", "503"]
    hold = next(i for i, line in enumerate(rules) if "lua.hold" in line)
    assert all("deny status 4" not in line for line in rules[hold:])
    assert not any("401" in line for line in lines(Front(8000), "frontend front"))


def test_every_error_is_json_as_openais_clients_read_it() -> None:
    text = config.text(KEYED, PLACES)
    bodies = re.findall(r"string '([^']*)'", text)
    assert len(bodies) == 6 + 7 + 1
    for body in bodies:
        assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}
    for line in text.splitlines():
        if "deny status 503" in line or "deny status 429" in line or "status 503 " in line:
            assert re.search(r"hdr retry-after \d+", line), line


def test_rates_are_shared_among_fronts() -> None:
    assert config.rates_map(KEYED) == {"alice": "20"}
    assert config.rates_map(replace(KEYED, fronts=2)) == {"alice": "10"}
    slow = Front(8000, keys=(Key.of("slow", SECRET, requests_per_s=0.1),), fronts=4)
    assert config.rates_map(slow) == {"slow": "1"}, "never nothing at all"


@pytest.mark.parametrize(
    ("affinity", "says"),
    [
        (None, "balance leastconn"),
        (Affinity(By.HEADER, "x-session"), "req.hdr(x-session)"),
        (Affinity(By.COOKIE, "sid"), "req.cook(sid)"),
        (Affinity(By.PREFIX, bytes=512), "req.body,bytes(0,512)"),
    ],
)
def test_affinity_is_a_consistent_hash_with_bounded_load(
    affinity: Affinity | None, says: str
) -> None:
    found = lines(Front(8000, affinity=affinity), "backend replicas")
    assert any(says in line for line in found)
    assert ("hash-balance-factor 200" in found) == (affinity is not None)


def test_https() -> None:
    plain, tls = Front(8000, "::1"), Front(8000, certificate="/etc/a b.pem")
    assert "bind [::1]:8000" in lines(plain, "frontend front")
    (bind,) = [line for line in lines(tls, "frontend front") if line.startswith("bind")]
    assert "ssl crt '/etc/a b.pem' alpn h2,http/1.1" in bind


def test_a_folder_that_haproxy_would_misread_is_refused() -> None:
    with pytest.raises(InvalidValue, match="folder"):
        replace(PLACES, keys="/with space/keys.map")


def test_who_waits_is_put_in_order_only_where_there_is_a_target() -> None:
    assert "lua.order" not in config.text(Front(8000), PLACES)
    patient = Front(8000, in_time_s=0.5)
    assert f"lua-load {PLACES.order}" in lines(patient, "global")
    order = "http-request lua.order if { queue(replicas) gt 0 }"
    assert order in lines(patient, "backend replicas")
