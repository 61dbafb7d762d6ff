"""Small factories to profile, and one large one. Each is what a user would write."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def mlp() -> Any:
    """Three layers, with biases: every figure can be computed by hand."""
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.Linear(32, 4))
    return model, torch.randn(8, 16)


def bare() -> nn.Module:
    """Inputs must come from the command line."""
    return nn.Linear(16, 4)


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.head = nn.Linear(16, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = functional.relu(self.first(images))
        x = functional.relu(self.second(x))
        x = x.mean((2, 3))
        out: Tensor = self.head(x)
        return out


def conv_net() -> Any:
    return ConvNet(), (torch.randn(4, 3, 32, 32),)


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return normed.type_as(x) * self.weight


class Block(nn.Module):
    """Llama's: grouped heads, rotary positions, a gated MLP, no biases."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.attention_norm = RmsNorm(width)
        self.wq = nn.Linear(width, heads * self.size, bias=False)
        self.wk = nn.Linear(width, kv_heads * self.size, bias=False)
        self.wv = nn.Linear(width, kv_heads * self.size, bias=False)
        self.wo = nn.Linear(heads * self.size, width, bias=False)
        self.mlp_norm = RmsNorm(width)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        normed = self.attention_norm(x)
        q = self.wq(normed).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.wk(normed).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.wv(normed).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        q, k = _rotated(q, cos, sin), _rotated(k, cos, sin)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.wo(seen.transpose(1, 2).reshape(batch, length, -1))
        normed = self.mlp_norm(x)
        out: Tensor = x + self.down(functional.silu(self.gate(normed)) * self.up(normed))
        return out


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Llama(nn.Module):
    def __init__(
        self, vocab: int, width: int, depth: int, heads: int, kv_heads: int, hidden: int
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Block(width, heads, kv_heads, hidden) for _ in range(depth))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.size = width // heads

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        steps = torch.arange(0, self.size, 2, device=tokens.device) / self.size
        angles = torch.outer(positions, 1.0 / 500_000**steps).repeat(1, 2)
        cos, sin = angles.cos().type_as(x), angles.sin().type_as(x)
        for layer in self.layers:
            x = layer(x, cos, sin)
        out: Tensor = self.head(self.norm(x))
        return out


def next_token(logits: Tensor, tokens: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def tiny_llama() -> Any:
    return Llama(1000, 64, 3, 4, 2, 160), torch.zeros(2, 32, dtype=torch.int64), next_token


def llama_70b() -> Any:
    """Llama 3 70B: 70.55 billion parameters, 141 GB in bf16."""
    model = Llama(128_256, 8192, 80, 64, 8, 28_672).to(torch.bfloat16)
    return model, torch.zeros(1, 8192, dtype=torch.int64), next_token


def wide_llama() -> Any:
    """As many parameters as Llama 3 70B has, in few layers: quick to count, and no smaller."""
    model = Llama(128_256, 32_768, 5, 64, 8, 106_496).to(torch.bfloat16)
    return model, torch.zeros(1, 8192, dtype=torch.int64), next_token
