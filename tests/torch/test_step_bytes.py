"""The estimator's formula against a step that is run on fake tensors and counted byte by byte."""

from __future__ import annotations

from typing import Any

import pytest

from tradewind.bench.decoder import decoder, inner, loss
from tradewind.estimate import columns, huggingface
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import fitted
from tradewind.estimate.memory import memory_use
from tradewind.torch.profiling.step import step_bytes

PRECISIONS = {
    "autocast": {"mixed": 1, "weight_bytes": 2, "optimizer_bytes": 12, "value_bytes": 2},
    "pure-bf16": {"mixed": 0, "weight_bytes": 2, "optimizer_bytes": 4, "value_bytes": 2},
    "fp32": {"mixed": 0, "weight_bytes": 4, "optimizer_bytes": 8, "value_bytes": 4},
}
CHIP = {
    "peak": 1e15, "peak16": 1e15, "bandwidth": 1e12, "link": 1e11, "network": 1e10,
    "memory_gb": 80, "generation": "hopper",
}  # fmt: skip


def formula(
    layers: int, width: int, vocab: int, batch: int, sequence: int, mode: str, recompute: bool
) -> float:
    case: dict[str, Any] = {
        "layers": layers, "d_model": width, "n_heads": width // 128, "n_kv_heads": width // 128,
        "head_dim": 128, "d_ff": inner(width), "gated": 1, "vocab": vocab, "sequence": sequence,
        "micro_batch": batch, "recompute": 2 * recompute, "stack": "fsdp-eager", "fused": 0,
    }  # fmt: skip
    return float(memory_use(Cases.of(case | CHIP | PRECISIONS[mode]), fitted()).allocated()[0])


@pytest.mark.parametrize("mode", PRECISIONS)
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    ("layers", "width", "vocab", "batch", "sequence"),
    [
        (4, 512, 8_000, 8, 512),  # tokens count
        (3, 2048, 1_000, 1, 64),  # weights count
        (2, 512, 128_000, 2, 1024),  # the vocabulary counts
        (2, 256, 500, 1, 8192),  # one long sequence
    ],
)
def test_the_formula_is_what_a_step_holds(
    layers: int, width: int, vocab: int, batch: int, sequence: int, mode: str, recompute: bool
) -> None:
    counted = step_bytes(
        lambda: decoder(layers, width, vocab, recompute=recompute),
        loss,
        batch=batch,
        sequence=sequence,
        mode=mode,
    )
    told = formula(layers, width, vocab, batch, sequence, mode, recompute)
    # Autocast is told between one matrix for q, k and v, as here, and three.
    assert told == pytest.approx(counted, rel=0.05)


# Of transformers: what is written out in operators of its own (norms in 32 bits, GPT-2's GELU and
# dropout) is kept besides, and not told: the allowance.
LIBRARY: dict[str, tuple[dict[str, Any], int, int, float]] = {
    "llama-1b": ({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
                  "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
                  "tie_word_embeddings": True}, 2, 2048, 0.05),
    "llama-7b": ({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11_008,
                  "num_attention_heads": 32, "vocab_size": 32_000}, 4, 2048, 0.12),
    "qwen2-7b": ({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18_944,
                  "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152_064},
                 1, 4096, 0.05),
    "neox": ({"model_type": "gpt_neox", "hidden_size": 2048, "intermediate_size": 8192,
              "num_attention_heads": 16, "vocab_size": 50_432}, 4, 2048, 0.08),
    "gpt2-medium": ({"model_type": "gpt2", "n_embd": 1024, "n_head": 16, "vocab_size": 50_257},
                    8, 1024, 0.25),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("mode", ["autocast", "pure-bf16"])
@pytest.mark.parametrize("name", LIBRARY)
def test_models_of_a_library_hold_what_the_formula_says(name: str, mode: str) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    written, batch, sequence, allowance = LIBRARY[name]
    config = AutoConfig.for_model(**written, num_hidden_layers=4)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")

        def forward(self, tokens: Any) -> Any:
            return self.model(input_ids=tokens, use_cache=False).logits

    counted = step_bytes(Model, loss, batch=batch, sequence=sequence, mode=mode)
    shape = columns.of_shape(huggingface.from_config(config.to_dict()))
    case = shape | CHIP | PRECISIONS[mode] | {"stack": "fsdp-eager", "fused": 0}
    case |= {"micro_batch": batch, "sequence": sequence}
    told = float(memory_use(Cases.of(case), fitted()).allocated()[0])
    assert told == pytest.approx(counted, rel=allowance)


def test_what_was_replaced_is_put_back() -> None:
    import torch

    before = torch.nn.functional.rms_norm
    step_bytes(lambda: decoder(1, 128, 100), loss, batch=1, sequence=8)
    assert torch.nn.functional.rms_norm is before
