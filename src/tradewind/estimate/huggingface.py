"""A model's shape from its Hugging Face `config.json`, or from numbers in a user's YAML.

`from_config` takes a path (of the file, or of the folder it lies in) or the parsed mapping. The
names of fields differ from family to family, and what a family always does is in its code, not in
its file: `_FAMILIES` holds both. A `model_type` that is not there is read as a plain decoder if the
usual fields are, and the shape's `note` says so.

Whatever is wrong raises BadFile with file and field; a path that is not there, or one that
may not be read NoAccess. No shape that comes out of here is negative or at odds with itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from tradewind.errors import BadFile, NoAccess
from tradewind.estimate.shapes import parameters
from tradewind.model.shape import Shape

LARGEST_BYTES = 1_000_000  # a config has a few thousand; weights given by mistake have billions
_MOST = 10**7  # no width, count or length of a real model is larger
_CHOICES = {
    "kind": ("decoder", "encoder", "encoder-decoder", "vision"),
    "positions": ("rotary", "learned", "alibi", "relative", "none"),
    "norm": ("layernorm", "rmsnorm"),
}
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
_WIDTH = ("hidden_size", "n_embd", "d_model", "n_embed", "dim")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
_HEAD_DIM = ("head_dim", "d_kv", "kv_channels", "attention_head_dim")
_FEED_FORWARD = (
    "intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "hidden_dim",
    "encoder_ffn_dim",
)  # fmt: skip
_POSITIONS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx",
    "max_target_positions",
)  # fmt: skip
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "num_selected_experts")


def from_config(source: str | Path | Mapping[str, Any], *, name: str = "") -> Shape:
    """The shape that a `config.json` describes."""
    if isinstance(source, Mapping):
        config = _Config(source, name or "the model config")
    else:
        path = _file(Path(source))
        config = _Config(_load(path), str(path))
        name = name or (path.parent.name if path.name == "config.json" else path.stem)
    config = config.language_part()
    kind = config.text("model_type")
    config.values = {**_UNSAID.get(kind, {}), **config.values}
    facts, refine = _FAMILIES.get(kind) or _generic(config, kind)
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
    given = _Config({key: _plain(value) for key, value in numbers.items()}, origin)
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
        values["head_dim"] = _divided(d_model, n_heads, origin, "d_model", "n_heads")
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


class _Config:
    """A mapping of unknown quality, read field by field under any of several names."""

    def __init__(self, values: Mapping[str, Any], origin: str) -> None:
        self.values, self.origin = values, origin

    def has(self, *names: str) -> bool:
        return any(self.values.get(name) is not None for name in names)

    def integer(self, *names: str, default: int | None = None, least: int = 0) -> int:
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            whole = isinstance(value, float) and value.is_integer()  # YAML's 1e6
            if isinstance(value, bool) or not (isinstance(value, int) or whole):
                raise self.wrong(name, value, "a whole number")
            if not least <= value <= _MOST:
                raise self.wrong(name, value, f"between {least} and {_MOST:,}")
            return int(value)
        if default is None:
            other = f" (or {', '.join(names[1:3])})" if names[1:] else ""
            raise BadFile(
                f"{self.origin}: {names[0]}{other} is missing",
                hint="is it the config.json of a language model?",
            )
        return default

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, value, "true or false")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
            raise self.wrong(name, value, "a positive number")
        return float(value)

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(name, value, "a word")
        return value[:200]

    def part(self, name: str) -> _Config:
        """The mapping inside, or an empty one."""
        value = self.values.get(name)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise self.wrong(name, value, "fields")
        return _Config(value, f"{self.origin}: {name}")

    def language_part(self) -> _Config:
        """Models of text and pictures keep the language model's fields one level down."""
        if self.has(*_WIDTH):
            return self
        for name in ("text_config", "llm_config", "language_config"):
            inner = self.part(name)
            if inner.has(*_WIDTH):
                return inner
        return self

    def wrong(self, name: str, value: Any, expected: str) -> BadFile:
        shown = repr(value)
        shown = shown if len(shown) < 60 else shown[:57] + "…"
        return BadFile(f"{self.origin}: {name} is {shown}, expected {expected}")


