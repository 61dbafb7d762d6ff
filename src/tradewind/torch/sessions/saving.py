"""One checkpoint of a session: what goes into it, and when it may be taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.sessions.state import Parts, bare
from tradewind.torch.surroundings import Surroundings
from tradewind.torch.trees import packed


class Saver:
    """`where` says how far the data is, `more` what else there is, each for all ranks and for this
    one. `made_with` is the fingerprint of what it is saved with; `step` the newest that was saved,
    or is being saved; `epoch` the one that the loop is in, `saved_epoch` the one it was in then."""

    def __init__(
        self,
        checkpoints: Any,
        parts: Parts,
        where: Callable[[], tuple[dict[str, Any] | None, dict[str, Any]]],
        around: Surroundings,
        made_with: dict[str, Any],
        warn: Callable[[str], None],
        more: Callable[[], tuple[dict[str, Any], dict[str, Any]]],
    ) -> None:
        self._checkpoints, self._parts, self._where, self._more = checkpoints, parts, where, more
        self._around, self._made_with, self._warn = around, made_with, warn
        self.step = self.epoch = self.saved_epoch = 0
        self._configs = {name: _config(module) for name, module in parts.modules.items()}

    def check(self) -> None:
        """What cannot be saved is found out now, and not when the first save is due."""
        captured = self._parts.captured(gradients=False)
        _packed(captured.shared)
        packed(captured.mine, "this rank")

    def prepare(self) -> None:
        """The memory is pinned ahead, when there is all that will be saved: optimizers make their
        state at their first step."""
        captured = self._parts.captured(gradients=False)
        self._checkpoints.prepare(captured.tensors, captured.own)

    def save(
        self, step: int, seed: int, *, wait: bool = False, deadline_s: float | None = None
    ) -> bool:
        """Whether it has begun; with `wait`, whether it is durable."""
        if self._parts.gradients.hidden():
            self._warn(
                f"step {step} is not saved: fully_shard holds gradients that are not reduced yet,"
                " and they cannot be saved"
            )
            return False
        captured = self._parts.captured()
        (feed, my_feed), (more, my_more) = self._where(), self._more()
        shared = {
            **captured.shared,
            "step": step,
            "seed": seed,
            "epoch": self.epoch,
            "feed": feed,
            "made_with": self._made_with,
            "model_config": {name: text for name, text in self._configs.items() if text},
            **more,
        }
        mine = {**captured.mine, "feed": my_feed, **my_more}
        begun: bool = self._checkpoints.save(
            step,
            captured.tensors,
            captured.own,
            _packed(shared) if self._around.rank == 0 else b"",
            packed(mine, "this rank or its data"),
            wait=wait,
            deadline_s=deadline_s,
        )
        if begun:
            self.step, self.saved_epoch = step, self.epoch
            if captured.soon:  # before the next backward pass adds to it
                self._checkpoints.gate()
        return begun


def _packed(shared: dict[str, Any]) -> bytes:
    """What cannot be packed is named, if that is one of the script's own objects."""
    try:
        return packed(shared, "the model or the optimizer")
    except InvalidValue:
        for name, state in shared["state"]["others"].items():
            packed(state, name)
        raise


def _config(module: Any) -> str:
    """What Hugging Face calls config.json, so that the weights can be used without the script; ""
    where the model has none."""
    config: Any = getattr(bare(module), "config", None)
    try:
        words = dict(config.to_dict()) if hasattr(config, "to_dict") else {}
        if words and not words.get("architectures"):  # as save_pretrained does
            words["architectures"] = [type(bare(module)).__name__]
        return json.dumps(words, indent=2, sort_keys=True) + "\n" if words else ""
    except (TypeError, ValueError, RecursionError):  # a config of somebody else's kind
        return ""
