"""The front's log as values."""

from __future__ import annotations

from tradewind.front import requests

LINE = (
    '{"id":"a","accepted_s":1795016204.101,"key":"alice","replica":"r1","path":"\\/v1\\/x",'
    '"status":200,"end":"--","retries":"+1","received_ms":410,"held_ms":"400","queue_ms":0,'
    '"connect_ms":0,"response_ms":1,"total_ms":411,"bytes_in":193,"bytes_out":428}'
)
REFUSED = (
    LINE.replace('"alice"', '"-"')
    .replace('"r1"', '"<NOSRV>"')
    .replace("200", "401")
    .replace('"--"', '"PR"')
    .replace('"queue_ms":0', '"queue_ms":-1')
    .replace('"400"', '"-"')
)


def test_a_line_is_a_request() -> None:
    answered, refused = requests.read([LINE, REFUSED])
    assert (answered.path, answered.retries, answered.held_ms) == ("/v1/x", 1, 400)
    assert answered.whole
    assert (refused.key, refused.replica, refused.queue_ms, refused.held_ms) == ("", "", None, 0)


def test_anything_else_is_left_out() -> None:
    assert list(requests.read(["Proxy front stopped", LINE[:50], "[]", "1", "{}", ""])) == []


def test_keys_are_accounted_for() -> None:
    cut = LINE.replace('"--"', '"SD"')
    found = requests.by_key(requests.read([LINE, LINE, cut, REFUSED]))
    assert (found["alice"].requests, found["alice"].failed) == (3, 1)
    assert found["alice"].bytes_out == 3 * 428
    assert (found[""].requests, found[""].failed) == (1, 1)
