"""Well-known models as their authors wrote them, to hold profiles against the registry."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.torch.models import Llama, next_token


class Gpt2Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        split = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        out: Tensor = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return out


class Gpt2(nn.Module):
    def __init__(self, width: int, depth: int, heads: int, vocab: int = 50_257) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(Gpt2Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.head(self.norm(x))
        return out


def gpt2() -> Any:
    return Gpt2(768, 12, 12), torch.zeros(2, 1024, dtype=torch.int64), next_token


def llama_1b() -> Any:
    model = Llama(128_256, 2048, 16, 32, 8, 8192).to(torch.bfloat16)
    return model, torch.zeros(1, 4096, dtype=torch.int64), next_token


class Bottleneck(nn.Module):
    def __init__(self, wide_in: int, width: int, stride: int) -> None:
        super().__init__()
        wide = 4 * width
        self.inner = nn.Sequential(
            nn.Conv2d(wide_in, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
        )
        same = stride == 1 and wide_in == wide
        shortcut = (nn.Conv2d(wide_in, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))
        self.around = nn.Identity() if same else nn.Sequential(*shortcut)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.inner(x) + self.around(x), inplace=True)


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, wide = [], 64
        for depth, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
            for number in range(depth):
                blocks.append(Bottleneck(wide, width, stride if number == 0 else 1))
                wide = 4 * width
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(2048, 1000)

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(self.stem(images)).mean((2, 3)))
        return out


def resnet50() -> Any:
    return ResNet50(), torch.randn(4, 3, 224, 224), lambda scores: scores.logsumexp(1).sum()
