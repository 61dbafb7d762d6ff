"""The kinds of values that a workload file holds: how each is written, read and described.

One object a kind, so that the reader, the JSON Schema and the page cannot tell different stories.
Readers judge how a value is written; whether it may be so large or so small, the values of
`model.workload` say themselves.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tradewind.base.errors import InvalidValue, TradewindError
from tradewind.base.units import parse_bytes, parse_count, parse_duration, parse_money
from tradewind.base.yamltree import Node
from tradewind.model import secrets
from tradewind.workload.known import Known

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What reading depends on besides the text. None: not checked."""

    now: datetime | None = None
    known: Known | None = None
    folder: str = ""  # relative paths of the file start there


Read = Callable[[Node, Context], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    words: str  # in the tables of the page
    read: Read
    schema: Schema


# -- plain text ----------------------------------------------------------------------------------


def _text(node: Node, _: Context) -> str:
    return node.text()


def _script(node: Node, _: Context) -> str:
    """Lines of shell; other than elsewhere, line ends and tabs are meant."""
    value = node.value
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue(f"expected a command, found {node.kind if node.value else 'none'}")
    if not re.sub(r"[\n\t]", "", value).isprintable():
        raise InvalidValue("it has characters that cannot be printed")
    return value.strip()


def within(folder: str, path: str) -> str:
    """A path of the file, seen from where the command runs."""
    return path if path.startswith("~") else posixpath.join(folder, path)


def _path(node: Node, context: Context) -> str:
    return within(context.folder, node.text())


def is_path(model: str) -> bool:
    """Whether `model` is a file: names have slashes too (`meta-llama/Llama-3.1-8B`)."""
    return model.endswith((".json", ".yaml", ".yml")) or model.startswith(("./", "../", "/", "~/"))


def _uri(node: Node, _: Context) -> str:
    text = node.text()
    if not re.fullmatch(_URI, text):
        raise InvalidValue(
            f"{text!r} is no address of data", hint="s3://bucket/folder, gs://…, az://…, or /folder"
        )
    return text


_URI = r"[a-z][a-z0-9+.-]*://\S+|[.~]*/\S*"
_NONBLANK: Schema = {"type": "string", "pattern": r"\S"}
# Unquoted, `123` and `true` are text too: the latter even is a command.
_SCALAR: Schema = {"anyOf": [_NONBLANK, {"type": ["number", "boolean"]}]}
TEXT = Kind("text", _text, _SCALAR)
NAME = Kind("name", _text, {"type": "string", "pattern": r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$"})
SCRIPT = Kind("shell", _script, _SCALAR)
PATH = Kind("path", _path, _SCALAR)
URI = Kind("address", _uri, {"type": "string", "pattern": f"^({_URI})$"})


# -- numbers -------------------------------------------------------------------------------------

_DIGITS = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:_[0-9]+)*)(?:\.[0-9]+)?|\.[0-9]+)"
_ABOVE_NOUGHT = r"(?=.*[1-9])"
_LETTER = r"\s*[kKmMbBgGtT]?"
_SHORT = rf"(?:[eE]\+?[0-9]{{1,2}}|{_LETTER})"


def _written(pattern: str) -> Schema:
    return {"type": "string", "pattern": rf"^{_ABOVE_NOUGHT}\s*{pattern}\s*$"}


def _any_case(word: str) -> str:
    """A JSON Schema's patterns know no flags."""
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else re.escape(c) for c in word)


_WHOLE: Schema = {"type": "integer", "minimum": 1}
_POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}


def _count(text: str, noun: str) -> int:
    """As `parse_count`, and `1e10`: numbers of tokens are written so, too."""
    found = re.match(rf"\s*({_DIGITS}[eE]\+?[0-9]{{1,2}})", text)
    if not found:
        return parse_count(text, noun=noun)
    number = Decimal(re.sub("[,_]", "", found[1]))
    if number != number.to_integral_value():
        raise InvalidValue(f"{text!r} is not a whole number")
    return parse_count(f"{int(number)}{text[found.end() :]}", noun=noun)


def counted(noun: str = "") -> Kind:
    """A count, `10B` or `10B tokens`, of one thing."""

    def read(node: Node, _: Context) -> int:
        return _count(node.text(), noun)

    tail = rf"(?:\s*{_any_case(noun.removesuffix('s'))}[sS]?)?" if noun else ""
    schema = {"anyOf": [_WHOLE, _written(_DIGITS + _SHORT + tail)]}
    return Kind(noun or "number", read, schema)


