"""Variables of the script's own, in checkpoints."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tradewind.base.errors import InvalidValue


class Variables:
    def __init__(self) -> None:
        self.values = SimpleNamespace()
        self._saved: dict[str, Any] = {}

    def declared(self, defaults: dict[str, Any]) -> SimpleNamespace:
        """As they were saved, else as given."""
        for name, value in defaults.items():
            if hasattr(self.values, name):
                raise InvalidValue(
                    f"the variable {name!r} is there already", hint="use another name"
                )
            setattr(self.values, name, self._saved.pop(name, value))
        return self.values

    def state_dict(self) -> dict[str, Any]:
        """Also what was saved and has not been asked for yet."""
        return {**self._saved, **vars(self.values)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._saved = dict(state)
