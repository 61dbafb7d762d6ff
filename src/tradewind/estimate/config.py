"""A configuration with its kinds checked, and the names that families give to one thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.base.errors import BadFile

MOST = 10**7  # no width, count or length of a real model is larger
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
WIDTH = ("hidden_size", "n_embd", "d_model", "n_embed", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
HEAD_DIM = ("head_dim", "d_kv", "kv_channels", "attention_head_dim")
FEED_FORWARD = (
    "intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "hidden_dim",
    "encoder_ffn_dim",
)  # fmt: skip
POSITIONS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx",
    "max_target_positions",
)  # fmt: skip
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "num_selected_experts")


class Config:
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
            if not least <= value <= MOST:
                raise self.wrong(name, value, f"between {least} and {MOST:,}")
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
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MOST:
            raise self.wrong(name, value, "a positive number")
        return float(value)

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(name, value, "a word")
        return value[:200]

    def part(self, name: str) -> Config:
        """The mapping inside, or an empty one."""
        value = self.values.get(name)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise self.wrong(name, value, "fields")
        return Config(value, f"{self.origin}: {name}")

    def language_part(self) -> Config:
        """Models of text and pictures keep the language model's fields one level down."""
        if self.has(*WIDTH):
            return self
        for name in ("text_config", "llm_config", "language_config"):
            inner = self.part(name)
            if inner.has(*WIDTH):
                return inner
        return self

    def wrong(self, name: str, value: Any, expected: str) -> BadFile:
        shown = repr(value)
        shown = shown if len(shown) < 60 else shown[:57] + "…"
        return BadFile(f"{self.origin}: {name} is {shown}, expected {expected}")


def divided(whole: int, by: int, origin: str, whole_name: str, by_name: str) -> int:
    if by <= 0 or whole % by:
        raise BadFile(f"{origin}: {whole_name} ({whole}) is not a multiple of {by_name} ({by})")
    return whole // by