_SAMPLE_WORDS = ("samples", "sequences", "images", "examples")


def _samples_or_tokens(node: Node, _: Context) -> tuple[int | None, int | None]:
    """Samples (which is what a bare number means) and tokens, one of them."""
    text = node.text()
    if re.search(r"tokens?\s*$", text, re.IGNORECASE):
        return None, _count(text, "tokens")
    noun = next((n for n in _SAMPLE_WORDS if n[:-1] in text.lower()), "samples")
    return _count(text, noun), None


_NOUNS = "|".join(f"{_any_case(n.removesuffix('s'))}[sS]?" for n in (*_SAMPLE_WORDS, "tokens"))
SAMPLES_OR_TOKENS = Kind(
    "samples or tokens",
    _samples_or_tokens,
    {"anyOf": [_WHOLE, _written(rf"{_DIGITS}{_SHORT}(?:\s*(?:{_NOUNS}))?")]},
)
_FRACTION = rf"{_DIGITS}(?:[eE][+-]?[0-9]{{1,3}})?"


def _number(node: Node, _: Context) -> float:
    if node.text().startswith("-"):
        raise InvalidValue(f"{node.text()} is negative")
    if not re.fullmatch(_FRACTION, node.text()):
        raise InvalidValue(f"{node.text()!r} is not a number")
    return float(re.sub("[,_]", "", node.text()))


NUMBER = Kind("number", _number, {"anyOf": [_POSITIVE, _written(_FRACTION)]})
SIZE = Kind(
    "size with unit",
    lambda node, _: parse_bytes(node.text()),
    _written(rf"{_DIGITS}\s*(?:[bB]|[kKmMgGtTpP][iI]?[bB]?)"),
)
MONEY = Kind(
    "dollars",
    lambda node, _: parse_money(node.text()),
    {
        "anyOf": [
            _POSITIVE,
            _written(
                rf"(?:(?:[uU][sS])?\$\s*|[uU][sS][dD]\s*)?{_DIGITS}{_LETTER}"
                r"(?:\s*(?:[uU][sS][dD]|[dD][oO][lL][lL][aA][rR][sS]?))?"
            ),
        ]
    },
)


def _hourly(node: Node, _: Context) -> int:
    found = re.fullmatch(r"(.+?)\s*(?:/\s*h|/\s*hour|\s(?:an|per)\s+hour)", node.text().strip())
    if not found:
        raise InvalidValue(f"{node.text()!r} is no money an hour", hint="for example $20/h")
    return parse_money(found[1])


MONEY_HOUR = Kind(
    "dollars an hour",
    _hourly,
    _written(
        rf"(?:(?:[uU][sS])?\$\s*)?{_DIGITS}{_LETTER}(?:\s*[uU][sS][dD])?"
        r"(?:\s*/\s*h|\s*/\s*hour|\s+(?:an|per)\s+hour)"
    ),
)


def _share(node: Node, _: Context) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", node.text(), re.ASCII)
    if not found:
        raise InvalidValue(f"{node.text()!r} is not a share", hint="for example 90%")
    return float(found[1]) / 100


SHARE = Kind("percent", _share, _written(r"[0-9]{1,2}(?:\.[0-9]+)?\s*%"))

_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _flag(node: Node, _: Context) -> bool:
    found = _FLAGS.get(node.text().lower())
    if found is None:
        raise InvalidValue(f"{node.text()!r} is neither true nor false")
    return found


def _variables(node: Node, _: Context) -> dict[str, str]:
    if not isinstance(node.value, dict):
        raise InvalidValue(f"expected names with their values, found {node.kind}")
    return {name: each.text() for name, each in node.value.items()}


_NAMES = {"pattern": r"^(?!TRADEWIND_)[A-Za-z_][A-Za-z0-9_]*$"}
VARIABLES = Kind(
    "names and values",
    _variables,
    {"type": "object", "propertyNames": _NAMES, "additionalProperties": _SCALAR},
)
SECRETS = Kind(
    "names, and where their values are",
    _variables,
    {
        "type": "object",
        "propertyNames": _NAMES,
        "additionalProperties": {"type": "string", "pattern": f"^(?:{secrets.PATTERN})$"},
    },
)

FLAG = Kind(
    "true or false",
    _flag,
    {
        "anyOf": [
            {"type": "boolean"},
            {"type": "string", "pattern": f"^({'|'.join(map(_any_case, _FLAGS))})$"},
        ]
    },
)


# -- time ----------------------------------------------------------------------------------------

