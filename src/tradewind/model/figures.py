"""What a training process tells of itself: figures of its last twenty seconds or so.

One object for each rank, replaced again and again. They travel in heartbeats, so everything is
small, and nothing of it is trusted: it is what a job says. Shares are of the time of `window_s`.
"""

from __future__ import annotations

from msgspec import Struct


class Gpu(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One NVIDIA GPU, as its driver tells; None where that does not know."""

    name: str = ""
    busy: float | None = None
    """The share of time in which any kernel ran: high also for one that uses a corner of it."""
    memory_busy: float | None = None
    """The share of time in which its memory was read or written."""
    memory_used: int = 0
    memory_total: int = 0
    power_w: float | None = None
    limit_w: float | None = None
    clock_mhz: int | None = None
    top_mhz: int | None = None
    temperature_c: int | None = None
    slowed: tuple[str, ...] = ()
    """Why it runs slower than it could: power, heat, brake, hardware."""


class Figures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    rank: int = 0
    world: int = 1
    local: int = 1
    """Ranks on this machine."""
    host: str = ""
    pid: int = 0
    device: str = ""
    """cpu, cuda:0, …"""
    over: bool = False
    """The training has ended, in whatever way it could tell of."""
    age_s: float = 0.0
    """How old they are, by the clock of who read them on the same computer."""
    up_s: float = 0.0
    """Since the session was made."""
    step: int = 0
    saved: int = 0
    steps: int = 0
    """Made in the window."""
    window_s: float = 0.0
    last_s: float = 0.0
    """Since the last step."""
    step_s: float | None = None
    """The mean of the window, and the slowest."""
    slowest_s: float | None = None
    tokens_rate: float | None = None
    """A second, of this rank."""
    samples_rate: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    data: float | None = None
    """The share of waiting for batches; None: the loop takes none from the session."""
    saving: float = 0.0
    """The share in which training stood still for checkpoints."""
    comm: float | None = None
    """The share of waiting for collectives: for the network, or for ranks that come later."""
    comm_by: str = ""
    """How that is known: `ddp` (PyTorch's timers of some steps), `stacks` (where the main thread
    was found twenty times a second), or both."""
    cpu: float | None = None
    """Processors that the process keeps busy."""
    crowded: float | None = None
    """The share in which the main thread could run, and other processes did."""
    threads: int = 0
    cores: int = 0
    workers: int | None = None
    """Of the loader."""
    memory: int = 0
    """Bytes of the computer's memory."""
    peak: int = 0
    """The most that PyTorch has used of its GPU."""
    gpu: Gpu | None = None
