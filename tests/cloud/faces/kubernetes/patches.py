"""Patches: JSON (RFC 6902), merge (RFC 7386), and strategic merge by the schema's merge keys.

Known lies: of strategic merge's directives only `$patch: delete`, `$patch: replace` and
`$deleteFromPrimitiveList` are known; server-side apply is a strategic merge that owns no fields.
"""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.kubernetes import schemas
from tests.cloud.faces.kubernetes.problems import Problem, bad_request
from tests.cloud.faces.kubernetes.store import copied

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def patched(value: dict[str, Any], patch: Any, sort: str, schema: str) -> dict[str, Any]:
    if sort == JSON:
        if not isinstance(patch, list):
            raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
        found = copied(value)
        for each in patch:
            found = _operation(found, each)
        return dict(found)
    if not isinstance(patch, dict):
        raise bad_request("a patch must be an object")
    if sort == MERGE:
        return dict(_merged(value, patch))
    return dict(_strategic(value, patch, {"$ref": f"#/$defs/{schema}"}))


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copied(patch)
    found = dict(value) if isinstance(value, dict) else {}
    for name, each in patch.items():
        if each is None:
            found.pop(name, None)
        else:
            found[name] = _merged(found.get(name), each)
    return found


def _strategic(value: Any, patch: Any, schema: dict[str, Any]) -> Any:
    if not isinstance(patch, dict):
        return copied(patch)
    if patch.get("$patch") == "replace":
        return {name: copied(each) for name, each in patch.items() if name != "$patch"}
    found = dict(value) if isinstance(value, dict) else {}
    for name, each in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            at = name.partition("/")[2]
            found[at] = [one for one in found.get(at) or () if one not in each]
        elif name.startswith("$"):
            continue
        elif each is None:
            found.pop(name, None)
        else:
            inner = schemas.field_of(schema, name)
            if isinstance(each, list) and inner.get("x-kubernetes-patch-strategy", "").startswith(
                "merge"
            ):
                found[name] = _list(found.get(name) or [], each, inner)
            else:
                found[name] = _strategic(found.get(name), each, inner)
    return found


def _list(value: list[Any], patch: list[Any], schema: dict[str, Any]) -> list[Any]:
    key, items = schema.get("x-kubernetes-patch-merge-key"), schema.get("items", {})
    if key is None:
        return value + [each for each in patch if each not in value]
    found = list(value)
    for each in patch:
        at = next((n for n, one in enumerate(found) if one.get(key) == each.get(key)), None)
        if each.get("$patch") == "delete":
            if at is not None:
                del found[at]
        elif at is None:
            found.append(copied(each))
        else:
            found[at] = _strategic(found[at], each, items)
    return found


def _operation(value: Any, asked: Any) -> Any:
    try:
        op, path = asked["op"], _path(asked["path"])
        if op == "add":
            return _set(value, path, copied(asked["value"]), insert=True)
        if op == "replace":
            _get(value, path)
            return _set(value, path, copied(asked["value"]), insert=False)
        if op == "remove":
            return _removed(value, path)
        if op == "test":
            if _get(value, path) != asked["value"]:
                raise _failed(f"testing path {asked['path']} failed")
            return value
        if op in ("copy", "move"):
            moved = copied(_get(value, _path(asked["from"])))
            if op == "move":
                value = _removed(value, _path(asked["from"]))
            return _set(value, path, moved, insert=True)
    except (KeyError, IndexError, TypeError, ValueError):
        raise _failed(f"{asked}: the path does not exist") from None
    raise bad_request(f"unexpected kind of patch: {asked.get('op')}")


def _failed(words: str) -> Problem:
    return Problem(422, f"the server rejected our request due to an error in our request: {words}")


def _path(text: str) -> list[str]:
    return [each.replace("~1", "/").replace("~0", "~") for each in text.split("/")[1:]]


def _get(value: Any, path: list[str]) -> Any:
    for each in path:
        value = value[int(each)] if isinstance(value, list) else value[each]
    return value


def _set(value: Any, path: list[str], new: Any, insert: bool) -> Any:
    if not path:
        return new
    inner, last = _get(value, path[:-1]), path[-1]
    if isinstance(inner, list):
        at = len(inner) if last == "-" else int(last)
        if at > len(inner):
            raise IndexError(at)
        if insert:
            inner.insert(at, new)
        else:
            inner[at] = new
    else:
        inner[last] = new
    return value


def _removed(value: Any, path: list[str]) -> Any:
    inner, last = _get(value, path[:-1]), path[-1]
    if isinstance(inner, list):
        del inner[int(last)]
    else:
        del inner[last]
    return value
