"""A model's shape from its Hugging Face `config.json`, or from numbers in a user's YAML.

`from_config` takes a path (of the file, or of the folder it lies in) or the parsed mapping. The
names of fields differ from family to family, and what a family always does is in its code, not in
its file: `FAMILIES` holds both. A `model_type` that is not there is read as a plain decoder if the
usual fields are, and the shape's `note` says so.

Whatever is wrong raises BadFile with file and field; a path that is not there, or one that
may not be read NoAccess. No shape that comes out of here is negative or at odds with itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from tradewind.base.errors import BadFile, NoAccess
from tradewind.estimate.config import (
    EXPERTS,
    FEED_FORWARD,
    HEAD_DIM,
    HEADS,
    KV_HEADS,
    LAYERS,
    MOST,
    PER_TOKEN,
    POSITIONS,
    WIDTH,
    Config,
    divided,
)
from tradewind.estimate.families import FAMILIES, UNSAID, generic
from tradewind.estimate.shapes import parameters
from tradewind.model.shape import Shape

LARGEST_BYTES = 1_000_000  # a config has a few thousand; weights given by mistake have billions
CHOICES = {
    "kind": ("decoder", "encoder", "encoder-decoder", "vision"),
    "positions": ("rotary", "learned", "alibi", "relative", "none"),
    "norm": ("layernorm", "rmsnorm"),
}


def from_config(source: str | Path | Mapping[str, Any], *, name: str = "") -> Shape:
    """The shape that a `config.json` describes."""
    if isinstance(source, Mapping):
        config = Config(source, name or "the model config")
    else:
        path = _file(Path(source))
        config = Config(_load(path), str(path))
        name = name or (path.parent.name if path.name == "config.json" else path.stem)
    config = config.language_part()
    kind = config.text("model_type")
    config.values = {**UNSAID.get(kind, {}), **config.values}
    facts, refine = FAMILIES.get(kind) or generic(config, kind)
    shape = _base(config, facts, name or config.text("_name_or_path") or kind or "model")
    if refine:
        shape = replace(shape, **refine(config, shape))
    _check(shape, config.origin)
    return shape


def from_numbers(numbers: Mapping[str, Any], *, origin: str = "model", name: str = "") -> Shape:
    """A shape from the fields of Shape. Only layers, d_model and n_heads must be given.

    What is left out is as in a Llama: rotary positions, gated feed-forward of 8/3 d_model, RMS
    norms, no biases, a head of its own, a vocabulary of 32,000.
    """
    if not isinstance(numbers, Mapping):
        raise BadFile(f"{origin}: expected fields such as layers, d_model and n_heads")
    legal = {field.name: field for field in fields(Shape)}
    given = Config({key: _plain(value) for key, value in numbers.items()}, origin)
    values: dict[str, Any] = {}
    for key in numbers:
        if key not in legal:
            raise BadFile(f"{origin}: there is no field {key!r}", hint=_nearest(str(key), legal))
        if numbers[key] is None:
            raise BadFile(f"{origin}: {key} is empty")
        values[key] = _value(given, key, str(legal[key].type))
    kind = values.get("kind", "decoder")
    if not values.get("name"):
        values["name"] = name or "model"
    for key in ("layers", "d_model", "n_heads"):
        if key not in values:
            raise BadFile(f"{origin}: {key} is missing")
    d_model, n_heads = values["d_model"], values["n_heads"]
    if "head_dim" not in values:
        values["head_dim"] = divided(d_model, n_heads, origin, "d_model", "n_heads")
    default: dict[str, Any] = {
        "kind": "decoder", "n_kv_heads": n_heads, "gated": True, "vocab": 32_000,
        "tied": kind != "decoder", "positions": "rotary", "max_positions": 0,
        "bias": False, "norm": "rmsnorm",
    }  # fmt: skip
    values = default | values
    # As Llama rounds it: 8/3 of the width (4 without a gate), up to a whole 256.
    wide = math.ceil(d_model * 8 / 3 / 256) * 256 if values["gated"] else 4 * d_model
    values.setdefault("d_ff", wide)
    missing = [f.name for f in legal.values() if f.default is MISSING and f.name not in values]
    assert not missing, missing
    shape = Shape(**values)
    _check(shape, origin)
    return shape


def _base(c: Config, facts: Mapping[str, Any], name: str) -> Shape:
    """What nearly every config says, under one name or another."""
    layers = c.integer(*LAYERS, least=1)
    d_model = c.integer(*WIDTH, least=1)
    n_heads = c.integer(*HEADS, least=1)
    if c.has(*HEAD_DIM):
        head_dim = c.integer(*HEAD_DIM, least=1)
    elif c.has("qk_rope_head_dim"):
        head_dim = c.integer("qk_nope_head_dim", default=0) + c.integer("qk_rope_head_dim")
    else:
        head_dim = divided(d_model, n_heads, c.origin, _used(c, WIDTH), _used(c, HEADS))
    experts = c.integer(*EXPERTS, default=0)
    d_ff = c.integer(*FEED_FORWARD, default=4 * d_model, least=1)
    narrow = c.integer("moe_intermediate_size", default=0)
    shared = c.integer("n_shared_experts", "num_shared_experts", default=0) * (narrow or d_ff)
    values: dict[str, Any] = {
        "name": name, "kind": "decoder", "layers": layers, "d_model": d_model, "n_heads": n_heads,
        "n_kv_heads": c.integer(*KV_HEADS, default=n_heads, least=1), "head_dim": head_dim,
        "d_ff": d_ff, "vocab": c.integer("vocab_size", "padded_vocab_size", default=0),
        "max_positions": c.integer(*POSITIONS, default=0),
    }  # fmt: skip
    if experts > 1:
        values |= {
            "experts": experts,
            "experts_per_token": c.integer(*PER_TOKEN, default=2, least=1),
            "d_ff_expert": narrow,
            "d_ff_shared": c.integer("shared_expert_intermediate_size", default=shared),
            "dense_layers": c.integer("first_k_dense_replace", default=0),
        }
    values |= facts
    if c.has("tie_word_embeddings"):
        values["tied"] = c.flag("tie_word_embeddings", False)
    if values["kind"] == "decoder" and not values["vocab"]:
        raise BadFile(f"{c.origin}: vocab_size is missing")
    return Shape(**values)


def _used(c: Config, names: tuple[str, ...]) -> str:
    return next(name for name in names if c.has(name))


def _check(s: Shape, origin: str) -> None:
    """What must hold of every shape, however it was given."""

    def refuse(why: str) -> BadFile:
        return BadFile(f"{origin}: {why}")

    for field in fields(Shape):
        value = getattr(s, field.name)
        if type(value) is int and field.name not in ("extra_params", "mixer_params"):
            if not 0 <= value <= MOST:
                raise refuse(f"{field.name} is {value}, expected 0 to {MOST:,}")
            if field.name in ("layers", "d_model", "n_heads", "n_kv_heads", "head_dim", "d_ff"):
                _positive(value, field.name, origin)
    divided(s.n_heads, s.n_kv_heads, origin, "n_heads", "n_kv_heads")
    if s.layers > 10_000:
        raise refuse(f"layers is {s.layers}, expected at most 10,000")
    if s.experts and not 0 < s.experts_per_token <= s.experts:
        raise refuse(f"experts_per_token is {s.experts_per_token}, expected 1 to {s.experts}")
    if not s.experts and (s.experts_per_token or s.d_ff_expert or s.d_ff_shared):
        raise refuse("experts is missing: there are other fields of a mixture of experts")
    for name in ("dense_layers", "attention_layers", "full_attention_layers"):
        if getattr(s, name) > s.layers:
            raise refuse(f"{name} is {getattr(s, name)}, of {s.layers} layers")
    if s.kind == "vision":
        _positive(s.patch, "patch", origin)
        _positive(s.image, "image", origin)
        divided(s.image, s.patch, origin, "image", "patch")
    if s.kind == "encoder-decoder":
        _positive(s.decoder_layers, "decoder_layers", origin)
    elif s.decoder_layers:
        raise refuse(f"decoder_layers is {s.decoder_layers}, but kind is {s.kind}")
    if s.kind == "decoder":
        _positive(s.vocab, "vocab", origin)
    if s.mixer_params < 0 or parameters(s) <= 0:
        raise refuse("extra_params and mixer_params leave no parameters")
    if s.latent:
        for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"):
            _positive(getattr(s, name), name, origin)


def _positive(value: int, name: str, origin: str) -> None:
    if value <= 0:
        raise BadFile(f"{origin}: {name} is {value}, expected more than 0")


def _plain(value: Any) -> Any:
    """Our YAML reader gives every value as text, so that a complaint can quote it."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    digits = value.replace("_", "")
    return int(digits) if re.fullmatch(r"-?\d{1,18}", digits) else value


