"""What of a model is switched on: which parameters are trained, which layers keep statistics.

A script that unfreezes a backbone at its third epoch does so once. A training that goes on after
that would find it frozen again, as the script made it, so the switches are part of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def captured(modules: Mapping[str, Any]) -> dict[str, Any]:
    """By model: names of parameters that need no gradient, and of layers that keep no running
    statistics though they could."""
    return {
        key: {"frozen": _frozen(module), "untracked": _untracked(module)}
        for key, module in modules.items()
    }


def put_back(modules: Mapping[str, Any], saved: Mapping[str, Any]) -> list[str]:
    """What was other than at the checkpoint, in words."""
    said = []
    for key, module in modules.items():
        if (was := saved.get(key)) is None:
            continue
        frozen, changed = set(was["frozen"]), 0
        for name, parameter in module.named_parameters():
            if parameter.requires_grad == (name in frozen) and parameter.is_leaf:
                parameter.requires_grad_(name not in frozen)
                changed += 1
        untracked = set(was["untracked"])
        for name, layer in _keeping(module):
            if layer.track_running_stats == (name in untracked):
                layer.track_running_stats = name not in untracked
                changed += 1
        if changed:
            many = f"{changed} parameters and layers" if changed > 1 else "a parameter or layer"
            said.append(
                f"{many} of {key} {'are' if changed > 1 else 'is'} frozen or trained as at the"
                " checkpoint, not as the script has it before its loop"
            )
    return said


def _frozen(module: Any) -> list[str]:
    return [name for name, each in module.named_parameters() if not each.requires_grad]


def _keeping(module: Any) -> list[tuple[str, Any]]:
    return [
        (name, each)
        for name, each in module.named_modules()
        if getattr(each, "running_mean", None) is not None and hasattr(each, "track_running_stats")
    ]


def _untracked(module: Any) -> list[str]:
    return [name for name, each in _keeping(module) if not each.track_running_stats]
