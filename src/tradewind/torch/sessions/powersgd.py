"""The state of PowerSGD, PyTorch's hook that compresses gradients: what its compression left out so
far, its factors, its random numbers. All of it is each rank's own."""

from __future__ import annotations

import sys
from typing import Any

_MEMORIES = ("error_dict", "p_memory_dict", "q_memory_dict")
_COUNTERS = ("iter", "total_numel_before_compression", "total_numel_after_compression")


def is_state(value: Any) -> bool:
    module = sys.modules.get("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")
    return module is not None and isinstance(value, module.PowerSGDState)


def captured(state: Any, key: str, own: dict[str, Any]) -> dict[str, Any]:
    import torch

    kind, keys, *rest = state.rng.get_state()
    made: dict[str, Any] = {name: getattr(state, name) for name in _COUNTERS}
    made["rng"] = (kind, torch.from_numpy(keys.astype("int64")), *rest)
    for name in _MEMORIES:
        memory = getattr(state, name)
        made[name] = sorted(memory)
        own |= {f"{key}.{name}.{bucket}": tensor for bucket, tensor in memory.items()}
    return made


def restored(state: Any, key: str, saved: dict[str, Any], own: dict[str, Any]) -> None:
    kind, keys, *rest = saved["rng"]
    state.rng.set_state((kind, keys.numpy().astype("uint32"), *rest))
    for name in _COUNTERS:
        setattr(state, name, saved[name])
    for name in _MEMORIES:
        memory = {bucket: own[f"{key}.{name}.{bucket}"] for bucket in saved[name]}
        getattr(state, name).clear()
        getattr(state, name).update(memory)
