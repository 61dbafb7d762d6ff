"""A door before a real S3 server that keeps its bucket in one region, as AWS does: who signs for
another is sent away, and told where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.store.door import Answer, Door, serving

_SCOPE = re.compile(r"Credential=[^/]+/\d+/([a-z0-9-]+)/s3/")


@dataclass
class Keeper:
    port: int = 0
    region: str = "eu-west-1"
    """Where the bucket is."""
    style: str = "redirect"
    """How the wrong region is answered: `redirect` (301), `malformed` (400, of regions since 2019),
    or `silent` (301, and nobody is told where)."""
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path, and the region signed for: empty if nobody signed."""

    @property
    def wrong(self) -> int:
        return sum(1 for _, _, region in self.requests if region and region != self.region)

    @property
    def asked(self) -> int:
        """How often somebody asked where the bucket is."""
        return sum(1 for method, _, region in self.requests if method == "HEAD" and not region)


@contextmanager
def regional(port: int, keeper: Keeper) -> Iterator[Keeper]:
    """`port` is that of the server, on 127.0.0.1."""

    class Regional(Door):
        inner = port

        def answer(self, body: bytes) -> Answer:
            scope = _SCOPE.search(self.headers.get("Authorization") or "")
            region = scope[1] if scope else ""
            keeper.requests.append((self.command, self.path, region))
            return self.passed(body) if region == keeper.region else _elsewhere(keeper, region)

    with serving(Regional) as keeper.port:
        yield keeper


def _elsewhere(keeper: Keeper, region: str) -> Answer:
    told = [] if keeper.style == "silent" else [("x-amz-bucket-region", keeper.region)]
    if not region:  # nobody in particular may know where it is, and nothing more
        return 403, told, _error("AccessDenied", "Access Denied")
    if keeper.style == "malformed":
        words = f"the region '{region}' is wrong; expecting '{keeper.region}'"
        return 400, told, _error("AuthorizationHeaderMalformed", words)
    words = "must be addressed using the specified endpoint"
    return 301, told, _error("PermanentRedirect", words)


def _error(code: str, message: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
