"""What a machine is besides an entry in a list. This is the interface, and the body that is none:
machines of it have the addresses that their face gives them, and run nothing."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cloud.world import Machine, World


class Bodies:
    sort = "none"
    host = "127.0.0.1"
    """The address of this computer that bodies reach."""
    world: World

    def address(self, machine: Machine) -> str | None:
        """Its private address, from its launch on; None: as the face has it."""
        return None

    def start(self, machine: Machine) -> None:
        """Returns soon; called with the world's lock held."""

    def ask_to_end(self, machine: Machine) -> None:
        """Every process in it gets a SIGTERM, but for the first."""
        for pid, _ in self.alive(machine.id):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self, machine: Machine) -> None:
        """Everything in it is dead when this returns. Called with the world's lock held."""

    def alive(self, machine_id: str) -> list[tuple[int, str]]:
        return []

    def console(self, machine_id: str) -> bytes:
        return b""

    def expose(self, port: int) -> str:
        return f"http://{self.host}:{port}"

    def close(self) -> None:
        pass
