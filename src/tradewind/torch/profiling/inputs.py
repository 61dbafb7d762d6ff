"""Inputs as a command line writes them: `int64[8,1024]:vocab=50257`.

    [NAME=]DTYPE[BATCH,SIZE,...][:OPTION,...]

NAME makes it a keyword argument of `forward`. The leading size is the batch, unless the option
`fixed` says otherwise. `vocab=N` promises values below N; no value is ever made, but an embedding
too small for it is refused.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass

from tradewind.base.errors import InvalidValue

_EXAMPLE = "for example int64[8,1024]:vocab=50257 or float32[8,3,224,224]"
_SHORT = {
    "fp32": "float32", "float": "float32", "fp16": "float16", "half": "float16",
    "bf16": "bfloat16", "fp64": "float64", "double": "float64", "long": "int64", "int": "int32",
}  # fmt: skip
DTYPES = (
    "float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8",
    "bool", "complex64",
)  # fmt: skip
_MOST_ELEMENTS = 2**50
_FORM = re.compile(r"(?:([^\W\d]\w*)\s*=\s*)?(\w+)\s*\[([^\[\]]*)\](?:\s*:(.*))?")


@dataclass(frozen=True, slots=True)
class InputSpec:
    dtype: str
    shape: tuple[int, ...]
    name: str = ""
    vocab: int | None = None
    fixed: bool = False

    def __str__(self) -> str:
        options = [f"vocab={self.vocab}"] if self.vocab else []
        options += ["fixed"] if self.fixed else []
        name = f"{self.name}=" if self.name else ""
        sizes = ",".join(map(str, self.shape))
        return f"{name}{self.dtype}[{sizes}]" + (f":{','.join(options)}" if options else "")


def parse_input(text: str) -> InputSpec:
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise InvalidValue(f"{text!r} is not an input: DTYPE[BATCH,SIZE,...]", hint=_EXAMPLE)
    name, dtype, sizes, options = found.groups()
    spec = InputSpec(_dtype(dtype, text), _shape(sizes, text), name or "")
    for option in (options or "").split(",") if options is not None else ():
        spec = _with(spec, option.strip(), text)
    if not spec.shape and not spec.fixed:
        raise InvalidValue(f"{text!r}: there is no leading size, which is the batch", hint=_EXAMPLE)
    return spec


def batch_of(specs: tuple[InputSpec, ...]) -> int:
    """The leading size that all of them share."""
    moving = [spec for spec in specs if not spec.fixed]
    if not moving:
        raise InvalidValue("no input has a batch", hint="leave `:fixed` out of one of them")
    for spec in moving[1:]:
        if spec.shape[0] != moving[0].shape[0]:
            raise InvalidValue(
                f"the inputs have different batches: {moving[0]} and {spec}",
                hint="the leading size is the batch; mark an input without one `:fixed`",
            )
    return moving[0].shape[0]


def _dtype(word: str, text: str) -> str:
    plain = _SHORT.get(word.lower(), word.lower())
    if plain not in DTYPES:
        close = difflib.get_close_matches(plain, [*DTYPES, *_SHORT], n=1)
        raise InvalidValue(
            f"{text!r}: there is no type {word!r}",
            hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(DTYPES)}",
        )
    return plain


def _shape(sizes: str, text: str) -> tuple[int, ...]:
    if not sizes.strip():
        return ()
    shape = []
    for size in sizes.split(","):
        if not re.fullmatch(r"\s*[0-9]{1,16}\s*", size) or int(size) == 0:
            raise InvalidValue(
                f"{text!r}: {size.strip()!r} is not a size, a whole number from 1", hint=_EXAMPLE
            )
        shape.append(int(size))
    if math.prod(shape) > _MOST_ELEMENTS:
        raise InvalidValue(f"{text!r} has more than 2^50 elements", hint=_EXAMPLE)
    return tuple(shape)


def _with(spec: InputSpec, option: str, text: str) -> InputSpec:
    key, _, value = option.partition("=")
    if key == "fixed" and not value:
        return InputSpec(spec.dtype, spec.shape, spec.name, spec.vocab, True)
    if key != "vocab":
        raise InvalidValue(
            f"{text!r}: there is no option {option!r}", hint="the options are vocab=N and fixed"
        )
    if not re.fullmatch(r"[0-9]{1,12}", value) or int(value) == 0:
        raise InvalidValue(f"{text!r}: vocab is {value!r}, not a whole number from 1")
    if not re.match(r"u?int", spec.dtype):
        raise InvalidValue(
            f"{text!r}: only whole numbers have a vocabulary, not {spec.dtype}",
            hint="for example int64[8,1024]:vocab=50257",
        )
    return InputSpec(spec.dtype, spec.shape, spec.name, int(value), spec.fixed)
