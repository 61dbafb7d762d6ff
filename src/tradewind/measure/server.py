"""One OpenAI-compatible server: what it serves, and one request to it, timed as it streams.

Servers differ in what they take: some have only chat, some refuse fields that are not OpenAI's.
`Server.probe` finds a dialect that is answered, once, before anything is timed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import urllib3
from urllib3.util import Retry, Timeout

from tradewind.base import clock, endpoints, http
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, SourceFailed

_LONGEST_EVENT = 1 << 20
_LONGEST_ERROR = 1 << 16
_PIECE = 1 << 16
_ENDINGS = ("/chat/completions", "/completions", "/models")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a request must be written for this server to take it."""

    chat: bool = False
    ignore_eos: bool = True  # answers have the length that was asked for
    usage: bool = True  # the last event says how many tokens there were
    limit: str = "max_tokens"

    @property
    def path(self) -> str:
        return "/chat/completions" if self.chat else "/completions"

    def body(self, model: str, prompt: str, tokens: int) -> dict[str, Any]:
        found: dict[str, Any] = {"model": model, self.limit: tokens, "stream": True}
        if self.chat:
            found["messages"] = [{"role": "user", "content": prompt}]
        else:
            found["prompt"] = prompt
        if self.ignore_eos:
            found["ignore_eos"] = True
        if self.usage:
            found["stream_options"] = {"include_usage": True}
        return found


_DIALECTS = tuple(
    Dialect(chat=chat, ignore_eos=ignore, usage=usage, limit=limit)
    for chat in (False, True)
    for ignore, usage, limit in (
        (True, True, "max_tokens"),
        (False, True, "max_tokens"),
        (False, True, "max_completion_tokens"),
        (False, False, "max_tokens"),
    )
)


@dataclass(slots=True)
class Reply:
    """One request. Moments are the stopwatch's; `due_s` is when the load meant to send it."""

    due_s: float
    sent_s: float
    arrivals_s: list[float] = field(default_factory=list)  # of events with text
    prompt_tokens: int | None = None
    output_tokens: int | None = None  # as the server counts; None where it does not say
    error: str | None = None

    @property
    def tokens(self) -> int:
        return self.output_tokens or len(self.arrivals_s)


def address(url: str) -> str:
    """Where its API begins. InvalidValue where it is no address of one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        port, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or port == 0:
        raise InvalidValue(
            f"{url!r} is not the address of a server", hint="for example http://localhost:8000/v1"
        )
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


class Server:
    def __init__(
        self,
        url: str,
        key: str | None,
        env: Mapping[str, str],
        *,
        timeout_s: float = 120.0,
        connections: int = 64,
    ) -> None:
        self.url = address(url)
        if key:
            endpoints.check(self.url, env)
        self._headers = {"content-type": "application/json"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._pools = http.Pools(
            Timeout(connect=10.0, read=timeout_s),
            Retry(total=0, redirect=0, raise_on_redirect=False),
            getproxies(),
            connections=connections,
        )
        self.dialect = _DIALECTS[0]

    def models(self) -> list[str] | None:
        """Names that it serves; None where it does not list them."""
        status, body = self._whole("GET", "/models", None)
        self._refuse(status, body, "/models")
        if status != 200:
            return None
        try:
            return [str(each["id"]) for each in json.loads(body)["data"]]
        except (ValueError, KeyError, TypeError):
            raise SourceFailed(
                f"{self.url}/models does not answer as an OpenAI-compatible server",
                hint="give the address at which /v1/models answers, for example "
                "http://localhost:8000/v1",
            ) from None

    def choose(self, model: str | None) -> str:
        """The model to ask for: the one that is named, or the only one."""
        served = self.models()
        if model is None:
            if served is None:
                raise SourceFailed(
                    f"{self.url}/models lists no models: this may not be an OpenAI-compatible "
                    "server",
                    hint="give the address that ends in /v1, or name the model: --model NAME",
                )
            if len(served) == 1:
                return served[0]
            raise InvalidValue(
                f"{self.url} serves {len(served)} models",
                hint=f"--model NAME: one of {', '.join(served[:20])}" if served else "load one",
            )
        if served and model not in served:
            raise NotFound(
                f"{self.url} does not serve {model!r}",
                hint=f"it serves {', '.join(served[:20])}",
                choices=served,
            )
        return model

    def probe(self, model: str, prompt: str) -> Reply:
        """Finds the dialect. Raises what is wrong with the server or with the request."""
        said = ""
        for dialect in _DIALECTS:
            body = json.dumps(dialect.body(model, prompt, 1)).encode()
            with self._open("POST", dialect.path, body) as answer:
                if answer.status != 200:
                    text = _text(answer)
                    self._refuse(answer.status, text, dialect.path, model)
                    said = said or f"{dialect.path} says {answer.status}: {message(text)}"
                    if answer.status not in (400, 404, 405, 422, 501):
                        break
                    if answer.status not in (404, 405, 501):
                        said = f"{dialect.path} says {answer.status}: {message(text)}"
                    continue
                now = clock.stopwatch()
                reply = Reply(now, now)
                _follow(answer, reply)
            if reply.error is None:
                self.dialect = dialect
                return reply
            said = reply.error
            break
        raise SourceFailed(
            f"{self.url} does not answer as an OpenAI-compatible server: {said}",
            hint="/completions or /chat/completions must answer with a stream of events; is the "
            "address right?",
        )

    def ask(self, model: str, prompt: str, tokens: int, due_s: float) -> Reply:
        """One request; whatever happens to it is in the reply."""
        reply = Reply(due_s, clock.stopwatch())
        body = json.dumps(self.dialect.body(model, prompt, tokens)).encode()
        try:
            with self._open("POST", self.dialect.path, body) as answer:
                if answer.status != 200:
                    reply.error = f"{answer.status}: {message(_text(answer))}"
                else:
                    _follow(answer, reply)
        except SourceFailed as error:
            reply.error = error.message
        return reply

    def _whole(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        with self._open(method, path, body) as answer:
            return answer.status, http.read(answer.response, _LONGEST_EVENT)

    def _open(self, method: str, path: str, body: bytes | None) -> _Answer:
        try:
            return _Answer(self._pools.request(method, self.url + path, self._headers, body))
        except urllib3.exceptions.HTTPError as error:
            raise SourceFailed(
                f"no server answers at {self.url}: {http.reason(error)}",
                hint="is it running, and is this its address and port?",
            ) from None

    def _refuse(self, status: int, body: bytes, path: str, model: str = "") -> None:
        """Raises what no other dialect would change."""
        text = message(body)
        if status in (401, 403):
            keyed = "authorization" in self._headers
            raise NoAccess(
                f"{self.url} refuses {'this key' if keyed else 'requests without a key'}: {text}",
                hint="put the key into OPENAI_API_KEY, or name another variable: --key-env NAME",
            )
        if status == 404 and model and "model" in text.lower():
            raise NotFound(f"{self.url} does not serve {model!r}: {text}", hint="--model NAME")
        if status == 429 or (status >= 500 and status != 501):
            raise SourceFailed(
                f"{self.url}{path} answers {status}: {text}",
                hint="try again when it is ready; its log says more",
                status=status,
            )


class _Answer:
    """An answer whose connection is given back whatever happens."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self.response, self.status = response, response.status

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, *_: object) -> None:
        http.discard(self.response)


