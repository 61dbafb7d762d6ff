"""This computer, as a cloud: its machines are process groups, and nothing is set up for them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tradewind.base.ownfiles import home
from tradewind.model.run import Facts, Machine
from tradewind.providers.cloud import Cloud
from tradewind.providers.local.provider import FACTS


class Local:
    name = "local"
    title = "this computer"
    facts: Facts = FACTS

    def shell(self, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
        """In the machine's folder."""
        folder = home() / "local" / "machines" / machine.machine_id
        inside = shlex.join(words) if words else "exec ${SHELL:-sh}"
        return ["sh", "-c", f"cd {shlex.quote(str(folder))} && {inside}"]

    def check_shell(self, command: Sequence[str]) -> None:
        pass


CLOUD: Cloud = Local()
