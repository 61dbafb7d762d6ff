"""The model that benches train: a plain decoder (SwiGLU, attention by PyTorch, no positions).

A layer has 12 weights for each square of its width, as most transformers do; with `experts`, each
token goes through two of so many feed-forward parts. `adapt` makes it one with LoRA.
"""

from __future__ import annotations

from typing import Any

VISITED = 2  # experts of a token


def inner(width: int) -> int:
    """Of the feed-forward part: eight thirds of the width, rounded as kernels like it."""
    return 256 * round(width * 8 / 3 / 256)


def decoder(
    layers: int, width: int, vocab: int, *, recompute: bool = False, experts: int = 0
) -> Any:
    import torch
    from torch import nn

    head = min(128, width)

    class FeedForward(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            wide = inner(width)
            self.gate, self.up = nn.Linear(width, wide, bias=False), nn.Linear(width, wide, False)
            self.down = nn.Linear(wide, width, bias=False)

        def forward(self, x: Any) -> Any:
            return self.down(nn.functional.silu(self.gate(x)) * self.up(x))

    class Experts(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(width, experts, bias=False)
            self.each = nn.ModuleList(FeedForward() for _ in range(experts))

        def forward(self, x: Any) -> Any:
            flat = x.flatten(0, 1)
            share, chosen = self.router(flat).softmax(-1).topk(min(VISITED, experts))
            mixed = torch.zeros_like(flat)
            for number, expert in enumerate(self.each):
                rows, which = (chosen == number).nonzero(as_tuple=True)
                made = expert(flat[rows]) * share[rows, which, None]
                mixed = mixed.index_add(0, rows, made.to(flat.dtype))
            return mixed.view_as(x)

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.feed = Experts() if experts else FeedForward()

        def forward(self, x: Any) -> Any:
            b, s, d = x.shape
            heads = self.qkv(self.norm1(x)).view(b, s, 3, d // head, head).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(b, s, d))
            return x + self.feed(self.norm2(x))

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


def adapt(model: Any, rank: int) -> Any:
    """In place: every weight frozen in 16 bits, and adapters of that rank, in 32, on every matrix
    of the blocks."""
    import torch
    from torch import nn

    class Adapted(nn.Module):  # type: ignore[misc]
        def __init__(self, base: Any) -> None:
            super().__init__()
            self.base = base
            self.down = nn.Linear(base.in_features, rank, bias=False)
            self.up = nn.Linear(rank, base.out_features, bias=False)
            nn.init.zeros_(self.up.weight)

        def forward(self, x: Any) -> Any:
            return self.base(x) + self.up(self.down(x))

    model.to(torch.bfloat16).requires_grad_(False)
    for module in list(model.blocks.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, Adapted(child))
    return model


def loss(logits: Any, tokens: Any) -> Any:
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
