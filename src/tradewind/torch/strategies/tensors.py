"""Blocks split by tensors: each rank computes some heads and some of the hidden features.

A block is known by the names of its layers: what makes wider is split by columns, what makes narrow
again by rows, and one reduction follows. Embeddings, norms and heads stay whole on each rank, and
so does attention whose queries, keys and values are one matrix (GPT-2, nn.MultiheadAttention): of
such blocks the MLP is split. Other blocks are split by a plan that the script gives.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue


class Recipe(Struct, frozen=True):
    """Names of layers that stand side by side in a block."""

    wider: tuple[str, ...]
    narrower: str
    attention: bool = False


RECIPES = (
    Recipe(("q_proj", "k_proj", "v_proj"), "o_proj", True),
    Recipe(("q_proj", "k_proj", "v_proj"), "out_proj", True),
    Recipe(("wq", "wk", "wv"), "wo", True),
    Recipe(("to_q", "to_k", "to_v"), "to_out", True),
    Recipe(("gate_proj", "up_proj"), "down_proj"),
    Recipe(("up_proj",), "down_proj"),
    Recipe(("w1", "w3"), "w2"),
    Recipe(("gate", "up"), "down"),
    Recipe(("up",), "down"),
    Recipe(("c_fc",), "c_proj"),
    Recipe(("fc1",), "fc2"),
    Recipe(("fc_in",), "fc_out"),
    Recipe(("linear1",), "linear2"),
    Recipe(("lin1",), "lin2"),
    Recipe(("dense_h_to_4h",), "dense_4h_to_h"),
)
_HEADS = (
    "num_heads", "n_heads", "n_head", "heads", "num_attention_heads",
    "num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_kv_head", "kv_heads",
)  # fmt: skip


def split(model: Any, mesh: Any, plan: dict[str, Any] | None = None) -> list[str]:
    """In place; the names of the layers that are split now."""
    from torch.distributed.tensor.parallel import parallelize_module

    degree = mesh.size()
    if plan is None:
        plan = {}
        for name, module in model.named_modules():
            for recipe in _matching(module):
                _check(name, module, recipe, degree)
                plan |= _styles(name, module, recipe)
                if recipe.attention:
                    _fewer_heads(name, module, degree)
        if not plan:
            raise _unknown(model)
    before = {id(p) for p in model.parameters()}
    parallelize_module(model, mesh, plan)
    if all(id(p) in before for p in model.parameters()):
        raise InvalidValue(
            f"the plan of tensor parallelism ({', '.join(list(plan)[:4])}) names no layer of the"
            " model",
            hint="its keys are names as in named_modules(), where * stands for any one part",
        )
    return sorted(plan)


def _matching(module: Any) -> list[Recipe]:
    """At most one for attention and one for the MLP."""
    children = {name for name, child in module.named_children() if _is_linear(child)}
    found: dict[bool, Recipe] = {}
    for recipe in RECIPES:
        if {*recipe.wider, recipe.narrower} <= children:
            found.setdefault(recipe.attention, recipe)
    return list(found.values())


def _is_linear(module: Any) -> bool:
    import torch

    return isinstance(module, torch.nn.Linear) or _is_transposed(module)


def _is_transposed(module: Any) -> bool:
    """GPT-2's Conv1D: a Linear whose weight lies the other way."""
    return type(module).__name__ == "Conv1D" and hasattr(module, "nf")


def _features(layer: Any) -> int:
    """What it gives."""
    return int(layer.nf if _is_transposed(layer) else layer.out_features)


def _check(name: str, module: Any, recipe: Recipe, degree: int) -> None:
    for each in recipe.wider:
        wide = _features(module.get_submodule(each))
        if wide % degree:
            raise InvalidValue(
                f"tp {degree} does not divide the {wide} features of {name}.{each}",
                hint="tp must divide the heads, the key-value heads and the hidden features",
            )


def _styles(name: str, module: Any, recipe: Recipe) -> dict[str, Any]:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    prefix = f"{name}." if name else ""
    if _is_transposed(module.get_submodule(recipe.narrower)):
        wider, narrower = _transposed()
    else:
        wider, narrower = ColwiseParallel, RowwiseParallel
    found = {f"{prefix}{each}": wider() for each in recipe.wider}
    return found | {f"{prefix}{recipe.narrower}": narrower()}


def _fewer_heads(name: str, module: Any, degree: int) -> None:
    """Each rank has its share of them. Code that shapes by a number of heads reads it from here;
    code that leaves it to the shapes does not mind."""
    for attribute in _HEADS:
        heads = module.__dict__.get(attribute)
        if not isinstance(heads, int) or isinstance(heads, bool):
            continue
        if heads % degree:
            raise InvalidValue(
                f"tp {degree} does not divide {attribute} of {name}, which is {heads}",
                hint="tp must divide the heads, the key-value heads and the hidden features",
            )
        setattr(module, attribute, heads // degree)


def _transposed() -> tuple[Any, Any]:
    import torch
    from torch.distributed.tensor import Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    def spread(module: Any, mesh: Any, name: str, placement: Any) -> None:
        parameter = getattr(module, name)
        spread_out = distribute_tensor(parameter, mesh, [placement])
        module.register_parameter(
            name, torch.nn.Parameter(spread_out, requires_grad=parameter.requires_grad)
        )

    class Wider(ColwiseParallel):  # type: ignore[misc]
        def _apply(self, module: Any, mesh: Any) -> Any:
            return _applied(self, module, mesh, {"weight": Shard(1), "bias": Shard(0)}, spread)

    class Narrower(RowwiseParallel):  # type: ignore[misc]
        def _apply(self, module: Any, mesh: Any) -> Any:
            from torch.distributed.tensor import Replicate

            self.desired_input_layouts = (Shard(-1),)
            return _applied(self, module, mesh, {"weight": Shard(0), "bias": Replicate()}, spread)

    return Wider, Narrower


def _applied(style: Any, module: Any, mesh: Any, placements: Any, spread: Any) -> Any:
    from functools import partial

    from torch.distributed.tensor import distribute_module

    def partition(name: str, layer: Any, mesh: Any) -> None:
        for each, placement in placements.items():
            spread(layer, mesh, each, placement)

    return distribute_module(
        module,
        mesh,
        partition,
        partial(style._prepare_input_fn, style.input_layouts, style.desired_input_layouts),
        partial(style._prepare_output_fn, style.output_layouts, style.use_local_output),
    )


def _unknown(model: Any) -> InvalidValue:
    linears = [name for name, each in model.named_modules() if _is_linear(each)]
    shown = ", ".join(linears[:6]) + (", …" if len(linears) > 6 else "")
    return InvalidValue(
        f"tp is wanted, and {type(model).__name__} has no block that is known by the names of its"
        f" layers; its linear layers are {shown or 'none'}",
        hint="say how: prepare(…, plan={'layers.*.first': ColwiseParallel(), 'layers.*.second':"
        " RowwiseParallel()}), both of torch.distributed.tensor.parallel; or plan with tp: 1"
        " and sharding: zero3, which splits any model",
    )
