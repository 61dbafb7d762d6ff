from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.base.errors import BadFile, NoAccess
from tradewind.estimate.families import FAMILIES
from tradewind.estimate.huggingface import from_config, from_numbers
from tradewind.estimate.shapes import active_parameters, parameters

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "hidden_act": "silu",
    "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072,
    "mlp_bias": False, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": 128256,
}  # fmt: skip

# Configs as their publishers write them, cut to what matters, and the count of their weights.
PUBLISHED: list[tuple[dict[str, Any], int]] = [
    (LLAMA, 8_030_261_248),
    (
        {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4,
         "max_seq_len": 2048, "no_bias": True, "vocab_size": 50432,
         "attn_config": {"alibi": True, "attn_impl": "torch"}},
        6_649_286_656,
    ),
    (
        {"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "bias": False,
         "num_hidden_layers": 32, "num_kv_heads": 71, "multi_query": True, "parallel_attn": True,
         "new_decoder_architecture": False, "alibi": False, "vocab_size": 65024},
        6_921_720_704,
    ),
    (
        {"model_type": "RefinedWeb", "hidden_size": 8192, "n_head": 128, "n_head_kv": 8,
         "n_layer": 60, "new_decoder_architecture": True, "parallel_attn": True, "bias": False,
         "alibi": False, "vocab_size": 65024},
        41_303_293_952,
    ),
    (
        {"model_type": "gemma3", "text_config": {
            "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
            "num_hidden_layers": 34, "sliding_window": 1024}, "vision_config": {}},
        3_880_263_168,
    ),
    (
        {"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6,
         "num_heads": 8, "relative_attention_num_buckets": 32, "vocab_size": 32128},
        60_506_624,
    ),
    (
        {"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "patch_size": 16,
         "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224,
         "id2label": {str(n): "x" for n in range(1000)}},
        86_567_656,
    ),
    (
        {"model_type": "distilbert", "dim": 768, "n_heads": 12, "n_layers": 6, "hidden_dim": 3072,
         "max_position_embeddings": 512, "vocab_size": 30522},
        66_362_880,
    ),
    (
        {"model_type": "deepseek_v2", "hidden_size": 2048, "num_attention_heads": 16,
         "num_key_value_heads": 16, "num_hidden_layers": 27, "intermediate_size": 10944,
         "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
         "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": None,
         "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "vocab_size": 102400, "max_position_embeddings": 163840},
        15_706_484_224,
    ),
    (
        {"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_layer": 40,
         "n_inner": 24576, "n_positions": 8192, "multi_query": True, "vocab_size": 49152},
        15_517_456_384,
    ),
]  # fmt: skip


def broken(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**LLAMA, **changes}.items() if value is not ...}


@pytest.mark.parametrize(
    ("config", "count"), PUBLISHED, ids=[c["model_type"] for c, _ in PUBLISHED]
)
def test_published_configs(config: dict[str, Any], count: int) -> None:
    assert parameters(from_config(config)) == count


def test_every_well_known_family_is_known() -> None:
    wanted = (
        "llama mistral mixtral qwen2 qwen2_moe qwen3 qwen3_moe gemma gemma2 gemma3 phi phi3 gpt2 "
        "gpt_neox gptj opt bloom mpt falcon bert roberta distilbert t5 vit deepseek_v2 deepseek_v3 "
        "gpt_oss cohere starcoder2 stablelm olmo dbrx"
    )
    assert set(wanted.split()) <= set(FAMILIES)