def _value(given: Config, key: str, type_name: str) -> Any:
    if type_name == "int":
        value = given.values[key]
        if key in ("extra_params", "mixer_params") and type(value) is int and abs(value) < 10**13:
            return value
        return given.integer(key)
    if type_name == "bool":
        return given.flag(key, False)
    word = given.text(key)
    choices = CHOICES.get(key)
    if choices and word not in choices:
        raise given.wrong(key, word, f"one of {', '.join(choices)}")
    return word


def _nearest(key: str, legal: Mapping[str, Any]) -> str:
    import difflib

    close = difflib.get_close_matches(key, legal, n=1)
    return f"did you mean {close[0]!r}?" if close else f"legal: {', '.join(legal)}"


def _file(path: Path) -> Path:
    try:
        inside = path / "config.json" if path.is_dir() else path
        if not inside.exists():
            raise NoAccess(f"there is no file {inside}")
        if not inside.is_file():
            raise BadFile(f"{inside} is not a plain file")
    except (OSError, ValueError) as error:
        raise NoAccess(f"cannot read {path}: {error}") from None
    return inside


def _load(path: Path) -> Mapping[str, Any]:
    def no_constant(word: str) -> Any:
        raise ValueError(f"{word} is not a number that JSON has")

    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise NoAccess(f"cannot read {path}: {error.strerror}") from None
    if len(data) > LARGEST_BYTES:
        raise BadFile(f"{path} is larger than a megabyte: is it the model's config.json?")
    try:
        loaded = json.loads(data.decode("utf-8-sig"), parse_constant=no_constant)
    except RecursionError:
        raise BadFile(f"{path} is nested too deep") from None
    except ValueError as error:
        raise BadFile(f"{path}: not JSON: {error}") from None
    if not isinstance(loaded, dict):
        raise BadFile(f"{path}: expected fields such as hidden_size, found {type(loaded).__name__}")
    return loaded
