"""How IAM judges one request, as its guide has it: an explicit deny wins; else the boundary, if
there is one, and a policy of who asks must both allow it.

It is strict: what it does not know (another operator, NotAction, an Allow of a resource's own
policy) is an error, and not a guess. No library that is kept up does this: moto 5.2 has conditions
for trust policies only, and no boundaries; policyglass 0.8 has no boundaries; principalmapper 1.1.5
does not run on Python 3.10 or newer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = Mapping[str, Any]
Values = str | Sequence[str]


@dataclass(frozen=True)
class Request:
    """One action on one resource: a call that touches several is several of them."""

    action: str
    resource: str
    context: Mapping[str, Values] = field(default_factory=dict)


def allows(
    policies: Sequence[Document],
    request: Request,
    *,
    boundary: Document | None = None,
    of_resource: Sequence[Document] = (),
) -> bool:
    """`of_resource`: such as a bucket's policy, in the same account."""
    effects = [effect(document, request) for document in policies]
    bound = effect(boundary, request) if boundary is not None else "Allow"
    theirs = [effect(document, request) for document in of_resource]
    if "Allow" in theirs:
        raise NotImplementedError("a resource's own policy that allows something")
    if "Deny" in (*effects, bound, *theirs):
        return False
    return bound == "Allow" and "Allow" in effects


def effect(document: Document, request: Request) -> str:
    """Deny, Allow, or "": the policy says nothing of it."""
    if document["Version"] != "2012-10-17":
        raise NotImplementedError(f"version {document['Version']}: it has no variables")
    found = {each["Effect"] for each in document["Statement"] if _applies(each, request)}
    return next((each for each in ("Deny", "Allow") if each in found), "")


_KNOWN = {"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}


def _applies(statement: Mapping[str, Any], request: Request) -> bool:
    if set(statement) - _KNOWN or statement.get("Principal", "*") != "*":
        raise NotImplementedError(f"{set(statement) - _KNOWN or statement['Principal']}")
    context = {key.lower(): value for key, value in request.context.items()}
    actions = [_pattern(each.lower(), {}) for each in _listed(statement["Action"])]
    if not any(each and each.fullmatch(request.action.lower()) for each in actions):
        return False
    if not any(_is_arn(each, request.resource, context) for each in _listed(statement["Resource"])):
        return False
    return all(
        _holds(operator, key, _listed(values), context)
        for operator, keys in statement.get("Condition", {}).items()
        for key, values in keys.items()
    )


def _listed(value: Values) -> Sequence[str]:
    return [value] if isinstance(value, str) else value


_PART = re.compile(r"\$\{([^}]*)\}|([*?])")


def _pattern(text: str, context: Mapping[str, Values]) -> re.Pattern[str] | None:
    """With stars, question marks and variables. What a variable stands for has no stars, whatever
    is in it; None: the request has no such value, so nothing fits."""
    made, at = "", 0
    for part in _PART.finditer(text):
        made, at = made + re.escape(text[at : part.start()]), part.end()
        variable, wild = part.groups()
        if wild:
            made += ".*" if wild == "*" else "."
        elif variable in ("*", "?", "$"):
            made += re.escape(variable)
        else:
            value = context.get(variable.lower())
            if "," in variable or not isinstance(value, str | None):
                raise NotImplementedError(f"${{{variable}}}")
            if value is None:
                return None
            made += re.escape(value)
    return re.compile(made + re.escape(text[at:]), re.DOTALL)


def _is_arn(pattern: str, arn: str, context: Mapping[str, Values]) -> bool:
    """Part by part: a star does not reach over a colon, but for the last part, which may have
    any."""
    if pattern == "*":
        return True
    # Before it is split: a variable has a colon in its name.
    parts = re.split(r":(?![^{}]*\})", pattern, maxsplit=5)
    values = arn.split(":", 5)
    if len(parts) != 6 or len(values) != 6:
        return False
    patterns = [_pattern(each, context) for each in parts]
    return all(p and p.fullmatch(v) for p, v in zip(patterns, values, strict=True))


Test = Callable[[str, str, Mapping[str, Values]], bool]


def _like(pattern: str, value: str, context: Mapping[str, Values]) -> bool:
    found = _pattern(pattern, context)
    return found is not None and found.fullmatch(value) is not None


def _same(text: str, value: str, context: Mapping[str, Values]) -> bool:
    escaped = re.sub(r"(?<!\$\{)([*?])(?!\})", r"${\1}", text)
    return _like(escaped, value, context)


_TESTS: dict[str, Test] = {
    "StringEquals": _same,
    "StringLike": _like,
    "ArnEquals": _is_arn,
    "ArnLike": _is_arn,
    "Bool": lambda text, value, context: text.lower() == value.lower(),
}
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
}


def _holds(operator: str, key: str, wanted: Sequence[str], context: Mapping[str, Values]) -> bool:
    present = context.get(key.lower())
    if operator == "Null":
        return all((present is None) == (each == "true") for each in wanted)
    of_set, _, name = operator.rpartition(":")
    optional = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    test = _TESTS[_NEGATED.get(name, name)] if name in {*_TESTS, *_NEGATED} else None
    if test is None or of_set not in ("", "ForAllValues", "ForAnyValue"):
        raise NotImplementedError(operator)

    def fits(value: str) -> bool:
        return any(test(each, value, context) for each in wanted) != (name in _NEGATED)

    if present is None:
        return optional or of_set == "ForAllValues" or (not of_set and name in _NEGATED)
    if of_set:
        return (all if of_set == "ForAllValues" else any)(map(fits, _listed(present)))
    if not isinstance(present, str):
        raise NotImplementedError(f"{key} has several values, and {operator} takes one")
    return fits(present)
