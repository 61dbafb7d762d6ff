"""A small language model, served: `python engine.py PORT`, as a replica of the demo runs it.

A transformer with random weights, by numpy alone, which makes one token after another and streams
them as OpenAI's API does. It takes its time: at least PACE_S for a token, as a model of a few
billion weights does on one GPU, so that the demo shows the same on every computer. SLOTS requests
are answered at once and others wait, as in real engines; its metrics have vLLM's names.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tradewind.base import clock

PACE_S, SLOTS = 0.03, 4
LAYERS, WIDTH, HEADS, VOCAB, LONGEST = 2, 64, 4, 256, 512


class Model:
    """Weights drawn once; a request has keys and values of its own."""

    def __init__(self) -> None:
        import numpy as np

        self.np, draw = np, np.random.default_rng(7)

        def matrix(rows: int, columns: int) -> Any:
            return draw.standard_normal((rows, columns)).astype("float32") / rows**0.5

        self.embedding = matrix(VOCAB, WIDTH) * WIDTH**0.5
        self.layers = [
            {name: matrix(WIDTH, WIDTH) for name in "qkvo"}
            | {"up": matrix(WIDTH, 4 * WIDTH), "down": matrix(4 * WIDTH, WIDTH)}
            for _ in range(LAYERS)
        ]

    def next(self, token: int, cache: list[list[Any]]) -> int:
        """The most likely one after this; `cache` gets what it adds."""
        np = self.np
        x = self.embedding[token]
        for layer, held in zip(self.layers, cache, strict=True):
            h = x / (np.linalg.norm(x) / WIDTH**0.5 + 1e-5)
            q, k, v = (h @ layer[name] for name in "qkv")
            held.append((k, v))
            keys = np.stack([each[0] for each in held]).reshape(len(held), HEADS, -1)
            values = np.stack([each[1] for each in held]).reshape(len(held), HEADS, -1)
            scores = np.einsum("hd,thd->ht", q.reshape(HEADS, -1), keys) / (WIDTH / HEADS) ** 0.5
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            x = x + np.einsum("ht,thd->hd", weights, values).reshape(-1) @ layer["o"]
            h = x / (np.linalg.norm(x) / WIDTH**0.5 + 1e-5)
            x = x + np.maximum(h @ layer["up"], 0.0) @ layer["down"]
        return int(np.argmax(self.embedding @ x))


class State:
    def __init__(self) -> None:
        self.model = Model()
        self.slots = threading.Semaphore(SLOTS)
        self.lock = threading.Lock()
        self.running = self.waiting = self.tokens_in = self.tokens_out = 0

    def count(self, **changes: int) -> None:
        with self.lock:
            for name, more in changes.items():
                setattr(self, name, getattr(self, name) + more)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(200, b"ok", "text/plain")
        elif self.path == "/v1/models":
            self._answer(200, b'{"object":"list","data":[{"id":"demo","object":"model"}]}')
        elif self.path == "/metrics":
            s = self.state
            told = {
                "num_requests_running": s.running, "num_requests_waiting": s.waiting,
                "prompt_tokens_total": s.tokens_in, "generation_tokens_total": s.tokens_out,
            }  # fmt: skip
            text = "".join(f"vllm:{name} {value}\n" for name, value in told.items())
            self._answer(200, text.encode(), "text/plain")
        else:
            self._answer(404, b'{"error":{"message":"there is no such path"}}')

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = asked.get("prompt") or [each["content"] for each in asked.get("messages", [])]
        prompt = "\n".join(words) if isinstance(words, list) else str(words)
        tokens = list(prompt.encode())[-LONGEST // 2 :] or [0]
        most = min(int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 16), 128)
        state = self.state
        state.count(waiting=1)
        with state.slots:
            state.count(waiting=-1, running=1, tokens_in=len(tokens))
            try:
                self._say(asked, tokens, most)
            finally:
                state.count(running=-1)

    def _say(self, asked: dict[str, Any], tokens: list[int], most: int) -> None:
        chat, stream = "messages" in asked, bool(asked.get("stream"))
        if stream:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
        cache: list[list[Any]] = [[] for _ in range(LAYERS)]
        for token in tokens[-32:-1]:
            self.state.model.next(token, cache)
        token, text = tokens[-1], ""
        for _ in range(most):
            begun = clock.stopwatch()
            token = self.state.model.next(token, cache)
            text += (piece := chr(97 + token % 26))
            self.state.count(tokens_out=1)
            clock.sleep(max(PACE_S - (clock.stopwatch() - begun), 0.0))
            if stream:
                self._chunk({"choices": [_choice(chat, piece, delta=True)]})
        usage = {"prompt_tokens": len(tokens), "completion_tokens": most}
        if stream:
            self._chunk({"choices": [], "usage": usage})
            self._raw(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._answer(
                200, json.dumps({"choices": [_choice(chat, text)], "usage": usage}).encode()
            )

    def _chunk(self, value: dict[str, Any]) -> None:
        self._raw(b"data: " + json.dumps({"model": "demo", **value}).encode() + b"\n\n")

    def _raw(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """One line for each request would be all that its log has."""


def _choice(chat: bool, text: str, *, delta: bool = False) -> dict[str, Any]:
    if not chat:
        return {"index": 0, "text": text}
    return {"index": 0, "delta" if delta else "message": {"role": "assistant", "content": text}}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main(port: int) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    Handler.state = State()
    print(f"serving a model of {LAYERS} layers at port {port}", flush=True)  # noqa: T201
    Server(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