_TIME_WORDS = (
    r"(?:[wW](?:[eE][eE][kK][sS]?)?|[dD](?:[aA][yY][sS]?)?|[hH](?:[rR][sS]?|[oO][uU][rR][sS]?)?"
    r"|[mM](?:[iI][nN](?:[uU][tT][eE])?[sS]?)?|[sS](?:[eE][cC](?:[oO][nN][dD])?[sS]?)?)"
)
_LENGTH = rf"(?:{_DIGITS}\s*{_TIME_WORDS}\s*,?\s*)+"
DURATION = Kind("length of time", lambda node, _: parse_duration(node.text()), _written(_LENGTH))

_INTERVAL = {"us": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "min": "60", "h": "3600"}


def _interval(node: Node, _: Context) -> float:
    """Seconds with their fraction: a step is often shorter than one."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|min|h)", node.text(), re.ASCII)
    if not found:
        raise InvalidValue(
            f"{node.text()!r} is not the time of a step", hint="for example 1.8s or 350ms"
        )
    return float(Decimal(found[1]) * Decimal(_INTERVAL[found[2]]))  # 350ms is 0.35, exactly


INTERVAL = Kind(
    "seconds, with unit", _interval, _written(r"[0-9]+(?:\.[0-9]+)?\s*(?:us|ms|s|m|min|h)")
)


def _every(node: Node, _: Context) -> int | None:
    return None if node.text().lower() == "auto" else parse_duration(node.text())


EVERY = Kind(
    "auto, or length of time",
    _every,
    {"anyOf": [{"type": "string", "pattern": f"^{_any_case('auto')}$"}, DURATION.schema]},
)

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = rf"{_DAY}[Tt ]\s*[0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]+)?)?"
_ZONE = r"\s*(?:[Zz]|[uU][tT][cC]|[+-][0-9]{2}:?[0-9]{2})"


def _deadline(node: Node, context: Context) -> tuple[datetime | None, int | None]:
    """A moment, or a length of time from the start."""
    text = node.text()
    if not re.match(_DAY, text):
        return None, parse_duration(text)
    example = "2026-12-01T08:00+01:00"
    plain = re.sub(r"\s*(?:[zZ]|[uU][tT][cC])$", "+00:00", text)
    plain = re.sub(r"\s+(?=[+-])", "", plain)
    try:
        moment = datetime.fromisoformat(re.sub(r"(?<=\d)[Tt ]\s*(?=\d)", "T", plain))
        there = moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        raise InvalidValue(
            f"{text!r} is not a date and time", hint=f"for example {example}"
        ) from None
    if there is None:
        raise InvalidValue(
            f"{text!r} has no {'time zone' if ':' in text else 'time and zone'}",
            hint=f"for example {example}, or 2026-12-01 07:00 UTC",
        )
    if context.now is not None and there <= context.now:
        raise InvalidValue(
            f"{text} is past: it is {context.now.astimezone(moment.tzinfo):%Y-%m-%d %H:%M %Z} now"
        )
    return moment, None


DEADLINE = Kind(
    "length of time, or date and time with zone",
    _deadline,
    {"anyOf": [DURATION.schema, {"type": "string", "pattern": rf"^\s*{_MOMENT}{_ZONE}\s*$"}]},
)


# -- choices and names ---------------------------------------------------------------------------


def one_of(choices: Sequence[str], aliases: Mapping[str, str] | None = None) -> Kind:
    """A word of a few; capitals, and _ for -, do not matter."""
    others = dict(aliases or {})

    def read(node: Node, _: Context) -> str:
        plain = node.text().lower()
        for spelling in (plain, plain.replace("_", "-"), plain.replace("-", "_")):
            found = others.get(spelling, spelling)
            if found in choices:
                return found
        close = difflib.get_close_matches(plain, choices, n=1, cutoff=0.5)
        meant = f"did you mean {close[0]}? " if close else ""
        raise InvalidValue(
            f"{node.text()!r} is not among the choices", hint=f"{meant}{', '.join(choices)}"
        )

    words = sorted({*choices, *others})
    pattern = "|".join(re.sub("-|_", "[-_]", _any_case(w).replace("\\-", "-")) for w in words)
    variants: list[Schema] = [
        {"enum": list(choices)},
        {"type": "string", "pattern": f"^({pattern})$"},
    ]
    if set(others) & set(_FLAGS):
        variants.append({"type": "boolean"})
    return Kind(", ".join(choices), read, {"anyOf": variants})


def list_of(kind: Kind) -> Kind:
    """A list; one value alone is a list of one. What a value stands for may be several."""

    def read(node: Node, context: Context) -> tuple[Any, ...] | Faulty:
        items = [node] if isinstance(node.value, str) else node.items()
        found: list[Any] = []
        wrong: list[tuple[Node, TradewindError]] = []
        for item in items:
            try:
                value = kind.read(item, context)
            except TradewindError as error:
                wrong.append((item, error))
                continue
            found += value if isinstance(value, tuple) else [value]
        return Faulty(tuple(wrong)) if wrong else tuple(dict.fromkeys(found))

    schema = {"anyOf": [{"type": "array", "minItems": 1, "items": kind.schema}, kind.schema]}
    return Kind(f"list of {kind.words}", read, schema)


@dataclass(frozen=True, slots=True)
class Faulty:
    """Several things wrong inside one field: each is told with its own place."""

    faults: tuple[tuple[Node, TradewindError], ...]


def _pattern(check: Callable[[Known, str], Any]) -> Read:
    def read(node: Node, context: Context) -> Any:
        text = node.text()
        if any(c.isspace() for c in text) and context.known is None:
            raise InvalidValue(f"{text!r} is no name")
        return check(context.known, text) if context.known else text

    return read


PROVIDER = Kind("providers", _pattern(Known.provider), _SCALAR)
REGION = Kind("regions", _pattern(Known.region), _SCALAR)
EXCLUDED = Kind("providers or regions", _pattern(Known.excluded), _SCALAR)
ACCELERATOR = Kind("accelerators", _pattern(Known.accelerator_pattern), _SCALAR)


def _place(node: Node, context: Context) -> tuple[str | None, str]:
    """Provider and region of `aws/eu-west-1`."""
    text = node.text()
    if any(c in text for c in "*?["):
        raise InvalidValue(f"{text!r} is no single region", hint="for example aws/eu-west-1")
    provider, slash, region = text.partition("/")
    if not slash or not provider or not region:
        return None, text  # the address of the data may tell
    if context.known is None:
        return provider.lower(), region
    provider, _, region = context.known.region(text).partition("/")
    return provider, region


PLACE = Kind("provider/region", _place, {"type": "string", "pattern": r"^[^*?\[]+$"})


_MANY = (
    r"(?:(?P<before>\d{1,6})\s*[x×*]\s*)?(?P<name>[A-Za-z][^\s:*×]*)"
    r"(?:\s*[:*×]\s*(?P<after>\d{1,6}))?"
)
"""`8xH100`, `H100:8`, `H100*8`."""


def _hardware(node: Node, context: Context) -> tuple[str, int]:
    """Name and number of `8xA100-80GB`."""
    text = node.text()
    if context.known is None:
        found = re.fullmatch(_MANY, text, re.ASCII)
        if not found:
            raise InvalidValue(f"{text!r} is not a number of accelerators", hint="8xA100-80GB")
        return found["name"], int(found["before"] or found["after"] or 1)
    match = context.known.resolve(text)
    count = match.count or 1
    if len(match.names) > 1:
        raise InvalidValue(
            f"{text!r} may be {', '.join(match.names)}", hint=f"for example {match.names[0]}"
        )
    if count != int(count):
        raise InvalidValue(f"{text!r}: whole accelerators are needed")
    return match.names[0], int(count)


HARDWARE = Kind("accelerators, e.g. 8xA100-80GB", _hardware, _SCALAR)


def _gpus(node: Node, context: Context) -> tuple[tuple[str, ...], int]:
    """Names and number of `H100:8`: of a family any of its kinds will do."""
    if context.known is None:
        name, many = _hardware(node, context)
        return (name,), many
    match = context.known.resolve(node.text())
    count = match.count or 1
    if count != int(count):
        raise InvalidValue(f"{node.text()!r}: whole accelerators are needed")
    return match.names, int(count)


GPUS = Kind("accelerators of one machine, e.g. H100:8", _gpus, _SCALAR)


def _retries(node: Node, _: Context) -> int:
    if not re.fullmatch(r"\d{1,3}", node.text(), re.ASCII):
        raise InvalidValue(
            f"{node.text()!r} is not a number of retries", hint="0, or for example 2"
        )
    return int(node.text())


RETRIES = Kind(
    "number",
    _retries,
    {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 999},
            {"type": "string", "pattern": "^[0-9]{1,3}$"},
        ]
    },
)


def no_reader(node: Node, _: Context) -> Any:
    raise AssertionError(f"{node.where} is read elsewhere")
