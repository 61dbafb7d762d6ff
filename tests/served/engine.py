"""An engine for tests: HTTP, a health check, metrics as vLLM names them, answers that take time.

`python engine.py PORT`: a request says how long its answer takes, or which file it waits for; a
stream comes in ten pieces.
Standard library only, so it is up in a tenth of a second.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RUNNING = [0]
TOKENS = [0]
LOCK = threading.Lock()
TAKES_S = 0.05


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(200, b"ok")
        elif self.path == "/metrics":
            text = f"vllm:num_requests_running {RUNNING[0]}\nvllm:num_requests_waiting 0\n"
            text += f'vllm:generation_tokens_total{{model="x"}} {TOKENS[0]}\n'
            self._answer(200, text.encode())
        else:
            self._answer(404, b"no")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        takes_s = float(body.get("takes_s", TAKES_S))
        with LOCK:
            RUNNING[0] += 1
        try:
            if body.get("stream"):
                self._stream(takes_s)
            else:
                time.sleep(takes_s)
                while body.get("after") and not os.path.exists(body["after"]):  # noqa: PTH110
                    time.sleep(0.01)
                self._answer(200, json.dumps({"text": "hello"}).encode())
        finally:
            with LOCK:
                RUNNING[0] -= 1
                TOKENS[0] += 10

    def _stream(self, takes_s: float) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for n in range(10):
            piece = f"data: {n}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            time.sleep(takes_s / 10)
        self.wfile.write(b"0\r\n\r\n")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    print("engine: listening", flush=True)  # noqa: T201
    Server((os.environ.get("HOST", "127.0.0.1"), int(sys.argv[1])), Handler).serve_forever()
