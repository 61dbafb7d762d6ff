"""State in shards by `fully_shard` (FSDP2): parameters, gradients and optimizer state.

zero3 gathers a block's parameters for its forward and again for its backward pass. zero1 and zero2
keep them from forward to backward, which sends a third less; gradients and optimizer state are in
shards all the same. hybrid shards inside groups and replicates across them.
"""

from __future__ import annotations

from typing import Any

from tradewind.torch.strategies.precision import AS_THEY_ARE, dtype_of


def shard(
    model: Any, blocks: list[tuple[str, Any]], mesh: Any, *, sharding: str, precision: str
) -> None:
    """In place: a block each, and what is left. Gradients are added up in fp32."""
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    inner = outer = MixedPrecisionPolicy()
    if precision not in AS_THEY_ARE:
        kinds = {"param_dtype": dtype_of(precision), "reduce_dtype": torch.float32}
        inner = MixedPrecisionPolicy(**kinds)
        outer = MixedPrecisionPolicy(**kinds, output_dtype=torch.float32)  # for the loss
    again = sharding in ("zero3", "hybrid")
    # By name: recomputing has wrapped them since they were found.
    for name, _ in blocks:
        if name:
            block = model.get_submodule(name)
            fully_shard(block, mesh=mesh, mp_policy=inner, reshard_after_forward=again)
    fully_shard(model, mesh=mesh, mp_policy=outer, reshard_after_forward=again)
