"""What one training step of a model costs, counted and not guessed: FLOPs, bytes, memory.

A figure `x_per_sample` grows with the batch and `x_fixed` does not: a step of batch `b` takes
`x_fixed + b * x_per_sample`. A multiply-add is two FLOPs, an attention mask saves none, and bytes
are those of unfused operators that find nothing in a cache. `tradewind profile` writes profiles;
they hold for any accelerator, because nothing in them was timed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from tradewind.base.errors import BadFile

FORMAT = 1
KIND = "tradewind profile"
_MOST = 10**24  # beyond any figure that means something here


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One of the modules that a model consists of; flops and bytes are per sample.

    Parameters that two layers share count in the first, a tensor that two keep likewise.
    """

    name: str
    kind: str
    parameters: int
    forward_flops: int
    saved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    input: str
    batch: int
    """The smallest batch that was run. The figures come from it and two larger ones."""
    dtype: str
    """What most parameters are."""
    forward_only: bool
    torch_version: str
    parameters: int
    trainable_parameters: int
    parameter_bytes: int
    buffers_bytes: int
    forward_flops_per_sample: int
    backward_flops_per_sample: int
    matmul_flops_per_sample: int
    """With attention and convolution it makes up forward and backward."""
    attention_flops_per_sample: int
    """Of fused attention; one that is written out with matmuls counts as those."""
    convolution_flops_per_sample: int
    flops_fixed: int
    moved_bytes_per_sample: int
    moved_bytes_fixed: int
    """Mostly weights read and their gradients written."""
    saved_bytes_per_sample: int
    """Activations kept for backward; neither parameters nor inputs."""
    saved_bytes_fixed: int
    peak_bytes_per_sample: int
    peak_bytes_fixed: int
    """All that lives at the worst moment; no optimizer. From the two largest batches: at a smaller
    one the end of backward, with all gradients, may be the higher."""
    layers: tuple[Layer, ...]
    warnings: tuple[str, ...] = ()

    @property
    def flops_per_sample(self) -> int:
        return self.forward_flops_per_sample + self.backward_flops_per_sample

    def document(self) -> dict[str, Any]:
        return {"kind": KIND, "format": FORMAT, **asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.document(), indent=2, ensure_ascii=False) + "\n"


def from_json(text: str, origin: str) -> Profile:
    """Reads what `to_json` wrote. Raises BadFile, naming the field that is wrong."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{origin} is not JSON: {error}", hint=_HINT) from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise BadFile(f"{origin} is not a profile", hint=_HINT)
    written = document.get("format")
    if written != FORMAT:
        newer = isinstance(written, int) and written > FORMAT
        raise BadFile(
            f"{origin} is a profile of format {written!r}; this Tradewind reads {FORMAT}",
            hint="upgrade Tradewind" if newer else _HINT,
        )
    plain = {k: v for k, v in document.items() if k not in ("kind", "format")}
    layers = plain.get("layers")
    if not isinstance(layers, list):
        raise _wrong(origin, "layers", layers, "a list")
    made = tuple(
        Layer(**_checked(Layer, layer, f"{origin}: layers[{i}]")) for i, layer in enumerate(layers)
    )
    profile = Profile(**{**_checked(Profile, plain, origin), "layers": made})
    if profile.trainable_parameters > profile.parameters:
        raise BadFile(f"{origin}: trainable_parameters is more than parameters", hint=_HINT)
    if profile.batch < 1:
        raise _wrong(origin, "batch", profile.batch, "a whole number from 1")
    return profile


_HINT = "`tradewind profile package.module:factory --out FILE.json` writes one"
_TUPLES = {"layers", "warnings"}


def _checked(kind: type[Any], found: Any, where: str) -> dict[str, Any]:
    """The fields of `kind`, all of them and no others, each of its type."""
    if not isinstance(found, dict):
        raise BadFile(f"{where} is not an object", hint=_HINT)
    known = {field.name: str(field.type) for field in fields(kind)}
    for name in found:
        if name not in known:
            raise BadFile(f"{where}: there is no field {name!r}", hint=_HINT)
    checked: dict[str, Any] = {}
    for name, type_name in known.items():
        if name not in found:
            raise BadFile(f"{where}: the field {name!r} is missing", hint=_HINT)
        value = found[name]
        if type_name == "int":
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or not 0 <= value < _MOST:
                raise _wrong(where, name, value, "a whole number from 0")
        elif type_name == "bool":
            if not isinstance(value, bool):
                raise _wrong(where, name, value, "true or false")
        elif name == "warnings":
            if not isinstance(value, list) or not all(isinstance(w, str) for w in value):
                raise _wrong(where, name, value, "a list of text")
        elif type_name == "str" and not isinstance(value, str):
            raise _wrong(where, name, value, "text")
        checked[name] = tuple(value) if name in _TUPLES else value
    return checked


def _wrong(where: str, name: str, value: Any, wanted: str) -> BadFile:
    shown = repr(value)
    shown = shown if len(shown) <= 40 else shown[:40] + "…"
    return BadFile(f"{where}: {name} is {shown}, not {wanted}", hint=_HINT)
