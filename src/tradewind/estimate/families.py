"""How each family of models writes its configuration, by `model_type`.

A family has facts that its configuration does not say, and may have a function that reads what is
its own: which layers have experts, which biases there are, what is tied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradewind.base.errors import BadFile
from tradewind.estimate.config import MOST, PER_TOKEN, Config, divided
from tradewind.model.shape import Shape

# What a family adds to the common fields: replacements for the Shape that `_base` made.
Refine = Callable[[Config, Shape], dict[str, Any]]


def _qkv_width(s: Shape) -> int:
    return (s.n_heads + 2 * s.n_kv_heads) * s.head_dim


def _llama(c: Config, s: Shape) -> dict[str, Any]:
    extra = 0
    if c.flag("attention_bias", False) or c.flag("bias", False):
        extra += s.layers * (_qkv_width(s) + s.d_model)
    if c.flag("mlp_bias", False):
        extra += s.layers * (2 * s.d_ff + s.d_model)
    return {"extra_params": extra} | _window(c, s)


def _window(c: Config, s: Shape) -> dict[str, Any]:
    """Some files name a window and say beside it that it is not used."""
    used = c.flag("use_sliding_window", True)
    window = c.integer("sliding_window", default=0) if used else 0
    kinds = c.values.get("layer_types")
    if not window or not isinstance(kinds, list):
        return {"sliding_window": window}
    return {"sliding_window": window, "full_attention_layers": kinds.count("full_attention")}


def _mixtral(c: Config, s: Shape) -> dict[str, Any]:
    if s.experts:
        return _window(c, s)
    return _window(c, s) | {"experts": 8, "experts_per_token": 2}


def _qwen2(c: Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": s.layers * _qkv_width(s)} | _window(c, s)


def _qwen2_moe(c: Config, s: Shape) -> dict[str, Any]:
    gate = s.layers * s.d_model  # of the shared expert
    return {"extra_params": s.layers * _qkv_width(s) + gate} | _mixed_layers(c, s)


def _mixed_layers(c: Config, s: Shape) -> dict[str, Any]:
    """Layers without experts: named one by one, or all but each n-th."""
    named = c.values.get("mlp_only_layers")
    dense = len(named) if isinstance(named, list) else 0
    step = c.integer("decoder_sparse_step", default=1, least=1)
    return {"dense_layers": dense + s.layers - s.layers // step} | _window(c, s)


def _gemma2(c: Config, s: Shape) -> dict[str, Any]:
    # A norm behind attention and feed-forward too; every other layer looks through a window.
    window = c.integer("sliding_window", default=4096)
    return {
        "extra_params": 2 * s.layers * s.d_model,
        "sliding_window": window,
        "full_attention_layers": s.layers // 2,
    }


def _gemma3(c: Config, s: Shape) -> dict[str, Any]:
    every = c.integer("sliding_window_pattern", "_sliding_window_pattern", default=6, least=1)
    return _gemma2(c, s) | {
        "sliding_window": c.integer("sliding_window", default=1024),
        "full_attention_layers": s.layers // every,
    }


def _phi(c: Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": s.vocab}  # a bias on the head


def _gptj(c: Config, s: Shape) -> dict[str, Any]:
    feed_forward = s.d_ff + s.d_model
    norms = (s.layers + 1) * s.d_model
    return {"extra_params": s.layers * feed_forward + norms + s.vocab}


def _neox(c: Config, s: Shape) -> dict[str, Any]:
    if not c.flag("use_parallel_residual", True):
        return {"parallel_block": False}
    return {"extra_params": s.layers * 2 * s.d_model}  # side by side, but each with its norm


def _opt(c: Config, s: Shape) -> dict[str, Any]:
    narrow = c.integer("word_embed_proj_dim", default=s.d_model, least=1)
    extra = 0
    if narrow != s.d_model:
        # Its tables are narrow, and projected in and out; and norms come last, none at the end.
        extra = 2 * narrow * s.d_model - s.vocab * (s.d_model - narrow)
    if not c.flag("do_layer_norm_before", True):
        extra -= 2 * s.d_model
    return {"max_positions": s.max_positions + 2, "extra_params": extra}


def _bloom(c: Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": 2 * s.d_model}  # a norm on the embeddings


def _mpt(c: Config, s: Shape) -> dict[str, Any]:
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


def _falcon(c: Config, s: Shape) -> dict[str, Any]:
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


def _bert(c: Config, s: Shape) -> dict[str, Any]:
    types = c.integer("type_vocab_size", default=2)
    pooler = s.d_model * s.d_model + s.d_model
    return {"extra_params": types * s.d_model + pooler}


def _electra(c: Config, s: Shape) -> dict[str, Any]:
    types = c.integer("type_vocab_size", default=2)
    narrow = c.integer("embedding_size", default=s.d_model, least=1)
    extra = types * narrow
    if narrow != s.d_model:
        tables = s.vocab + s.max_positions + 2  # the norm too
        extra += (narrow + 1) * s.d_model - tables * (s.d_model - narrow)
    return {"extra_params": extra}


def _deberta(c: Config, s: Shape) -> dict[str, Any]:
    buckets = c.integer("position_buckets", default=0)
    span = 2 * (buckets if 0 < buckets < MOST else s.max_positions)
    return {"extra_params": (span + 2) * s.d_model, "positions": "relative"}


def _t5(c: Config, s: Shape) -> dict[str, Any]:
    decoder = c.integer("num_decoder_layers", default=s.layers, least=1)
    buckets = c.integer("relative_attention_num_buckets", default=32, least=1)
    return {
        "decoder_layers": decoder,
        "gated": c.text("feed_forward_proj").startswith("gated"),
        "extra_params": 2 * buckets * s.n_heads,
    }


def _bart(c: Config, s: Shape) -> dict[str, Any]:
    # Learned positions on both sides, from 2 on; norms come last, but the embeddings have one.
    places = s.max_positions + 2
    return {
        "decoder_layers": c.integer("decoder_layers", default=s.layers, least=1),
        "max_positions": places,
        "extra_params": places * s.d_model,
    }


def _whisper(c: Config, s: Shape) -> dict[str, Any]:
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


def _wav2vec2(c: Config, s: Shape) -> dict[str, Any]:
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


def _vit(c: Config, s: Shape) -> dict[str, Any]:
    image = c.integer("image_size", default=224, least=1)
    patch = c.integer("patch_size", default=16, least=1)
    divided(image, patch, c.origin, "image_size", "patch_size")
    labels = c.values.get("id2label")
    classes = c.integer("num_labels", default=len(labels) if isinstance(labels, Mapping) else 0)
    return {"image": image, "patch": patch, "classes": classes, "vocab": 0}


def _deepseek(c: Config, s: Shape) -> dict[str, Any]:
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


def _gpt_oss(c: Config, s: Shape) -> dict[str, Any]:
    # Attention sinks, one a head, and a bias on the router.
    extra = s.layers * (s.n_heads + s.experts)
    window = c.integer("sliding_window", default=128)
    half = {"sliding_window": window, "full_attention_layers": s.layers // 2}
    return {"extra_params": extra} | half


def _cohere(c: Config, s: Shape) -> dict[str, Any]:
    if not c.flag("use_qk_norm", False):
        return _window(c, s)
    # Its norms on q and k have weights for each head.
    extra = s.layers * (s.n_heads + s.n_kv_heads) * s.head_dim
    return {"extra_params": extra} | _window(c, s)


def _starcoder2(c: Config, s: Shape) -> dict[str, Any]:
    return {"bias": c.flag("use_bias", True)} | _window(c, s)


def _bigcode(c: Config, s: Shape) -> dict[str, Any]:
    return {"n_kv_heads": 1 if c.flag("multi_query", True) else s.n_heads}


def _stablelm(c: Config, s: Shape) -> dict[str, Any]:
    parallel = c.flag("use_parallel_residual", False)
    norms = (1 if parallel else 2) * s.layers + 1
    extra = norms * s.d_model  # norms have biases though matrices do not
    if c.flag("use_qkv_bias", False):
        extra += s.layers * _qkv_width(s)
    if c.flag("qk_layernorm", False):
        extra += s.layers * (s.n_heads + s.n_kv_heads) * s.head_dim
    return {"extra_params": extra, "parallel_block": parallel}


def _nemotron(c: Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": (2 * s.layers + 1) * s.d_model}  # biases of the norms


def _olmo(c: Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": -(2 * s.layers + 1) * s.d_model}  # norms without weights


def _olmo2(c: Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": s.layers * (s.n_heads + s.n_kv_heads) * s.head_dim}


def _dbrx(c: Config, s: Shape) -> dict[str, Any]:
    attention, feed_forward = c.part("attn_config"), c.part("ffn_config")
    return {
        "n_kv_heads": attention.integer("kv_n_heads", default=s.n_heads, least=1),
        "d_ff": feed_forward.integer("ffn_hidden_size", least=1),
        "experts": feed_forward.integer("moe_num_experts", least=1),
        "experts_per_token": feed_forward.integer("moe_top_k", least=1),
    }


def _grok(c: Config, s: Shape) -> dict[str, Any]:
    return {"extra_params": 2 * s.layers * s.d_model}  # norms behind as well as before


def _chatglm(c: Config, s: Shape) -> dict[str, Any]:
    few = c.flag("multi_query_attention", False)
    kv_heads = s.n_kv_heads if few else s.n_heads
    width = (s.n_heads + 2 * kv_heads) * s.head_dim
    bias = c.flag("add_qkv_bias", True)
    return {"n_kv_heads": kv_heads, "extra_params": s.layers * width if bias else 0}


def _glm4_moe(c: Config, s: Shape) -> dict[str, Any]:
    bias = s.layers * _qkv_width(s) if c.flag("attention_bias", False) else 0
    return {"extra_params": bias, "qk_norm": c.flag("use_qk_norm", False)}


def _llama4(c: Config, s: Shape) -> dict[str, Any]:
    step = c.integer("interleave_moe_layer_step", default=1, least=1)
    experts_wide = c.integer("intermediate_size", least=1)
    return {
        "d_ff": c.integer("intermediate_size_mlp", default=s.d_ff, least=1),
        "d_ff_expert": experts_wide,
        "d_ff_shared": experts_wide,
        "experts_per_token": c.integer(*PER_TOKEN, default=1, least=1),
        "dense_layers": s.layers - s.layers // step,
    }


def _nemotron_h(c: Config, s: Shape) -> dict[str, Any]:
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

FAMILIES: dict[str, tuple[Mapping[str, Any], Refine | None]] = {
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
UNSAID: dict[str, Mapping[str, Any]] = {
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
    },
}


def generic(c: Config, kind: str) -> tuple[Mapping[str, Any], Refine | None]:
    """A family we do not know, by what its fields give away."""
    modern = c.has("rms_norm_eps", "rope_theta", "rope_scaling", "num_key_value_heads")
    facts = dict(_MODERN if modern else _CLASSIC)
    if modern and not c.has("rms_norm_eps") and c.has("layer_norm_eps", "layer_norm_epsilon"):
        facts["norm"] = "layernorm"
    what = f"model_type {kind!r} is not one we know" if kind else "no model_type is given"
    return {**facts, "note": f"{what}: read as a plain decoder"}, _window