def test_a_file_and_the_folder_it_lies_in(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    from_file = from_config(folder / "config.json")
    assert from_file == from_config(str(folder))
    assert from_file.name == "my-llama"
    assert (from_file.layers, from_file.n_kv_heads, from_file.head_dim) == (32, 8, 128)
    assert from_file.note == ""


def test_an_unknown_family_is_read_as_a_plain_decoder() -> None:
    shape = from_config({**LLAMA, "model_type": "brand_new"})
    assert parameters(shape) == 8_030_261_248
    assert "brand_new" in shape.note
    older = {"n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
    assert parameters(from_config(older)) == 124_439_808


def test_an_unknown_mixture_of_experts() -> None:
    shape = from_config(
        broken(model_type="new_moe", num_experts=8, num_experts_per_tok=2, intermediate_size=1024)
    )
    assert (shape.experts, shape.experts_per_token) == (8, 2)
    assert active_parameters(shape) < parameters(shape)


def test_biases_that_a_llama_may_have() -> None:
    plain, biased = from_config(LLAMA), from_config(broken(attention_bias=True, mlp_bias=True))
    qkvo = 32 * 128 + 2 * 8 * 128 + 4096
    assert parameters(biased) - parameters(plain) == 32 * (qkvo + 2 * 14336 + 4096)


def test_a_window_that_is_named_but_not_used() -> None:
    qwen = broken(model_type="qwen2", sliding_window=4096, use_sliding_window=False)
    assert from_config(qwen).sliding_window == 0
    assert from_config({**qwen, "use_sliding_window": True}).sliding_window == 4096


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"hidden_size": 4097}, "hidden_size"),
        ({"hidden_size": -4096}, "hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"hidden_size": float("inf")}, "hidden_size"),
        ({"hidden_size": 4096.5}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": [4096]}, "hidden_size"),
        ({"hidden_size": 10**12}, "hidden_size"),
        ({"hidden_size": ...}, "hidden_size"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_hidden_layers": ...}, "num_hidden_layers"),
        ({"num_hidden_layers": 1_000_000}, "layers"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"num_attention_heads": None}, "num_attention_heads"),
        ({"num_key_value_heads": 5}, "n_kv_heads"),
        ({"num_key_value_heads": 64}, "n_kv_heads"),
        ({"vocab_size": ...}, "vocab_size"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings"),
        ({"model_type": 7}, "model_type"),
        ({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 9}, "experts"),
        ({"model_type": "deepseek_v3"}, "kv_lora_rank"),
        ({"model_type": "dbrx", "ffn_config": 3}, "ffn_config"),
        ({"model_type": "vit", "image_size": 225, "patch_size": 16}, "image_size"),
        ({"model_type": "nemotron_h"}, "hybrid_override_pattern"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(BadFile) as caught:
        from_config(broken(**changes), name="x/config.json")
    assert "x/config.json" in caught.value.message
    assert field in caught.value.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"layers: 3", "not JSON"),
        (b'{"hidden_size": NaN}', "not JSON"),
        (b'{"hidden_size": ' + b"9" * 10_000 + b"}", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[1, 2]", "expected fields"),
        (b"7", "expected fields"),
        (b"{}", "num_hidden_layers"),
        (b"[" * 200_000, "nested too deep"),
        (b" " * 1_000_001, "larger than a megabyte"),
    ],
)
def test_files_that_are_no_config(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=words) as caught:
        from_config(path)
    assert str(path) in caught.value.message


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.truncate(100_000_000_000)  # sparse: reading it would take all memory
    with pytest.raises(BadFile, match="larger than a megabyte"):
        from_config(path)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NoAccess):
        from_config(tmp_path / "nothing.json")
    with pytest.raises(NoAccess, match=r"config\.json"):
        from_config(tmp_path)
    os.mkfifo(tmp_path / "pipe")  # opening one would wait for ever
    with pytest.raises(BadFile, match="plain file"):
        from_config(tmp_path / "pipe")
    with pytest.raises(NoAccess):
        from_config("a\0b")


# Any value in any field that a reader may ask for, in any family.
ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(
    st.integers(), max_size=2
) | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)  # fmt: skip
FIELDS = [
    *LLAMA, "head_dim", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
    "first_k_dense_replace", "sliding_window", "layer_types", "attn_config", "ffn_config",
    "expansion_ratio", "id2label", "text_config", "num_decoder_layers", "decoder_layers",
    "mlp_only_layers", "decoder_sparse_step", "word_embed_proj_dim", "kv_lora_rank",
    "_name_or_path",
]  # fmt: skip


@given(family=st.sampled_from([*FAMILIES, "other"]), field=st.sampled_from(FIELDS), value=ANY)
def test_any_value_in_any_field_gives_a_shape_or_our_error(
    family: str, field: str, value: object
) -> None:
    try:
        shape = from_config({**LLAMA, "model_type": family, field: value})
    except BadFile:
        return
    assert 0 < active_parameters(shape) <= parameters(shape) < 1e18


def test_numbers() -> None:
    shape = from_numbers(
        {"layers": 32, "d_model": 4096, "n_heads": 32, "n_kv_heads": 8, "d_ff": 14336,
         "vocab": 128256, "name": "mine"}
    )  # fmt: skip
    assert parameters(shape) == 8_030_261_248
    assert shape.name == "mine"


def test_numbers_left_out_are_a_llamas() -> None:
    shape = from_numbers({"layers": 32, "d_model": 4096, "n_heads": 32})
    assert parameters(shape) == 6_738_415_616
    assert from_numbers({"layers": 1, "d_model": 64, "n_heads": 4, "gated": False}).d_ff == 256


def test_numbers_as_our_yaml_reader_gives_them() -> None:
    texts = {"layers": "2", "d_model": "4_096", "n_heads": "32", "tied": "true", "norm": "rmsnorm"}
    shape = from_numbers(texts)
    assert (shape.layers, shape.d_model, shape.tied) == (2, 4096, True)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"layer": 2, "d_model": 64, "n_heads": 4}, "did you mean 'layers'"),
        ({"layers": 2, "dmodel": 64, "n_heads": 4}, "did you mean 'd_model'"),
        ({"d_model": 64, "n_heads": 4}, "layers is missing"),
        ({"layers": 2, "d_model": 64, "n_heads": 5}, "d_model .64. is not a multiple of n_heads"),
        ({"layers": 2, "d_model": 64, "n_heads": 0}, "n_heads"),
        ({"layers": -2, "d_model": 64, "n_heads": 4}, "layers"),
        ({"layers": "two", "d_model": 64, "n_heads": 4}, "layers is 'two'"),
        ({"layers": None, "d_model": 64, "n_heads": 4}, "layers is empty"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "norm": "batch"}, "layernorm, rmsnorm"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "kind": "moe"}, "decoder, encoder"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "gated": 1}, "gated"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "experts": 8}, "experts_per_token"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "experts_per_token": 8}, "experts is missing"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "dense_layers": 3}, "dense_layers"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "kind": "vision"}, "patch"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "decoder_layers": 2}, "decoder_layers"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "kv_lora_rank": 8}, "qk_nope_head_dim"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "extra_params": -(10**9)}, "no parameters"),
        ({"layers": 2, "d_model": 64, "n_heads": 4, "mixer_params": -1}, "no parameters"),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be(numbers: dict[str, Any], words: str) -> None:
    with pytest.raises(BadFile) as caught:
        from_numbers(numbers, origin="run.yaml: model")
    assert str(caught.value).startswith("run.yaml: model")
    assert re.search(words, str(caught.value))
