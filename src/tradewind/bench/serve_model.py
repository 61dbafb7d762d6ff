"""The model that `bench serve-steps` runs: a decoder of a given shape with a static cache.

Plain PyTorch: grouped-query attention by SDPA, SwiGLU, RMSNorm, no positions (they cost next to
nothing). `prefill` reads whole prompts and fills the cache, `decode` adds one token to every
sequence at a fixed place, so that one captured CUDA graph can be replayed.
"""

from __future__ import annotations

from typing import Any

from tradewind.model.shape import Shape


def build(shape: Shape, batch: int, length: int, device: str) -> Any:
    """With random weights of 16 bits, made on the device, and room for one token more."""
    import torch
    from torch import nn

    head, heads, shared = shape.head_dim, shape.n_heads, shape.n_kv_heads
    attend = nn.functional.scaled_dot_product_attention

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            width = shape.d_model
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.qkv = nn.Linear(width, (heads + 2 * shared) * head, bias=False)
            self.out = nn.Linear(heads * head, width, bias=False)
            self.gate_up = nn.Linear(width, 2 * shape.d_ff, bias=False)
            self.down = nn.Linear(shape.d_ff, width, bias=False)
            room = (2, batch, shared, length + 1, head)
            self.register_buffer("cache", torch.zeros(room), persistent=False)

        def forward(self, x: Any, place: int) -> Any:
            b, s, _ = x.shape
            made = self.qkv(self.norm1(x)).view(b, s, heads + 2 * shared, head).transpose(1, 2)
            q, kv = made[:, :heads], made[:, heads:].unflatten(1, (2, shared)).transpose(0, 1)
            self.cache[:, :b, :, place : place + s] = kv
            k, v = self.cache[:, :b, :, : place + s]
            mixed = attend(q, k, v, is_causal=s > 1, enable_gqa=heads != shared)
            x = x + self.out(mixed.transpose(1, 2).reshape(b, s, heads * head))
            gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
            return x + self.down(nn.functional.silu(gate) * up)

    class Decoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(shape.vocab, shape.d_model)
            self.blocks = nn.ModuleList(Block() for _ in range(shape.layers))
            self.norm = nn.RMSNorm(shape.d_model)
            self.head = nn.Linear(shape.d_model, shape.vocab, bias=False)
            if shape.tied:
                self.head.weight = self.table.weight

        def forward(self, tokens: Any, place: int) -> Any:
            """The next token of each sequence, of which `place` positions are in the cache."""
            x = self.table(tokens)
            for block in self.blocks:
                x = block(x, place)
            return self.head(self.norm(x[:, -1])).argmax(-1, keepdim=True)

    with torch.device(device):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            model = Decoder()
        finally:
            torch.set_default_dtype(before)
    return model.eval()
