"""What an object may look like: Kubernetes' own from the published OpenAPI schemas, which the
package kubernetes-validate has with them, those of JobSet, Kueue and Volcano from extensions.py.

`faults` walks an object beside its schema and tells everything that the API server would not
take: fields that do not exist, values of the wrong type, required fields that are missing.

Known lies: unknown fields are refused always, as `fieldValidation=Strict` does; the real server
only warns unless it is asked to. What is required by a schema of ours is told as validation does
(422), and so are the rest of the rules, which are in checks.py.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import msgspec

from tests.cloud.faces.kubernetes.extensions import SCHEMAS
from tests.cloud.faces.kubernetes.problems import Cause, bad_request, required, unsupported
from tests.cloud.faces.kubernetes.quantities import amount

VERSION = "1.36"
_FOLDER = Path(str(kubernetes_validate.__file__)).parent / "kubernetes-json-schema"
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}
_GO = {"string": "string", "integer": "int32", "number": "float64", "boolean": "bool"}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_TIMES = (f"{_META}Time", f"{_META}MicroTime")


@cache
def definitions() -> dict[str, Any]:
    path = _FOLDER / f"v{VERSION}.0-local-strict" / "_definitions.json"
    found = msgspec.json.decode(path.read_bytes())["$defs"] | SCHEMAS
    # These have values of any form; published, they are empty objects.
    found[f"{_META}FieldsV1"] = {}
    return dict(found)


def of(schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The definition that a reference leads to, with its name."""
    reference = schema.get("$ref")
    if reference is None:
        return "", schema
    name = str(reference).rpartition("/")[2]
    return name, definitions()[name]


def field_of(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The schema of one field; {} where none is known."""
    _, found = of(schema)
    inner = found.get("properties", {}).get(name)
    if inner is None:
        more = found.get("additionalProperties")
        inner = more if isinstance(more, dict) else {}
    return dict(inner)


class Unreadable(Exception):
    """What stands there is not of the type that the field has."""


def check(schema: str, kind: str, version: str, value: dict[str, Any]) -> list[Cause]:
    """What is required and missing. What cannot be read at all is refused at once."""
    unknown: list[str] = []
    causes: list[Cause] = []
    try:
        for sort, field, cause in _walk({"$ref": f"#/$defs/{schema}"}, value, "", kind):
            if sort == "unknown":
                unknown.append(f'unknown field "{field}"')
            elif cause is not None:
                causes.append(cause)
    except Unreadable as error:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        ) from None
    if unknown:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: '
            f"strict decoding error: {', '.join(unknown)}"
        )
    return causes


Found = Iterator[tuple[str, str, Cause | None]]


def _walk(schema: dict[str, Any], value: Any, path: str, where: str) -> Found:
    name, found = of(schema)
    if value is None:
        return
    if name == _QUANTITY:
        _quantity(value)
        return
    if name in _TIMES:
        _time(value)
        return
    if "oneOf" in found:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise Unreadable(f"json: cannot unmarshal {_sort(value)} into {where}.{path}")
        return
    wanted = found.get("type")
    if isinstance(wanted, list):
        wanted = next((each for each in wanted if each != "null"), None)
    if wanted is not None:
        _typed(wanted, value, path, where, found.get("format"))
    if "enum" in found and value not in found["enum"]:
        yield "cause", path, unsupported(path, value, [str(each) for each in found["enum"] if each])
    if isinstance(value, dict):
        yield from _object(found, value, path, where)
    elif isinstance(value, list) and "items" in found:
        for at, each in enumerate(value):
            yield from _walk(found["items"], each, f"{path}[{at}]", where)


def _object(found: dict[str, Any], value: dict[str, Any], path: str, where: str) -> Found:
    fields, more = found.get("properties"), found.get("additionalProperties")
    for each in found.get("required", ()):
        if value.get(each) is None:
            at = f"{path}.{each}" if path else each
            yield "cause", at, required(at)
    for each, inner in value.items():
        at = f"{path}.{each}" if path else each
        if fields is not None and each in fields:
            yield from _walk(fields[each], inner, at, where)
        elif isinstance(more, dict):
            yield from _walk(more, inner, at, where)
        elif fields is not None:
            yield "unknown", at, None


def _typed(wanted: str, value: Any, path: str, where: str, form: str | None) -> None:
    right = isinstance(value, _TYPES[wanted])
    if right and isinstance(value, bool) and wanted in ("integer", "number"):
        right = False
    if not right:
        raise Unreadable(
            f"json: cannot unmarshal {_sort(value)} into Go struct field {where}.{path} of type "
            f"{_GO.get(wanted, wanted)}"
        )
    if form == "byte":
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise Unreadable("illegal base64 data at input byte 0") from None
    if form in ("int32", "int64") and not -(2 ** (int(form[3:]) - 1)) <= value < 2 ** (
        int(form[3:]) - 1
    ):
        raise Unreadable(
            f"json: cannot unmarshal number {value} into Go struct field {where}.{path} of type "
            f"{form}"
        )


def _quantity(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Unreadable(
            "json: cannot unmarshal into resource.Quantity: quantities must match the regular "
            "expression"
        )
    try:
        amount(value)
    except ValueError as error:
        raise Unreadable(str(error)) from None


def _time(value: Any) -> None:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise Unreadable(
            f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse'
        ) from None


def _sort(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    for kind, name in ((str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "null"
