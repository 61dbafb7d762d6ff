"""A model as the columns that the formulas of serving take.

From a shape that we know, or from a row of a table of shapes (docs/serving-estimate.md): parameters
in all and active, layers, widths, heads; routed experts follow from the two counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tradewind.base import csvfile
from tradewind.base.csvfile import number
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.estimate import registry, shapes
from tradewind.model.shape import Shape

_TABLE = Path(__file__).parent / "data" / "models.csv"
_COLUMNS = ("model", "params_b", "layers", "d_model", "n_heads")
# DeepSeek's latent attention, which all that have one share.
_LATENT = {"q_rank": 1536, "rope": 64, "nope": 128, "value": 128}
_HYBRID = 0.25  # of the layers attend, where the others have a state


class Served(NamedTuple):
    name: str
    params: float
    expert_params: float
    attention_params: float
    table_params: float
    active_params: float
    experts: float
    top_k: float
    layers: float
    d_model: float
    vocab: float
    kv_heads: float
    kv_values: float
    windowed: float
    window: float
    prefill_width: float
    decode_width: float
    longest: float  # positions; 0: not said

    def columns(self) -> dict[str, float]:
        found = self._asdict()
        del found["name"], found["longest"]
        return found


def of_shape(shape: Shape) -> Served:
    params, active = float(shapes.parameters(shape)), float(shapes.active_parameters(shape))
    table = 0.0 if shape.tied else float(shape.vocab * shape.d_model)
    attending = shape.attention_layers or shape.layers
    heads = 2.0 * shape.n_heads
    if shape.latent:
        waist = shape.kv_lora_rank + shape.qk_rope_head_dim
        wide = shape.qk_nope_head_dim + shape.qk_rope_head_dim + shape.v_head_dim
        prefill, decode = heads * wide, heads * (waist + shape.kv_lora_rank)
        kv_heads = 1.0
    else:
        prefill = decode = heads * 2 * shape.head_dim
        kv_heads = float(shape.n_kv_heads)
    narrow = attending - min(shape.full_attention_layers, attending) if shape.sliding_window else 0
    return Served(
        shape.name, params, float(shapes.expert_parameters(shape)),
        float(attending * shapes.attention_matrices(shape)), table, active - table,
        shape.experts, shape.experts_per_token, shape.layers + shape.decoder_layers, shape.d_model,
        shape.vocab, kv_heads, shapes.kv_bytes_per_token(shape, 1.0), narrow / attending,
        shape.sliding_window, attending * prefill, attending * decode, shape.max_positions,
    )  # fmt: skip


def of_row(row: Mapping[str, str]) -> Served:
    """Of a table of shapes. InvalidValue where a number is missing."""
    name = row.get("model", "")
    given = {
        column: number(row, column) for column in row if column not in ("model", "kind", "note")
    }
    for column in _COLUMNS[1:]:
        if not given.get(column):
            raise InvalidValue(f"the shape of {name!r} has no {column}")

    def value(column: str, otherwise: float = 0.0) -> float:
        return given.get(column) or otherwise

    params = value("params_b") * 1e9
    active = value("active_params_b", value("params_b")) * 1e9
    layers, width, heads = value("layers"), value("d_model"), value("n_heads")
    head_dim, kv_heads = value("head_dim", width / heads), value("n_kv_heads", heads)
    experts, top_k = value("n_experts"), value("top_k")
    vocab = value("vocab", 32_000)
    routed = (params - active) * experts / (experts - top_k) if experts > top_k else 0.0
    attending = layers * (_HYBRID if "hybrid" in row.get("kind", "") else 1.0)
    if "mla" in row.get("kind", ""):
        each = _LATENT["nope"] + _LATENT["rope"]
        rank = head_dim - _LATENT["rope"]
        matrices = (
            width * (_LATENT["q_rank"] + head_dim)
            + _LATENT["q_rank"] * heads * each
            + rank * heads * (_LATENT["nope"] + _LATENT["value"])
            + heads * _LATENT["value"] * width
        )
        prefill = 2 * heads * (each + _LATENT["value"])
        decode = 2 * heads * (head_dim + rank)
        kept = head_dim
    else:
        matrices = 2 * width * head_dim * (heads + kv_heads)
        prefill = decode = 4 * heads * head_dim
        kept = 2 * kv_heads * head_dim
    table = 0.0 if "tied" in row.get("note", "") else vocab * width
    return Served(
        name, params, routed, attending * matrices, table, active - table, experts, top_k, layers,
        width, vocab, kv_heads, attending * kept, 0.0, 0.0, attending * prefill,
        attending * decode, 0.0,
    )  # fmt: skip


def read_table(path: Path) -> dict[str, Served]:
    """A table of shapes, by name."""
    found = {}
    for line, row in csvfile.rows(path):
        lacking = [column for column in _COLUMNS if column not in row]
        if lacking:
            raise BadFile(f"{path} has no column {lacking[0]}", hint="see docs/serving-estimate.md")
        try:
            served = of_row({name: cell or "" for name, cell in row.items() if name})
        except InvalidValue as error:
            raise BadFile(f"{path}:{line}: {error.message}", hint=error.hint) from None
        found[served.name] = served
    return found


@cache
def _packaged() -> dict[str, Served]:
    return read_table(_TABLE)


def find(name: str, more: Mapping[str, Served] | None = None) -> Served:
    """By a table of the caller's, ours, or the registry; NotFound where none has it."""
    for table in (more or {}, _packaged()):
        if name in table:
            return table[name]
    shape = registry.find(name)
    if not isinstance(shape, Shape) or shape.kind != "decoder":
        raise NotFound(f"{name} does not generate text", hint="name a decoder")
    return of_shape(shape)