def _text(answer: _Answer) -> bytes:
    try:
        return http.read(answer.response, _LONGEST_ERROR)
    except urllib3.exceptions.HTTPError as error:
        return http.reason(error).encode()


def message(body: bytes) -> str:
    """What an error says, in one line."""
    text = body.decode(errors="replace")
    try:
        found = json.loads(text)
        for key in ("error", "message", "detail"):
            if isinstance(found, dict) and found.get(key):
                found = found[key]
        text = found if isinstance(found, str) else json.dumps(found)
    except ValueError:
        pass
    return " ".join(text.split())[:300] or "nothing"


def _follow(answer: _Answer, reply: Reply) -> None:
    """Times the events of a stream as they come."""
    ended = False
    try:
        for event in _events(answer.response):
            now = clock.stopwatch()
            if event == "[DONE]":
                ended = True
                break
            found = json.loads(event)
            if not isinstance(found, dict) or "error" in found:
                reply.error = f"the stream broke off: {message(event.encode())}"
                return
            choices = found.get("choices") or []
            if choices and _says_something(choices[0]):
                reply.arrivals_s.append(now)
            ended = ended or bool(choices and choices[0].get("finish_reason"))
            usage = found.get("usage") or {}
            reply.prompt_tokens = usage.get("prompt_tokens", reply.prompt_tokens)
            reply.output_tokens = usage.get("completion_tokens", reply.output_tokens)
    except urllib3.exceptions.TimeoutError:
        reply.error = "the stream stood still for too long"
    except urllib3.exceptions.HTTPError as error:
        reply.error = f"the stream was cut: {http.reason(error)}"
    except (ValueError, AttributeError, TypeError):
        reply.error = "the answer is not a stream of events (server-sent events)"
    if reply.error is None and not ended:
        reply.error = "the stream was cut before its end"
    if reply.error is None and not reply.arrivals_s:
        reply.error = "the stream had no text"


def _events(response: urllib3.BaseHTTPResponse) -> Iterator[str]:
    """The data of server-sent events. ValueError where it is something else."""
    rest = b""
    while piece := response.read1(_PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_EVENT:
            raise ValueError("an event without an end")
        for line in lines:
            name, _, value = line.strip().partition(b":")
            if name == b"data":
                yield value.strip().decode()
            elif name.startswith((b"{", b"<")):
                raise ValueError("not events")
    if rest.strip().startswith((b"{", b"<")):
        raise ValueError("not events")


def _says_something(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta") or choice
    return any(delta.get(name) for name in ("text", "content", "reasoning_content", "reasoning"))
