"""A real HTTP server on loopback that answers as it is told, well or badly."""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """`cut` sends only that many bytes of the body under the full Content-Length, then hangs up.
    `endless` sends the body again and again and never says how long it is."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0
    cut: int | None = None
    endless: bool = False

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


Handler = Callable[[Request], Any]


class QuietServer(ThreadingHTTPServer):
    """Says nothing of a client that hung up: some are killed while they ask, and a client that
    drops a cut answer resets the connection. On a slow machine the server notices that while the
    test still looks at what was printed."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LocalHttp:
    """`on("/path", answer)`: an answer is a Reply, a body, a function of the request, or a list of
    those, given out one a request with the last one repeated."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self._routes: dict[str, list[Any]] = {}
        self._lock = threading.Lock()
        outer = self

        class _Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                outer._answer(self)

            do_GET = do_POST = do_PUT = handle_any  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = QuietServer(("127.0.0.1", 0), _Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def on(self, path: str, *answers: Any) -> None:
        self._routes[path] = list(answers)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        length = int(handler.headers.get("content-length") or 0)
        request = Request(
            method=handler.command,
            path=parts.path,
            query={k: v[-1] for k, v in parse_qs(parts.query, keep_blank_values=True).items()},
            headers={k.lower(): v for k, v in handler.headers.items()},
            body=handler.rfile.read(length),
        )
        with self._lock:
            self.requests.append(request)
            answers = self._routes.get(parts.path)
            if not answers:
                answer: Any = Reply({"error": f"no route {parts.path}"}, status=404)
            else:
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if callable(answer):
            answer = answer(request)
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        if reply.delay_s:
            time.sleep(reply.delay_s)
        body = reply.encoded()
        try:
            handler.send_response(reply.status)
            if not reply.endless:
                handler.send_header("content-length", str(len(body)))
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            while reply.endless:
                handler.wfile.write(body)
            handler.wfile.write(body if reply.cut is None else body[: reply.cut])
            if reply.cut is not None:
                handler.wfile.flush()
                handler.close_connection = True
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client gave up waiting, which is what the test asked for
