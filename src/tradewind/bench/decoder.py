"""The model that benches train: a plain decoder (SwiGLU, attention by PyTorch, no positions).

A layer has 12 weights for each square of its width, as most transformers do.
"""

from __future__ import annotations

from typing import Any


def inner(width: int) -> int:
    """Of the feed-forward part: eight thirds of the width, rounded as kernels like it."""
    return 256 * round(width * 8 / 3 / 256)


def decoder(layers: int, width: int, vocab: int, *, recompute: bool = False) -> Any:
    import torch
    from torch import nn

    head = min(128, width)

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            wide = inner(width)
            self.gate, self.up = nn.Linear(width, wide, bias=False), nn.Linear(width, wide, False)
            self.down = nn.Linear(wide, width, bias=False)

        def forward(self, x: Any) -> Any:
            b, s, d = x.shape
            heads = self.qkv(self.norm1(x)).view(b, s, 3, d // head, head).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(b, s, d))
            within = self.norm2(x)
            return x + self.down(nn.functional.silu(self.gate(within)) * self.up(within))

    class Decoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(vocab, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.RMSNorm(width)
            self.head = nn.Linear(width, vocab, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.embed(tokens)
            for block in self.blocks:
                if recompute:
                    x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
                else:
                    x = block(x)
            return self.head(self.norm(x))

    return Decoder()


def loss(logits: Any, tokens: Any) -> Any:
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
