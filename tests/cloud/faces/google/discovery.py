"""Google's discovery documents (they come inside google-api-python-client): which requests there
are, and whether a request's body, its fields, types and enums among it, is one of them.

    match("POST", "/compute/v1/projects/p/zones/z/instances")  the method, and its parameters
    check("compute", "compute.instances.insert", body)         raises Invalid, in the real words

Compute and storage are asked at /compute/v1/… and /storage/v1/…, the others at /NAME/VERSION/….
Cloud Quotas has no document there: its one (cloudquotas.v1.json) was written by hand.
Known lies: what is output only may be sent, and is ignored, as the real ones mostly do; lengths and
patterns of fields are not checked here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

APIS = {
    "compute": ("v1",),
    "tpu": ("v2", "v2alpha1"),
    "storage": ("v1",),
    "iam": ("v1",),
    "iamcredentials": ("v1",),
    "cloudresourcemanager": ("v1", "v3"),
    "serviceusage": ("v1", "v1beta1"),
    "cloudbilling": ("v1",),
    "secretmanager": ("v1",),
    "iap": ("v1",),
    "cloudquotas": ("v1",),
}
_EVERYWHERE = frozenset(
    "$.xgafv access_token alt callback fields key oauth_token prettyPrint quotaUser userIp"
    " uploadType upload_protocol $alt $fields".split()
)


class Invalid(Exception):
    """Said as Google says it."""


@dataclass(frozen=True)
class Method:
    id: str
    api: str
    version: str
    http: str
    path: str
    parameters: Mapping[str, Any]
    request: str
    response: str

    @property
    def title(self) -> str:
        """Of its API, as people call it."""
        return str(document(self.api, self.version)["title"])


@cache
def document(api: str, version: str) -> dict[str, Any]:
    import googleapiclient  # type: ignore[import-untyped]

    assert googleapiclient.__file__
    folder = Path(googleapiclient.__file__).parent / "discovery_cache/documents"
    own = Path(__file__).with_name(f"{api}.{version}.json")
    file = own if own.exists() else folder / own.name
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def _walk(resource: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from resource.get("methods", {}).values()
    for each in resource.get("resources", {}).values():
        yield from _walk(each)


@cache
def methods(api: str, version: str) -> dict[str, Method]:
    whole = document(api, version)
    common = whole.get("parameters", {})
    own = api in ("compute", "storage")
    prefix = f"/{whole['servicePath']}" if own else f"/{api}/"
    found = {}
    for each in _walk(whole):
        found[each["id"]] = Method(
            each["id"],
            api,
            version,
            each["httpMethod"],
            prefix + each["path"],
            {**common, **each.get("parameters", {})},
            each.get("request", {}).get("$ref", ""),
            each.get("response", {}).get("$ref", ""),
        )
    return found


def method(api: str, method_id: str) -> Method:
    for version in APIS[api]:
        if method_id in methods(api, version):
            return methods(api, version)[method_id]
    raise KeyError(f"{api} has no method {method_id}")


@cache
def _patterns(api: str, version: str, http: str) -> list[tuple[Method, str]]:
    """Those of fixed paths first, and the longer ones."""
    found = [(each, _pattern(each)) for each in methods(api, version).values() if each.http == http]
    return sorted(found, key=lambda one: (one[0].path.count("{"), -len(one[0].path)))


def _pattern(method: Method) -> str:
    def group(found: re.Match[str]) -> str:
        name = found[2]
        told = str(method.parameters.get(name, {}).get("pattern", "")).strip("^$")
        return f"(?P<{name}>{told if found[1] and told else '[^/]+'})"

    parts = re.split(r"(\{\+?\w+\})", method.path)
    return "".join(
        re.sub(r"\{(\+?)(\w+)\}", group, each) if each.startswith("{") else re.escape(each)
        for each in parts
    )


_compiled: dict[str, re.Pattern[str]] = {}


def match(http: str, path: str) -> tuple[Method, dict[str, str]] | None:
    """`path` as it was sent, without the query."""
    api = path.split("/")[1] if path.count("/") > 1 else ""
    parts = path.count("/")
    for version in APIS.get(api, ()):
        for each, pattern in _patterns(api, version, http):
            if "{+" not in each.path and each.path.count("/") != parts:
                continue
            compiled = _compiled.get(pattern) or _compiled.setdefault(pattern, re.compile(pattern))
            found = compiled.fullmatch(path)
            if found:
                return each, {name: unquote(value) for name, value in found.groupdict().items()}
    return None


# -- bodies ----------------------------------------------------------------------------------------


def check(api: str, method_id: str, body: Any, version: str = "") -> None:
    """Raises Invalid where the method would not take this body."""
    of = methods(api, version)[method_id] if version else method(api, method_id)
    check_body(of, body)


def check_query(method: Method, query: Mapping[str, str]) -> None:
    for name, value in query.items():
        told = method.parameters.get(name)
        if told is None:
            if name in _EVERYWHERE:
                continue
            raise Invalid(
                f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query'
                f" parameter. Field '{name}' could not be found in request message."
            )
        kind = told.get("type")
        wrong = kind == "integer" and not re.fullmatch(r"-?\d+", value)
        wrong = wrong or (kind == "boolean" and value not in ("true", "false"))
        wrong = wrong or ("enum" in told and value not in told["enum"])
        pattern = told.get("pattern")
        if pattern and told.get("location") == "query" and not re.fullmatch(pattern, value):
            wrong = True
        if wrong:
            raise Invalid(f"Invalid value at '{name}' ({kind}), \"{value}\"")
    for name, told in method.parameters.items():
        if told.get("required") and told.get("location") == "query" and name not in query:
            raise Invalid(f"Required parameter: {name}")


def check_body(method: Method, body: Any) -> None:
    if not method.request:
        if body:
            raise Invalid("Invalid JSON payload received. The request has no body.")
        return
    where = "resource" if method.api in ("compute", "storage") else ""
    _check(method, {"$ref": method.request}, body, where)


def _check(method: Method, told: Mapping[str, Any], value: Any, at: str) -> None:
    if "$ref" in told:
        schema = document(method.api, method.version)["schemas"][told["$ref"]]
        _check(method, schema, value, at)
        return
    kind = told.get("type", "any")
    if kind == "any":
        return
    if not _fits(kind, told.get("format", ""), value):
        shown = json.dumps(value)
        raise Invalid(f"Invalid value at '{at}' ({told.get('format') or kind}), {shown[:200]}")
    if kind == "object":
        _object(method, told, value, at)
    elif kind == "array":
        for number, each in enumerate(value):
            _check(method, told["items"], each, f"{at}[{number}]")
    elif "enum" in told and value not in told["enum"]:
        raise Invalid(
            f"Invalid value for field '{at}': '{value}'. It must be one of {told['enum']}"
        )


def _object(method: Method, told: Mapping[str, Any], value: Mapping[str, Any], at: str) -> None:
    known, rest = told.get("properties", {}), told.get("additionalProperties")
    for name, each in value.items():
        inside = f"{at}.{name}" if at else name
        if name in known and each is None:
            continue  # as if it were not there, in the JSON of protocol buffers
        if name in known:
            _check(method, known[name], each, inside)
        elif rest is not None:
            _check(method, rest, each, inside)
        else:
            where = f" at '{at}'" if at else ""
            raise Invalid(
                f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
            )
    for name, each in known.items():
        if method.id in each.get("annotations", {}).get("required", ()) and name not in value:
            raise Invalid(
                f"Required field '{at}.{name}' not specified" if at else f"{name} required"
            )


def _fits(kind: str, form: str, value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string":
        if form in ("int64", "uint64"):
            return number or (isinstance(value, str) and bool(re.fullmatch(r"-?\d+", value)))
        return isinstance(value, str)
    if kind == "integer":
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (isinstance(value, str) and bool(re.fullmatch(r"-?\d+", value)))
    if kind == "number":
        return number
    sorts: dict[str, type] = {"boolean": bool, "object": dict, "array": list}
    return isinstance(value, sorts[kind])
