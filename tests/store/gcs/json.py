"""The JSON API: buckets and their policies, objects by media, multipart and resumable uploads,
reads and lists, with ifGenerationMatch and its like. Requests are checked against Google's
discovery document."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from tests.cloud.faces.google import discovery
from tests.store.gcs.objects import Entry, Refused, Wanted
from tests.store.gcs.server import Handler, Reply, span_of

_REASONS = {
    "NoSuchBucket": "notFound",
    "NoSuchKey": "notFound",
    "NoSuchUpload": "notFound",
    "PreconditionFailed": "conditionNotMet",
    "AccessDenied": "forbidden",
    "BucketNotEmpty": "conflict",
    "SlowDown": "rateLimitExceeded",
    "ServiceUnavailable": "backendError",
    "AuthenticationRequired": "required",
    "InvalidToken": "authError",
}
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


def answer(handler: Handler) -> Reply:
    asked = handler.asked
    path = asked.path if not asked.path.startswith("/b") else f"/storage/v1{asked.path}"
    who = handler.shared.gate.who(asked)
    if path.startswith("/upload/"):
        return _upload(handler, who, path)
    path = path.removeprefix("/download")
    found = discovery.match(asked.method, path)
    if found is None:
        raise Refused(404, "NotFound", "Not Found")
    method, params = found
    body: Any = None
    if asked.method in ("POST", "PUT", "PATCH"):
        try:
            body = json.loads(handler.given.text() or b"{}")
        except ValueError:
            raise Refused(400, "ParseError", "Parse Error") from None
    try:
        discovery.check_query(method, asked.query)
        if body is not None and method.request:
            discovery.check_body(method, body)
    except discovery.Invalid as invalid:
        raise Refused(400, "InvalidArgument", str(invalid)) from None
    does = _DOES.get(method.id)
    if does is None:
        raise Refused(501, "NotImplemented", f"equipment: {method.id} is not made here")
    reply: Reply = does(handler, who, {**asked.query, **params}, body)
    return reply


def error(refused: Refused) -> Reply:
    words = refused.details or refused.words
    reason = _REASONS.get(refused.code, "invalid")
    first = {"message": words, "domain": "global", "reason": reason}
    told = {"error": {"code": refused.status, "message": words, "errors": [first]}}
    return _json(told, refused.status, sort="reads")


def _json(told: Any, status: int = 200, sort: str = "reads") -> Reply:
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    body = b"" if status == 204 else json.dumps(told).encode()
    return Reply(status, headers, body, sort=sort)


# -- buckets ---------------------------------------------------------------------------------------


def _buckets(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    handler.need(who, "storage.buckets.list", "")
    project, prefix = params["project"], params.get("prefix", "")
    there = [
        each.told
        for name, each in sorted(handler.shared.objects.buckets.items())
        if each.told.get("_project") == project and name.startswith(prefix)
    ]
    return _json(
        {"kind": "storage#buckets", "items": [_shown(each) for each in there]}, sort="writes"
    )


def _make_bucket(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    name = body.get("name", "")
    if not _NAME.fullmatch(name) or "google" in name or name.startswith("goog"):
        raise Refused(400, "InvalidBucketName", f"Invalid bucket name: '{name}'")
    handler.need(who, "storage.buckets.create", "")
    objects = handler.shared.objects
    there = objects.buckets.get(name)
    if there is not None:
        if there.told.get("_project") == params["project"]:
            words = (
                "Your previous request to create the named bucket succeeded and you already own it."
            )
        else:
            words = (
                "The requested bucket name is not available. The bucket namespace is shared by all"
                " users of the system. Please select a different name and try again."
            )
        raise Refused(409, "BucketAlreadyExists", words)
    now = _time(handler.shared.now())
    location = str(body.get("location", "US")).upper()
    multi = location in ("US", "EU", "ASIA")
    told = {
        "kind": "storage#bucket",
        "id": name,
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{name}",
        "projectNumber": "123456789012",
        "timeCreated": now,
        "updated": now,
        "metageneration": "1",
        "storageClass": "STANDARD",
        "iamConfiguration": {
            "uniformBucketLevelAccess": {"enabled": False},
            "publicAccessPrevention": "inherited",
        },
        "softDeletePolicy": {"retentionDurationSeconds": "604800", "effectiveTime": now},
        **body,
        "location": location,
        "locationType": "multi-region" if multi else "region",
        "etag": "CAE=",
        "_project": params["project"],
    }
    objects.put_bucket(name, told)
    handler.shared.made(name, told)
    return _json(_shown(told), sort="writes")


def _shown(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if not name.startswith("_")}


def _bucket(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    found = handler.shared.objects.bucket(params["bucket"])
    handler.need(who, "storage.buckets.get", params["bucket"])
    return _json(_shown(found.told))


def _change_bucket(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    found = handler.shared.objects.bucket(params["bucket"])
    handler.need(who, "storage.buckets.update", params["bucket"])
    wished = params.get("ifMetagenerationMatch")
    if wished is not None and wished != found.told["metageneration"]:
        raise Refused(412, "PreconditionFailed", "The condition did not hold.")
    told = _merged(found.told, body)
    told["metageneration"] = str(int(told["metageneration"]) + 1)
    told["updated"] = _time(handler.shared.now())
    handler.shared.objects.put_bucket(params["bucket"], told)
    return _json(_shown(told), sort="writes")


def _merged(told: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """As JSON Merge Patch has it."""
    made = dict(told)
    for name, value in change.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, dict) and isinstance(made.get(name), dict) and name != "lifecycle":
            made[name] = _merged(made[name], value)
        else:
            made[name] = value
    return made


def _remove_bucket(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    handler.shared.objects.bucket(params["bucket"])
    handler.need(who, "storage.buckets.delete", params["bucket"])
    handler.shared.objects.remove_bucket(params["bucket"])
    return _json(None, 204, "free")


def _policy(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    handler.shared.objects.bucket(params["bucket"])
    handler.need(who, "storage.buckets.getIamPolicy", params["bucket"])
    policies = getattr(handler.shared.gate, "policies", None)
    if policies is None:
        raise Refused(501, "NotImplemented", "equipment: there is no gate here, and no policy")
    told = policies.get(f"projects/_/buckets/{params['bucket']}")
    return _json({"kind": "storage#policy", **told})


def _set_policy(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    handler.shared.objects.bucket(params["bucket"])
    handler.need(who, "storage.buckets.setIamPolicy", params["bucket"])
    policies = getattr(handler.shared.gate, "policies", None)
    if policies is None:
        raise Refused(501, "NotImplemented", "equipment: there is no gate here, and no policy")
    try:
        told = policies.put(f"projects/_/buckets/{params['bucket']}", body)
    except Exception as problem:
        status = int(getattr(problem, "status", 400))
        raise Refused(
            412 if status == 409 else status, "PreconditionFailed", str(problem)
        ) from None
    return _json({"kind": "storage#policy", **told}, sort="writes")


def _test(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    from urllib.parse import parse_qsl

    handler.shared.objects.bucket(params["bucket"])
    query = parse_qsl(handler.path.partition("?")[2])
    asked = [value for name, value in query if name == "permissions"]
    gate = handler.shared.gate
    has = [each for each in asked if gate.may(who, each, params["bucket"], "")]
    return _json({"kind": "storage#testIamPermissionsResponse", "permissions": has})


# -- objects ---------------------------------------------------------------------------------------


def _wanted(params: dict[str, str]) -> Wanted:
    wished, not_wished = params.get("ifGenerationMatch"), params.get("ifGenerationNotMatch")
    return Wanted(
        int(wished) if wished is not None else None,
        int(not_wished) if not_wished is not None else None,
    )


def _told(bucket: str, entry: Entry) -> dict[str, Any]:
    return {
        "kind": "storage#object",
        "id": f"{bucket}/{entry.key}/{entry.generation}",
        "name": entry.key,
        "bucket": bucket,
        "generation": str(entry.generation),
        "metageneration": str(entry.metageneration),
        "contentType": entry.headers.get("content-type", "application/octet-stream"),
        "storageClass": "STANDARD",
        "size": str(entry.size),
        "md5Hash": base64.b64encode(bytes.fromhex(entry.md5)).decode(),
        "etag": f"C{entry.generation}",
        "timeCreated": _time(entry.made_s),
        "updated": _time(entry.made_s),
    }


def _object(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    bucket, key = params["bucket"], params["object"]
    objects = handler.shared.objects
    objects.bucket(bucket)
    handler.need(who, "storage.objects.get", bucket, key)
    if objects.entry(bucket, key) is None:
        handler.need(who, "storage.objects.list", bucket)
    with objects.opened(bucket, key, int(params.get("generation") or 0)) as (entry, stream):
        objects._check(entry, _wanted(params))
        if params.get("alt") != "media":
            return _json(_told(bucket, entry))
        span = span_of(handler.asked.headers.get("range", ""), entry.size)
        headers = {"Content-Type": entry.headers.get("content-type", "application/octet-stream")}
        headers["x-goog-generation"] = str(entry.generation)
        if span:
            headers["Content-Range"] = f"bytes {span[0]}-{span[1] - 1}/{entry.size}"
        kept: Any = os.fdopen(os.dup(stream.fileno()), "rb")
        return Reply(206 if span else 200, headers, stream=kept, span=span or (0, entry.size))


def _objects(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    bucket, prefix = params["bucket"], params.get("prefix", "")
    handler.shared.objects.bucket(bucket)
    handler.need(who, "storage.objects.list", bucket, prefix=prefix)
    token = params.get("pageToken", "")
    after = base64.urlsafe_b64decode(token).decode() if token else ""
    most = min(int(params.get("maxResults") or 1000), 1000)
    found, folders, following = handler.shared.objects.listed(
        bucket, prefix, params.get("delimiter", ""), after, most
    )
    told: dict[str, Any] = {
        "kind": "storage#objects",
        "items": [_told(bucket, each) for each in found],
    }
    if folders:
        told["prefixes"] = folders
    if following:
        told["nextPageToken"] = base64.urlsafe_b64encode(following.encode()).decode()
    return _json(told, sort="writes")


def _delete(handler: Handler, who: str, params: dict[str, str], body: Any) -> Reply:
    bucket, key = params["bucket"], params["object"]
    handler.shared.objects.bucket(bucket)
    handler.need(who, "storage.objects.delete", bucket, key)
    handler.shared.objects.delete(bucket, key, _wanted(params))
    return _json(None, 204, "free")


# -- uploads ---------------------------------------------------------------------------------------


def _upload(handler: Handler, who: str, path: str) -> Reply:
    asked, query = handler.asked, handler.asked.query
    found = re.fullmatch(r"/upload/storage/v1/b/([^/]+)/o", path)
    if found is None:
        raise Refused(404, "NotFound", "Not Found")
    bucket = unquote(found[1])
    handler.shared.objects.bucket(bucket)
    sort = query.get("uploadType", "")
    if sort == "resumable" and "upload_id" in query:
        return _resumed(handler, who, query["upload_id"])
    told: dict[str, Any] = {}
    given = handler.given
    if sort == "multipart":
        told = _parted(handler)
        given = handler.given
    elif sort == "resumable":
        told = json.loads(given.text() or b"{}")
    key = told.get("name") or query.get("name", "")
    _creates(handler, who, bucket, key, dict(query))
    if sort == "resumable":
        upload = f"r{len(handler.shared.resumable)}"
        file = handler.shared.objects.fresh()
        file.write_bytes(b"")
        handler.shared.resumable[upload] = bucket, key, dict(query), file
        host = asked.headers.get("host", "")
        where = f"http://{host}{path}?uploadType=resumable&upload_id={upload}"
        return Reply(200, {"Location": where}, sort="writes")
    if sort not in ("media", "multipart"):
        raise Refused(400, "InvalidArgument", "Invalid upload type")
    handler.keep()
    content = told.get("contentType") or asked.headers.get("content-type", "")
    headers = {"content-type": content} if content else {}
    try:
        made = handler.shared.objects.put(
            bucket,
            key,
            given.file,
            given.size,
            given.md5,
            _wanted(dict(query)),
            headers,
            handler.shared.pace_s(),
        )
    except Refused:
        handler.kept = False
        raise
    reply = _json(_told(bucket, made), sort="writes")
    reply.counted_in = given.size
    return reply


def _creates(handler: Handler, who: str, bucket: str, key: str, query: dict[str, str]) -> None:
    handler.need(who, "storage.objects.create", bucket, key)
    there = handler.shared.objects.entry(bucket, key) is not None
    if there and query.get("ifGenerationMatch") != "0":
        handler.need(who, "storage.objects.delete", bucket, key)


def _parted(handler: Handler) -> dict[str, Any]:
    """Of a body in two parts, the first; the second becomes the body."""
    found = re.search(r'boundary="?([^";]+)"?', handler.asked.headers.get("content-type", ""))
    if not found:
        raise Refused(400, "InvalidArgument", "Missing multipart boundary")
    parts = handler.given.text().split(b"--" + found[1].encode())
    if len(parts) < 4:
        raise Refused(400, "InvalidArgument", "There must be two parts")
    told: dict[str, Any] = json.loads(parts[1].partition(b"\r\n\r\n")[2])
    content = parts[2].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
    handler.given.file.write_bytes(content)
    handler.given.size, handler.given.md5 = len(content), hashlib.md5(content).hexdigest()
    return told


def _resumed(handler: Handler, who: str, upload: str) -> Reply:
    if upload not in handler.shared.resumable:
        raise Refused(404, "NoSuchUpload", "Not Found")
    bucket, key, query, file = handler.shared.resumable[upload]
    with file.open("ab") as out:
        out.write(handler.given.text())
    told = handler.asked.headers.get("content-range", "")
    have = file.stat().st_size
    whole = told.rpartition("/")[2]
    if told and (whole == "*" or int(whole) > have):
        return Reply(308, {"Range": f"bytes=0-{have - 1}"} if have else {}, sort="writes")
    del handler.shared.resumable[upload]
    digest = hashlib.md5(file.read_bytes()).hexdigest()
    made = handler.shared.objects.put(bucket, key, file, have, digest, _wanted(dict(query)), {})
    reply = _json(_told(bucket, made), sort="writes")
    reply.counted_in = have
    return reply


def _time(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_DOES: dict[str, Any] = {
    "storage.buckets.list": _buckets,
    "storage.buckets.insert": _make_bucket,
    "storage.buckets.get": _bucket,
    "storage.buckets.patch": _change_bucket,
    "storage.buckets.update": _change_bucket,
    "storage.buckets.delete": _remove_bucket,
    "storage.buckets.getIamPolicy": _policy,
    "storage.buckets.setIamPolicy": _set_policy,
    "storage.buckets.testIamPermissions": _test,
    "storage.objects.get": _object,
    "storage.objects.list": _objects,
    "storage.objects.delete": _delete,
}
