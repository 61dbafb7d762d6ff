"""The XML API: PUT, GET, HEAD, DELETE of objects, lists of them (version 2 as of S3, and the older
one), uploads in parts, copies; with preconditions on generations in headers."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any
from xml.sax.saxutils import escape

from tests.store.gcs.objects import Entry, Refused, Wanted
from tests.store.gcs.server import Handler, Reply, path_of, span_of

_XML = {"Content-Type": "application/xml; charset=UTF-8"}
_PAGE = 1000
_KEPT = ("content-type", "cache-control", "content-encoding", "content-disposition")


def answer(handler: Handler) -> Reply:
    asked = handler.asked
    bucket, key = path_of(asked.path)
    who = handler.shared.gate.who(asked)
    if not bucket:
        raise Refused(400, "InvalidURI", "Could not parse the specified URI.")
    handler.shared.objects.bucket(bucket)
    if not key:
        if asked.method not in ("GET", "HEAD"):
            raise Refused(501, "NotImplemented", "equipment: buckets are made by the JSON API.")
        return _list(handler, who, bucket)
    does = {
        "PUT": _put,
        "POST": _post,
        "GET": _get,
        "HEAD": _get,
        "DELETE": _delete,
    }.get(asked.method)
    if does is None:
        raise Refused(405, "MethodNotAllowed", "The specified method is not allowed.")
    return does(handler, who, bucket, key)


def error(refused: Refused) -> Reply:
    details = f"<Details>{escape(refused.details)}</Details>" if refused.details else ""
    text = (
        "<?xml version='1.0' encoding='UTF-8'?><Error>"
        f"<Code>{refused.code}</Code><Message>{escape(refused.words)}</Message>{details}</Error>"
    )
    return Reply(refused.status, dict(_XML), text.encode())


def _wanted(handler: Handler) -> Wanted:
    headers = handler.asked.headers
    wished = headers.get("x-goog-if-generation-match")
    not_wished = headers.get("x-goog-if-generation-not-match")
    try:
        return Wanted(
            int(wished) if wished is not None else None,
            int(not_wished) if not_wished is not None else None,
        )
    except ValueError:
        raise Refused(400, "InvalidArgument", "Invalid argument.") from None


def _headers(entry: Entry) -> dict[str, str]:
    return {
        "ETag": entry.etag,
        "x-goog-generation": str(entry.generation),
        "x-goog-metageneration": str(entry.metageneration),
        "x-goog-stored-content-length": str(entry.size),
        "x-goog-storage-class": "STANDARD",
        "Last-Modified": formatdate(entry.made_s, usegmt=True),
        "Accept-Ranges": "bytes",
        "Content-Type": entry.headers.get("content-type", "application/octet-stream"),
        **{k: v for k, v in entry.headers.items() if k != "content-type"},
    }


def _create(handler: Handler, who: str, bucket: str, key: str) -> None:
    """Whoever replaces something removes it, too."""
    handler.need(who, "storage.objects.create", bucket, key)
    if handler.shared.objects.entry(bucket, key) is not None:
        wanted = _wanted(handler)
        if wanted.generation != 0:
            handler.need(who, "storage.objects.delete", bucket, key)


def _put(handler: Handler, who: str, bucket: str, key: str) -> Reply:
    asked, objects = handler.asked, handler.shared.objects
    given = handler.given
    if "uploadId" in asked.query:
        handler.need(who, "storage.objects.create", bucket, key)
        number = asked.query.get("partNumber", "")
        if not number.isdigit() or not 1 <= int(number) <= 10_000:
            raise Refused(400, "InvalidArgument", "Invalid argument.", "partNumber: 1 to 10000")
        handler.keep()
        objects.part(asked.query["uploadId"], int(number), given.file, given.md5, given.size)
        headers = {"ETag": f'"{given.md5}"'}
        return Reply(200, headers, sort="writes", counted_in=given.size)
    source = asked.headers.get("x-goog-copy-source") or asked.headers.get("x-amz-copy-source")
    _create(handler, who, bucket, key)
    if source:
        return _copy(handler, who, bucket, key, source)
    told = asked.headers.get("content-md5")
    if told:
        import base64

        if base64.b64encode(bytes.fromhex(given.md5)).decode() != told:
            raise Refused(400, "BadDigest", "The Content-MD5 you specified did not match.")
    kept = {k: v for k, v in asked.headers.items() if k in _KEPT or k.startswith("x-goog-meta-")}
    handler.keep()
    try:
        made = objects.put(
            bucket,
            key,
            given.file,
            given.size,
            given.md5,
            _wanted(handler),
            kept,
            handler.shared.pace_s(),
        )
    except Refused:
        handler.kept = False
        raise
    return Reply(200, _headers(made), sort="writes", counted_in=given.size)


def _copy(handler: Handler, who: str, bucket: str, key: str, source: str) -> Reply:
    objects = handler.shared.objects
    from_bucket, from_key = path_of(source)
    handler.need(who, "storage.objects.get", from_bucket, from_key)
    file = objects.fresh()
    with objects.opened(from_bucket, from_key) as (entry, stream):
        file.write_bytes(stream.read())
    try:
        made = objects.put(
            bucket, key, file, entry.size, entry.md5, _wanted(handler), dict(entry.headers)
        )
    except Refused:
        file.unlink()
        raise
    text = f"<ETag>{made.etag}</ETag><LastModified>{_time(made.made_s)}</LastModified>"
    body = f"<?xml version='1.0'?><CopyObjectResult>{text}</CopyObjectResult>"
    return Reply(200, {**_headers(made), **_XML}, body.encode(), sort="writes")


def _post(handler: Handler, who: str, bucket: str, key: str) -> Reply:
    asked, objects = handler.asked, handler.shared.objects
    if "uploads" in asked.query:
        handler.need(who, "storage.multipartUploads.create", bucket, key)
        upload = objects.begin(bucket, key)
        names = f"<Bucket>{escape(bucket)}</Bucket><Key>{escape(key)}</Key>"
        return _told("InitiateMultipartUploadResult", f"{names}<UploadId>{upload}</UploadId>")
    if "uploadId" not in asked.query:
        raise Refused(400, "InvalidArgument", "Invalid argument.")
    _create(handler, who, bucket, key)
    upload = asked.query["uploadId"]
    numbers = re.findall(rb"<PartNumber>\s*(\d+)\s*</PartNumber>", handler.given.text())
    files = objects.parts(upload, [int(each) for each in numbers])
    whole, digest, size = objects.fresh(), hashlib.md5(), 0
    with whole.open("wb") as out:
        for each in files:
            data = each.read_bytes()
            out.write(data)
            digest.update(data)
            size += len(data)
    try:
        made = objects.put(bucket, key, whole, size, digest.hexdigest(), _wanted(handler), {})
    except Refused:
        whole.unlink()
        raise
    objects.finish(upload)
    names = f"<Bucket>{escape(bucket)}</Bucket><Key>{escape(key)}</Key>"
    reply = _told("CompleteMultipartUploadResult", f"{names}<ETag>{escape(made.etag)}</ETag>")
    reply.headers["x-goog-generation"] = str(made.generation)
    return reply


def _get(handler: Handler, who: str, bucket: str, key: str) -> Reply:
    asked, objects = handler.asked, handler.shared.objects
    if "uploadId" in asked.query:
        raise Refused(501, "NotImplemented", "equipment: parts are not listed.")
    handler.need(who, "storage.objects.get", bucket, key)
    if objects.entry(bucket, key) is None:
        handler.need(
            who, "storage.objects.list", bucket
        )  # else it is not told that it is not there
    generation = int(asked.query.get("generation") or 0)
    with objects.opened(bucket, key, generation) as (entry, stream):
        objects._check(entry, _wanted(handler))
        tag = asked.headers.get("if-match", "")
        if tag and tag not in (entry.etag, "*"):
            raise Refused(412, "PreconditionFailed", "The condition did not hold.")
        headers = _headers(entry)
        if asked.headers.get("if-none-match", "") in (entry.etag, "*"):
            return Reply(304, headers)
        span = span_of(asked.headers.get("range", ""), entry.size)
        status = 200
        if span:
            status = 206
            headers["Content-Range"] = f"bytes {span[0]}-{span[1] - 1}/{entry.size}"
        import os

        kept: Any = os.fdopen(os.dup(stream.fileno()), "rb")
        return Reply(status, headers, stream=kept, span=span or (0, entry.size))


def _delete(handler: Handler, who: str, bucket: str, key: str) -> Reply:
    asked, objects = handler.asked, handler.shared.objects
    if "uploadId" in asked.query:
        handler.need(who, "storage.multipartUploads.abort", bucket, key)
        objects.finish(asked.query["uploadId"])
        return Reply(204, {}, sort="free")
    handler.need(who, "storage.objects.delete", bucket, key)
    objects.delete(bucket, key, _wanted(handler))
    return Reply(204, {}, sort="free")


def _list(handler: Handler, who: str, bucket: str) -> Reply:
    query = handler.asked.query
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    handler.need(who, "storage.objects.list", bucket, prefix=prefix)
    after = query.get("continuation-token") or query.get("start-after") or query.get("marker", "")
    most = min(int(query.get("max-keys") or _PAGE), _PAGE)
    found, folders, following = handler.shared.objects.listed(
        bucket, prefix, delimiter, after, most
    )
    text = f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix>"
    text += f"<IsTruncated>{'true' if following else 'false'}</IsTruncated>"
    if following:
        name = "NextContinuationToken" if query.get("list-type") == "2" else "NextMarker"
        text += f"<{name}>{escape(following)}</{name}>"
    for each in found:
        text += (
            f"<Contents><Key>{escape(each.key)}</Key><Generation>{each.generation}</Generation>"
            f"<MetaGeneration>{each.metageneration}</MetaGeneration>"
            f"<LastModified>{_time(each.made_s)}</LastModified>"
            f"<ETag>{escape(each.etag)}</ETag><Size>{each.size}</Size></Contents>"
        )
    for folder in folders:
        text += f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
    return _told("ListBucketResult", text)


def _told(root: str, text: str) -> Reply:
    body = f"<?xml version='1.0' encoding='UTF-8'?><{root}>{text}</{root}>"
    return Reply(200, dict(_XML), body.encode(), sort="writes")


def _time(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
