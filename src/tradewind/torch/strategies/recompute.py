"""Activations that are computed again in the backward pass instead of being kept.

`full` keeps only what enters a block. `selective` also keeps what matrix products and attention
give, which is dear to compute again, and recomputes the rest."""

from __future__ import annotations

from functools import partial
from typing import Any

from tradewind.base.errors import InvalidValue


def recompute(model: Any, how: str, blocks: list[tuple[str, Any]]) -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    if how == "none":
        return
    if not blocks:
        raise InvalidValue(
            f"recompute is {how!r}, and the model has no list of blocks to recompute",
            hint="name them: prepare(…, blocks=[Block]); or say recompute: none",
        )
    more = {"context_fn": partial(_selective_contexts)} if how == "selective" else {}
    for name, block in blocks:
        if not name:
            raise InvalidValue("recompute of the whole model at once saves nothing")
        outer, _, last = name.rpartition(".")
        setattr(model.get_submodule(outer), last, checkpoint_wrapper(block, **more))


def _selective_contexts() -> Any:
    import torch
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    aten = torch.ops.aten
    kept = {
        aten.mm.default,
        aten.addmm.default,
        aten.bmm.default,
        aten._scaled_dot_product_flash_attention.default,
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        aten._scaled_dot_product_efficient_attention.default,
        aten._scaled_dot_product_cudnn_attention.default,
    }

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)
