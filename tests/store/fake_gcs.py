"""The part of Google Cloud Storage's XML API that object stores use, with real preconditions.

Written for these tests, because no emulator at hand honours `x-goog-if-generation-match`; so what
runs against it shows that our client speaks the protocol and acts rightly on its answers, not that
Google does. Generations, preconditions, multipart uploads and listing by page follow
https://cloud.google.com/storage/docs/xml-api/reference-headers and reference-methods.

    python -m tests.store.fake_gcs PORT
"""

from __future__ import annotations

import re
import sys
import threading
from bisect import bisect_right
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_lock = threading.Lock()
_objects: dict[str, tuple[int, bytes]] = {}  # key → generation, content
_uploads: dict[str, dict[int, bytes]] = {}
_generation = 1_700_000_000_000_000
_PAGE = 1000
BUCKET = "runs"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _go(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {k: v[-1] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if bucket != BUCKET:
            self._say(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            return
        method = getattr(self, "_" + self.command.lower())
        with _lock:
            method(key, query, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _go  # noqa: N815

    def _put(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            _uploads[query["uploadId"]][int(query["partNumber"])] = body
            self._say(200, headers={"etag": _tag(body)})
            return
        self._store(key, body, {})

    def _store(self, key: str, body: bytes, more: dict[str, str], answer: bytes = b"") -> None:
        global _generation
        wanted = self.headers.get("x-goog-if-generation-match")
        now = _objects.get(key, (0, b""))[0]
        if wanted is not None and int(wanted) != now:
            self._say(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            return
        _generation += 1
        _objects[key] = (_generation, body)
        headers = {"etag": _tag(body), "x-goog-generation": str(_generation)} | more
        self._say(200, answer, headers)

    def _post(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            upload = f"u{len(_uploads)}"
            _uploads[upload] = {}
            names = f"<Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key>"
            text = f"{names}<UploadId>{upload}</UploadId>"
            self._xml("InitiateMultipartUploadResult", text)
            return
        parts = _uploads.pop(query["uploadId"])
        order = [int(n) for n in re.findall(rb"<PartNumber>(\d+)</PartNumber>", body)]
        whole = b"".join(parts[n] for n in order)
        text = f"<Key>{escape(key)}</Key><ETag>{_tag(whole)}</ETag>"
        answer = f"<CompleteMultipartUploadResult>{text}</CompleteMultipartUploadResult>"
        self._store(key, whole, {}, answer.encode())

    def _get(self, key: str, query: dict[str, str], body: bytes) -> None:
        if not key:
            self._list(query)
            return
        if key not in _objects:
            self._say(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        generation, data = _objects[key]
        headers = {
            "etag": _tag(data),
            "x-goog-generation": str(generation),
            "last-modified": formatdate(usegmt=True),
        }
        if self.headers.get("if-match") not in (None, _tag(data)):
            self._say(412)
            return
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range") or "")
        if span:
            start, end = int(span[1]), min(int(span[2] or len(data) - 1), len(data) - 1)
            headers["content-range"] = f"bytes {start}-{end}/{len(data)}"
            self._say(206, data[start : end + 1], headers)
            return
        self._say(200, data, headers)

    _head = _get

    def _delete(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            _uploads.pop(query["uploadId"], None)
        elif _objects.pop(key, None) is None:
            self._say(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        self._say(204)

    def _list(self, query: dict[str, str]) -> None:
        keys = sorted(k for k in _objects if k.startswith(query.get("prefix", "")))
        after = query.get("continuation-token") or query.get("start-after", "")
        folders: list[str] = []
        if query.get("delimiter"):
            start = len(query.get("prefix", ""))
            deep = {key for key in keys if query["delimiter"] in key[start:]}
            names = {key[: key.index(query["delimiter"], start) + 1] for key in deep}
            folders, keys = sorted(names), [key for key in keys if key not in deep]
        keys = keys[bisect_right(keys, after) :]
        page, rest = keys[:_PAGE], keys[_PAGE:]
        text = f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>"
        if rest:
            text += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        for key in page:
            size, tag = len(_objects[key][1]), _tag(_objects[key][1])
            text += (
                f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><ETag>{tag}</ETag>"
                "<LastModified>2026-11-15T12:00:00.000Z</LastModified></Contents>"
            )
        for folder in folders:  # all of them on one page
            text += f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
        self._xml("ListBucketResult", text)

    def _xml(self, root: str, text: str) -> None:
        self._say(200, f"<?xml version='1.0'?><{root}>{text}</{root}>".encode())

    def _say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def _tag(data: bytes) -> str:
    return f'"{md5(data).hexdigest()}"'


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    server.serve_forever()
