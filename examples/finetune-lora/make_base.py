"""Makes `base/`, the small language model that train.py adapts: a Llama of 0.36 million parameters
that has read Tradewind's documentation, byte by byte. It lies here already; this is how it was
made.

    python make_base.py ../tiny-gpt/text.txt
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

STEPS, BATCH, WINDOW = 1200, 16, 128


def main(text: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=0,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    data = torch.frombuffer(bytearray(text.read_bytes()), dtype=torch.uint8).long()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, STEPS)
    for step in range(1, STEPS + 1):
        starts = torch.randint(len(data) - WINDOW, (BATCH,)).tolist()
        batch = torch.stack([data[start : start + WINDOW] for start in starts])
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        if step % 100 == 0:
            print(f"step {step}  loss {loss.item():.3f}", flush=True)
    model.to(torch.bfloat16).save_pretrained(Path(__file__).parent / "base")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