def _base(c: _Config, facts: Mapping[str, Any], name: str) -> Shape:
    """What nearly every config says, under one name or another."""
    layers = c.integer(*_LAYERS, least=1)
    d_model = c.integer(*_WIDTH, least=1)
    n_heads = c.integer(*_HEADS, least=1)
    if c.has(*_HEAD_DIM):
        head_dim = c.integer(*_HEAD_DIM, least=1)
    elif c.has("qk_rope_head_dim"):
        head_dim = c.integer("qk_nope_head_dim", default=0) + c.integer("qk_rope_head_dim")
    else:
        head_dim = _divided(d_model, n_heads, c.origin, _used(c, _WIDTH), _used(c, _HEADS))
    experts = c.integer(*_EXPERTS, default=0)
    d_ff = c.integer(*_FEED_FORWARD, default=4 * d_model, least=1)
    narrow = c.integer("moe_intermediate_size", default=0)
    shared = c.integer("n_shared_experts", "num_shared_experts", default=0) * (narrow or d_ff)
    values: dict[str, Any] = {
        "name": name, "kind": "decoder", "layers": layers, "d_model": d_model, "n_heads": n_heads,
        "n_kv_heads": c.integer(*_KV_HEADS, default=n_heads, least=1), "head_dim": head_dim,
        "d_ff": d_ff, "vocab": c.integer("vocab_size", "padded_vocab_size", default=0),
        "max_positions": c.integer(*_POSITIONS, default=0),
    }  # fmt: skip
    if experts > 1:
        values |= {
            "experts": experts,
            "experts_per_token": c.integer(*_PER_TOKEN, default=2, least=1),
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


def _used(c: _Config, names: tuple[str, ...]) -> str:
    return next(name for name in names if c.has(name))


# What a family adds to the common fields: replacements for the Shape that `_base` made.
Refine = Callable[[_Config, Shape], dict[str, Any]]


def _qkv_width(s: Shape) -> int:
    return (s.n_heads + 2 * s.n_kv_heads) * s.head_dim


def _llama(c: _Config, s: Shape) -> dict[str, Any]:
    extra = 0
    if c.flag("attention_bias", False) or c.flag("bias", False):
        extra += s.layers * (_qkv_width(s) + s.d_model)
    if c.flag("mlp_bias", False):
        extra += s.layers * (2 * s.d_ff + s.d_model)
    return {"extra_params": extra} | _window(c, s)


def _window(c: _Config, s: Shape) -> dict[str, Any]:
    """Some files name a window and say beside it that it is not used."""
    used = c.flag("use_sliding_window", True)
    window = c.integer("sliding_window", default=0) if used else 0
    kinds = c.values.get("layer_types")
    if not window or not isinstance(kinds, list):
        return {"sliding_window": window}
    return {"sliding_window": window, "full_attention_layers": kinds.count("full_attention")}


def _mixtral(c: _Config, s: Shape) -> dict[str, Any]:
    if s.experts:
        return _window(c, s)
    return _window(c, s) | {"experts": 8, "experts_per_token": 2}


def _qwen2(c: _Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": s.layers * _qkv_width(s)} | _window(c, s)


def _qwen2_moe(c: _Config, s: Shape) -> dict[str, Any]:
    gate = s.layers * s.d_model  # of the shared expert
    return {"extra_params": s.layers * _qkv_width(s) + gate} | _mixed_layers(c, s)


def _mixed_layers(c: _Config, s: Shape) -> dict[str, Any]:
    """Layers without experts: named one by one, or all but each n-th."""
    named = c.values.get("mlp_only_layers")
    dense = len(named) if isinstance(named, list) else 0
    step = c.integer("decoder_sparse_step", default=1, least=1)
    return {"dense_layers": dense + s.layers - s.layers // step} | _window(c, s)


def _gemma2(c: _Config, s: Shape) -> dict[str, Any]:
    # A norm behind attention and feed-forward too; every other layer looks through a window.
    window = c.integer("sliding_window", default=4096)
    return {
        "extra_params": 2 * s.layers * s.d_model,
        "sliding_window": window,
        "full_attention_layers": s.layers // 2,
    }


def _gemma3(c: _Config, s: Shape) -> dict[str, Any]:
    every = c.integer("sliding_window_pattern", "_sliding_window_pattern", default=6, least=1)
    return _gemma2(c, s) | {
        "sliding_window": c.integer("sliding_window", default=1024),
        "full_attention_layers": s.layers // every,
    }


def _phi(c: _Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": s.vocab}  # a bias on the head


def _gptj(c: _Config, s: Shape) -> dict[str, Any]:
    feed_forward = s.d_ff + s.d_model
    norms = (s.layers + 1) * s.d_model
    return {"extra_params": s.layers * feed_forward + norms + s.vocab}


def _neox(c: _Config, s: Shape) -> dict[str, Any]:
    if not c.flag("use_parallel_residual", True):
        return {"parallel_block": False}
    return {"extra_params": s.layers * 2 * s.d_model}  # side by side, but each with its norm


def _opt(c: _Config, s: Shape) -> dict[str, Any]:
    narrow = c.integer("word_embed_proj_dim", default=s.d_model, least=1)
    extra = 0
    if narrow != s.d_model:
        # Its tables are narrow, and projected in and out; and norms come last, none at the end.
        extra = 2 * narrow * s.d_model - s.vocab * (s.d_model - narrow)
    if not c.flag("do_layer_norm_before", True):
        extra -= 2 * s.d_model
    return {"max_positions": s.max_positions + 2, "extra_params": extra}


def _bloom(c: _Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": 2 * s.d_model}  # a norm on the embeddings


def _mpt(c: _Config, s: Shape) -> dict[str, Any]:
    attention = c.part("attn_config")
    alibi = attention.flag("alibi", False)
    learned = not alibi and c.flag("learned_pos_emb", True)
    rotary = attention.flag("rope", False)
    d_ff = round(c.number("expansion_ratio", 4) * s.d_model)
    return {
        "positions": "alibi" if alibi else "rotary" if rotary else "learned" if learned else "none",
        "bias": not c.flag("no_bias", False),
        "d_ff": d_ff,
        "n_kv_heads": attention.integer("kv_n_heads", default=s.n_heads, least=1),
    }


def _falcon(c: _Config, s: Shape) -> dict[str, Any]:
    new = c.flag("new_decoder_architecture", False)
    one_kv = c.flag("multi_query", True) and not new
    bias = c.flag("bias", False)
    parallel = new or c.flag("parallel_attn", True)
    a_norm = s.d_model * (2 if bias else 1)
    norms = (2 if new or not parallel else 1) * s.layers + 1
    # Two norms side by side in the new one; and norms have biases though matrices do not.
    extra = (s.layers * a_norm if new else 0) + (0 if bias else norms * s.d_model)
    return {
        "n_kv_heads": 1 if one_kv else s.n_kv_heads,
        "positions": "alibi" if c.flag("alibi", False) else "rotary",
        "bias": bias,
        "parallel_block": parallel,
        "extra_params": extra,
    }


def _bert(c: _Config, s: Shape) -> dict[str, Any]:
    types = c.integer("type_vocab_size", default=2)
    pooler = s.d_model * s.d_model + s.d_model
    return {"extra_params": types * s.d_model + pooler}


def _electra(c: _Config, s: Shape) -> dict[str, Any]:
    types = c.integer("type_vocab_size", default=2)
    narrow = c.integer("embedding_size", default=s.d_model, least=1)
    extra = types * narrow
    if narrow != s.d_model:
        tables = s.vocab + s.max_positions + 2  # the norm too
        extra += (narrow + 1) * s.d_model - tables * (s.d_model - narrow)
    return {"extra_params": extra}


def _deberta(c: _Config, s: Shape) -> dict[str, Any]:
    buckets = c.integer("position_buckets", default=0)
    span = 2 * (buckets if 0 < buckets < _MOST else s.max_positions)
    return {"extra_params": (span + 2) * s.d_model, "positions": "relative"}


def _t5(c: _Config, s: Shape) -> dict[str, Any]:
    decoder = c.integer("num_decoder_layers", default=s.layers, least=1)
    buckets = c.integer("relative_attention_num_buckets", default=32, least=1)
    return {
        "decoder_layers": decoder,
        "gated": c.text("feed_forward_proj").startswith("gated"),
        "extra_params": 2 * buckets * s.n_heads,
    }


def _bart(c: _Config, s: Shape) -> dict[str, Any]:
    # Learned positions on both sides, from 2 on; norms come last, but the embeddings have one.
    places = s.max_positions + 2
    return {
        "decoder_layers": c.integer("decoder_layers", default=s.layers, least=1),
        "max_positions": places,
        "extra_params": places * s.d_model,
    }


def _whisper(c: _Config, s: Shape) -> dict[str, Any]:
    decoder = c.integer("decoder_layers", default=s.layers, least=1)
    bins = c.integer("num_mel_bins", default=80, least=1)
    frames = c.integer("max_source_positions", default=1500, least=1)
    convolutions = 3 * s.d_model * (bins + s.d_model) + 2 * s.d_model
    no_bias_on_keys = (s.layers + 2 * decoder) * s.d_model
    return {
        "decoder_layers": decoder,
        "max_positions": c.integer("max_target_positions", default=448, least=1),
        "extra_params": convolutions + frames * s.d_model - no_bias_on_keys,
        "note": "the convolutions in front are in the parameters, not in the FLOPs",
    }


def _wav2vec2(c: _Config, s: Shape) -> dict[str, Any]:
    """Seven convolutions over the sound, a projection, a convolution for positions."""
    width = 512
    stem = 10 * width + 4 * 3 * width * width + 2 * 2 * width * width
    if c.text("feat_extract_norm") == "layer":
        stem += 7 * 3 * width  # a bias and a norm in each
    else:
        stem += 2 * width
    projection = 2 * width + width * s.d_model + s.d_model
    positions = 128 * s.d_model * s.d_model // 16 + 128 + s.d_model
    return {
        "vocab": 0,
        "extra_params": stem + projection + positions + s.d_model,
        "note": "the convolutions in front are in the parameters, not in the FLOPs",
    }


def _vit(c: _Config, s: Shape) -> dict[str, Any]:
    image = c.integer("image_size", default=224, least=1)
    patch = c.integer("patch_size", default=16, least=1)
    _divided(image, patch, c.origin, "image_size", "patch_size")
    labels = c.values.get("id2label")
    classes = c.integer("num_labels", default=len(labels) if isinstance(labels, Mapping) else 0)
    return {"image": image, "patch": patch, "classes": classes, "vocab": 0}


def _deepseek(c: _Config, s: Shape) -> dict[str, Any]:
    # Experts that are balanced without a loss have a bias each, on the router's scores.
    balanced = c.text("topk_method") == "noaux_tc"
    return {
        "extra_params": (s.layers - s.dense_layers) * s.experts if balanced else 0,
        "q_lora_rank": c.integer("q_lora_rank", default=0),
        "kv_lora_rank": c.integer("kv_lora_rank", least=1),
        "qk_nope_head_dim": c.integer("qk_nope_head_dim", least=1),
        "qk_rope_head_dim": c.integer("qk_rope_head_dim", least=1),
        "v_head_dim": c.integer("v_head_dim", least=1),
        "head_dim": c.integer("qk_nope_head_dim") + c.integer("qk_rope_head_dim"),
    }


def _gpt_oss(c: _Config, s: Shape) -> dict[str, Any]:
    # Attention sinks, one a head, and a bias on the router.
    extra = s.layers * (s.n_heads + s.experts)
    window = c.integer("sliding_window", default=128)
    half = {"sliding_window": window, "full_attention_layers": s.layers // 2}
    return {"extra_params": extra} | half


def _cohere(c: _Config, s: Shape) -> dict[str, Any]:
    if not c.flag("use_qk_norm", False):
        return _window(c, s)
    # Its norms on q and k have weights for each head.
    extra = s.layers * (s.n_heads + s.n_kv_heads) * s.head_dim
    return {"extra_params": extra} | _window(c, s)


def _starcoder2(c: _Config, s: Shape) -> dict[str, Any]:
    return {"bias": c.flag("use_bias", True)} | _window(c, s)


def _bigcode(c: _Config, s: Shape) -> dict[str, Any]:
    return {"n_kv_heads": 1 if c.flag("multi_query", True) else s.n_heads}


def _stablelm(c: _Config, s: Shape) -> dict[str, Any]:
    parallel = c.flag("use_parallel_residual", False)
    norms = (1 if parallel else 2) * s.layers + 1
    extra = norms * s.d_model  # norms have biases though matrices do not
    if c.flag("use_qkv_bias", False):
        extra += s.layers * _qkv_width(s)
    if c.flag("qk_layernorm", False):
        extra += s.layers * (s.n_heads + s.n_kv_heads) * s.head_dim
    return {"extra_params": extra, "parallel_block": parallel}


def _nemotron(c: _Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": (2 * s.layers + 1) * s.d_model}  # biases of the norms


def _olmo(c: _Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": -(2 * s.layers + 1) * s.d_model}  # norms without weights


def _olmo2(c: _Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": s.layers * (s.n_heads + s.n_kv_heads) * s.head_dim}


def _dbrx(c: _Config, s: Shape) -> dict[str, Any]:
    attention, feed_forward = c.part("attn_config"), c.part("ffn_config")
    return {
        "n_kv_heads": attention.integer("kv_n_heads", default=s.n_heads, least=1),
        "d_ff": feed_forward.integer("ffn_hidden_size", least=1),
        "experts": feed_forward.integer("moe_num_experts", least=1),
        "experts_per_token": feed_forward.integer("moe_top_k", least=1),
    }


def _grok(c: _Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": 2 * s.layers * s.d_model}  # norms behind as well as before


def _chatglm(c: _Config, s: Shape) -> dict[str, Any]:
    few = c.flag("multi_query_attention", False)
    kv_heads = s.n_kv_heads if few else s.n_heads
    width = (s.n_heads + 2 * kv_heads) * s.head_dim
    bias = c.flag("add_qkv_bias", True)
    return {"n_kv_heads": kv_heads, "extra_params": s.layers * width if bias else 0}


def _glm4_moe(c: _Config, s: Shape) -> dict[str, Any]:
    bias = s.layers * _qkv_width(s) if c.flag("attention_bias", False) else 0
    return {"extra_params": bias, "qk_norm": c.flag("use_qk_norm", False)}


def _llama4(c: _Config, s: Shape) -> dict[str, Any]:
    step = c.integer("interleave_moe_layer_step", default=1, least=1)
    experts_wide = c.integer("intermediate_size", least=1)
    return {
        "d_ff": c.integer("intermediate_size_mlp", default=s.d_ff, least=1),
        "d_ff_expert": experts_wide,
        "d_ff_shared": experts_wide,
        "experts_per_token": c.integer(*_PER_TOKEN, default=1, least=1),
        "dense_layers": s.layers - s.layers // step,
    }


def _nemotron_h(c: _Config, s: Shape) -> dict[str, Any]:
    """A string of blocks: M for Mamba-2, * for attention, - for a feed-forward, E for experts.

    We count a block of feed-forward or experts as a layer; Mamba's matrices are `mixer_params`,
    and what its scan costs beyond them is not counted.
    """
    pattern = c.text("hybrid_override_pattern")
    mamba, attention = pattern.count("M"), pattern.count("*")
    feed_forward, sparse = pattern.count("-"), pattern.count("E")
    if not attention or not feed_forward + sparse or len(pattern) != s.layers:
        raise BadFile(
            f"{c.origin}: hybrid_override_pattern must name num_hidden_layers blocks (M, *, -, E)"
        )
    inner = c.integer("mamba_num_heads", least=1) * c.integer("mamba_head_dim", least=1)
    state = 2 * c.integer("n_groups", default=8) * c.integer("ssm_state_size", default=128)
    heads = c.integer("mamba_num_heads")
    matrices = s.d_model * (2 * inner + state + heads) + inner * s.d_model
    kernel = c.integer("conv_kernel", default=4)
    vectors = (inner + state) * (kernel + 1) + 3 * heads + inner
    layers = feed_forward + sparse
    return {
        "layers": layers,
        "attention_layers": attention,
        "dense_layers": feed_forward if sparse else 0,
        "mixer_params": mamba * matrices,
        "d_ff_shared": c.integer("moe_shared_expert_intermediate_size", default=0),
        "extra_params": mamba * vectors + (s.layers - 2 * layers) * s.d_model,
        "note": f"hybrid of {mamba} Mamba-2 and {attention} attention blocks: "
        "the FLOPs of Mamba's scan are not counted",
    }


_MODERN = {
    "gated": True, "positions": "rotary", "norm": "rmsnorm", "bias": False, "tied": False,
}  # fmt: skip
_CLASSIC = {
    "gated": False, "positions": "learned", "norm": "layernorm", "bias": True, "tied": True,
}  # fmt: skip
_ENCODER = {**_CLASSIC, "kind": "encoder"}
_LAYERNORM = {**_MODERN, "norm": "layernorm"}
_TIED = {**_MODERN, "tied": True}
_BOTH = {"kind": "encoder-decoder"}

_FAMILIES: dict[str, tuple[Mapping[str, Any], Refine | None]] = {
    "llama": (_MODERN, _llama),
    "mistral": (_MODERN, _window),
    "ministral": (_MODERN, _window),
    "mixtral": (_MODERN, _mixtral),
    "qwen2": (_MODERN, _qwen2),
    "qwen2_moe": (_MODERN, _qwen2_moe),
    "qwen3": ({**_MODERN, "qk_norm": True}, _llama),
    "qwen3_moe": ({**_MODERN, "qk_norm": True}, _mixed_layers),
    "gemma": (_TIED, None),
    "gemma2": (_TIED, _gemma2),
    "gemma3": ({**_TIED, "qk_norm": True}, _gemma3),
    "gemma3_text": ({**_TIED, "qk_norm": True}, _gemma3),
    "phi": ({**_CLASSIC, "positions": "rotary", "tied": False, "parallel_block": True}, _phi),
    "phi3": (_MODERN, _window),
    "gpt2": (_CLASSIC, None),
    "gptj": ({**_LAYERNORM, "gated": False, "parallel_block": True}, _gptj),
    "gpt_neox": ({**_CLASSIC, "positions": "rotary", "tied": False, "parallel_block": True}, _neox),
    "gpt_bigcode": (_CLASSIC, _bigcode),
    "opt": (_CLASSIC, _opt),
    "bloom": ({**_CLASSIC, "positions": "alibi"}, _bloom),
    "mpt": (_CLASSIC, _mpt),
    "falcon": ({**_CLASSIC, "positions": "rotary"}, _falcon),
    "RefinedWeb": ({**_CLASSIC, "positions": "rotary"}, _falcon),
    "RefinedWebModel": ({**_CLASSIC, "positions": "rotary"}, _falcon),
    "bert": (_ENCODER, _bert),
    "roberta": (_ENCODER, _bert),
    "xlm-roberta": (_ENCODER, _bert),
    "camembert": (_ENCODER, _bert),
    "electra": (_ENCODER, _electra),
    "distilbert": (_ENCODER, None),
    "deberta-v2": ({**_ENCODER, "positions": "relative"}, _deberta),
    "wav2vec2": ({**_ENCODER, "positions": "relative", "vocab": 0}, _wav2vec2),
    "t5": ({**_MODERN, **_BOTH, "positions": "relative", "tied": True}, _t5),
    "mt5": ({**_MODERN, **_BOTH, "positions": "relative", "tied": False}, _t5),
    "bart": ({**_CLASSIC, **_BOTH}, _bart),
    "whisper": ({**_CLASSIC, **_BOTH}, _whisper),
    "vit": ({**_CLASSIC, "kind": "vision", "vocab": 0}, _vit),
    "deepseek": (_MODERN, None),
    "deepseek_v2": (_MODERN, _deepseek),
    "deepseek_v3": (_MODERN, _deepseek),
    "kimi_k2": (_MODERN, _deepseek),
    "gpt_oss": ({**_MODERN, "bias": True}, _gpt_oss),
    "cohere": ({**_LAYERNORM, "tied": True, "parallel_block": True}, _cohere),
    "cohere2": ({**_LAYERNORM, "tied": True, "parallel_block": True}, _cohere),
    "starcoder2": ({**_CLASSIC, "positions": "rotary"}, _starcoder2),
    "stablelm": (_LAYERNORM, _stablelm),
    "olmo": (_LAYERNORM, _olmo),
    "olmo2": (_MODERN, _olmo2),
    "dbrx": (_LAYERNORM, _dbrx),
    "grok-1": (_TIED, _grok),
    "internlm": (_MODERN, _llama),
    "internlm2": (_MODERN, _llama),
    "chatglm": (_MODERN, _chatglm),
    "glm4_moe": (_MODERN, _glm4_moe),
    "nemotron": ({**_LAYERNORM, "gated": False}, _nemotron),
    "nemotron_h": ({**_MODERN, "gated": False, "positions": "none"}, _nemotron_h),
    "llama4_text": (_MODERN, _llama4),
}


# What files of a family leave out, because its code has it as the default.
_UNSAID: dict[str, Mapping[str, Any]] = {
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
    },
}


def _generic(c: _Config, kind: str) -> tuple[Mapping[str, Any], Refine | None]:
    """A family we do not know, by what its fields give away."""
    modern = c.has("rms_norm_eps", "rope_theta", "rope_scaling", "num_key_value_heads")
    facts = dict(_MODERN if modern else _CLASSIC)
    if modern and not c.has("rms_norm_eps") and c.has("layer_norm_eps", "layer_norm_epsilon"):
        facts["norm"] = "layernorm"
    what = f"model_type {kind!r} is not one we know" if kind else "no model_type is given"
    return {**facts, "note": f"{what}: read as a plain decoder"}, _window


def _check(s: Shape, origin: str) -> None:
    """What must hold of every shape, however it was given."""

    def refuse(why: str) -> BadFile:
        return BadFile(f"{origin}: {why}")

    for field in fields(Shape):
        value = getattr(s, field.name)
        if type(value) is int and field.name not in ("extra_params", "mixer_params"):
            if not 0 <= value <= _MOST:
                raise refuse(f"{field.name} is {value}, expected 0 to {_MOST:,}")
            if field.name in ("layers", "d_model", "n_heads", "n_kv_heads", "head_dim", "d_ff"):
                _positive(value, field.name, origin)
    _divided(s.n_heads, s.n_kv_heads, origin, "n_heads", "n_kv_heads")
    if s.layers > 10_000:
        raise refuse(f"layers is {s.layers}, expected at most 10,000")
    if s.experts and not 0 < s.experts_per_token <= s.experts:
        raise refuse(f"experts_per_token is {s.experts_per_token}, of {s.experts} experts")
    if not s.experts and (s.experts_per_token or s.d_ff_expert or s.d_ff_shared):
        raise refuse("experts is missing: there are other fields of a mixture of experts")
    for name in ("dense_layers", "attention_layers", "full_attention_layers"):
        if getattr(s, name) > s.layers:
            raise refuse(f"{name} is {getattr(s, name)}, of {s.layers} layers")
    if s.kind == "vision":
        _positive(s.patch, "patch", origin)
        _positive(s.image, "image", origin)
        _divided(s.image, s.patch, origin, "image", "patch")
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


def _divided(whole: int, by: int, origin: str, whole_name: str, by_name: str) -> int:
    if by <= 0 or whole % by:
        raise BadFile(f"{origin}: {whole_name} ({whole}) is not a multiple of {by_name} ({by})")
    return whole // by


def _plain(value: Any) -> Any:
    """Our YAML reader gives every value as text, so that a complaint can quote it."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    digits = value.replace("_", "")
    return int(digits) if re.fullmatch(r"-?\d{1,18}", digits) else value


def _value(given: _Config, key: str, type_name: str) -> Any:
    if type_name == "int":
        value = given.values[key]
        if key in ("extra_params", "mixer_params") and type(value) is int and abs(value) < 10**13:
            return value
        return given.integer(key)
    if type_name == "bool":
        return given.flag(key, False)
    word = given.text(key)
    choices = _CHOICES.get(key)
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
