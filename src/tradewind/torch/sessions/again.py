"""A loop over epochs that begins at 0 again, in a training that goes on.

It is given nothing for the epochs that are over, but its body does what it does between them:
schedulers are stepped there, and the script's own objects count. All of that was read back once
already, so what can be put back once more is, and what cannot is an error.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.sessions.state import Parts


class Again:
    """`loop`: what to write instead."""

    def __init__(self, parts: Parts, loop: str = "session.epochs(N)") -> None:
        self._parts, self._loop = parts, loop
        self._others = {key: deepcopy(each.state_dict()) for key, each in parts.others.items()}
        self._groups = {
            key: [
                {k: deepcopy(v) for k, v in g.items() if k != "params"} for g in each.param_groups
            ]
            for key, each in parts.optimizers.items()
        }
        self._versions = [(name, tensor, tensor._version) for name, tensor in self._tensors()]

    def _tensors(self) -> list[tuple[str, Any]]:
        """Of models and averages; those of optimizers do not change without these."""
        found: list[tuple[str, Any]] = []
        for key in self._parts.modules:
            found += self._parts.held(key, frozen=True)[0].items()
        return found

    def words(self, over: int) -> str:
        return (
            f"{over} epochs are over, and their part of the loop is given nothing; what stands"
            " around the inner loop is done for them again, files that it writes included"
            f" (`for epoch in {self._loop}:` leaves them out)"
        )

    def put_back(self) -> None:
        for name, tensor, version in self._versions:
            if tensor._version != version:
                raise InvalidValue(
                    f"{name} has changed between epochs that are over: the loop begins at epoch 0"
                    " again, and does for those once more what stands outside its inner loop",
                    hint=f"write `for epoch in {self._loop}:`, which leaves them out",
                )
        for key, state in self._others.items():
            self._parts.others[key].load_state_dict(state)
        for key, groups in self._groups.items():
            for group, kept in zip(self._parts.optimizers[key].param_groups, groups, strict=True):
                group.update(kept)
