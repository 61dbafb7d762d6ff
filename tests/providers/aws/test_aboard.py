"""Notices by EC2's metadata service, version 2 as it really asks for tokens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler

import pytest

from tests.eventually import eventually
from tests.local_http import QuietServer
from tradewind.providers.aws.aboard import Ec2

ACTION = "meta-data/spot/instance-action"
REBALANCE = "meta-data/events/recommendations/rebalance"


class Service:
    def __init__(self) -> None:
        self.says: dict[str, str] = {}
        self.tokens = {"first"}
        self.broken = False
        service = self

        class Answer(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                assert self.path == "/latest/api/token"
                assert self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
                self._say(200, sorted(service.tokens)[-1])

            def do_GET(self) -> None:
                if service.broken:
                    self._say(503, "")
                elif self.headers["X-aws-ec2-metadata-token"] not in service.tokens:
                    self._say(401, "")
                else:
                    found = service.says.get(self.path.removeprefix("/latest/"))
                    self._say(404 if found is None else 200, found or "")

            def _say(self, code: int, text: str) -> None:
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = QuietServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_notice_says_what_is_left(service: Service) -> None:
    told = Ec2(service.url, each_s=0.02)
    assert told() is None
    service.broken = True  # it hiccups, and later says it nevertheless
    at = datetime.now(UTC) + timedelta(seconds=120)
    text = f'{{"action": "terminate", "time": "{at:%Y-%m-%dT%H:%M:%SZ}"}}'
    service.says[ACTION] = text
    service.broken = False
    left_s = eventually(told)
    assert left_s is not None
    assert 100 < left_s <= 120
    assert not told.at_risk
    told.close()


def test_a_recommendation_is_no_notice(service: Service) -> None:
    told = Ec2(service.url, each_s=0.02)
    service.says[REBALANCE] = '{"noticeTime": "2026-11-16T08:22:00Z"}'
    eventually(lambda: told.at_risk)
    assert told() is None
    told.close()


def test_a_token_that_is_too_old_is_renewed(service: Service) -> None:
    told = Ec2(service.url, each_s=0.02)
    eventually(lambda: told._service._token == "first")
    service.tokens = {"second"}
    service.says[REBALANCE] = "{}"
    eventually(lambda: told.at_risk)
    assert told._service._token == "second"
    told.close()


def test_nonsense_is_no_notice(service: Service) -> None:
    service.says[ACTION] = "maybe"
    service.says[REBALANCE] = "{}"
    told = Ec2(service.url, each_s=0.02)
    service.says[ACTION] = '{"action": "hibernate", "time": "2026-11-16T08:22:00Z"}'
    eventually(lambda: told.at_risk)
    assert told() is None
    told.close()
