"""What a training process tells of itself: figures of its last twenty seconds or so.

One object for each rank, replaced again and again. They travel in heartbeats, so everything is
small, and nothing of it is trusted: it is what a job says. Shares are of the time of `window_s`.
"""

from __future__ import annotations

from msgspec import Struct

from tradewind.model.plausible import Amount, Count, Label, Signed


class Gpu(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One NVIDIA GPU, as its driver tells; None where that does not know."""

    name: Label = ""
    busy: Amount | None = None
    """The share of time in which any kernel ran: high also for one that uses a corner of it."""
    memory_busy: Amount | None = None
    """The share of time in which its memory was read or written."""
    memory_used: Count = 0
    memory_total: Count = 0
    power_w: Amount | None = None
    limit_w: Amount | None = None
    clock_mhz: Count | None = None
    top_mhz: Count | None = None
    temperature_c: Count | None = None
    slowed: tuple[Label, ...] = ()
    """Why it runs slower than it could: power, heat, brake, hardware."""


class Figures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    rank: Count = 0
    world: Count = 1
    local: Count = 1
    """Ranks on this machine."""
    host: Label = ""
    pid: Count = 0
    device: Label = ""
    """cpu, cuda:0, …"""
    over: bool = False
    """The training has ended, in whatever way it could tell of."""
    age_s: Amount = 0.0
    """How old they are, by the clock of who read them on the same computer."""
    up_s: Amount = 0.0
    """Since the session was made."""
    step: Count = 0
    saved: Count = 0
    steps: Count = 0
    """Made in the window."""
    window_s: Amount = 0.0
    last_s: Amount = 0.0
    """Since the last step."""
    step_s: Amount | None = None
    """The mean of the window, and the slowest."""
    slowest_s: Amount | None = None
    tokens_rate: Amount | None = None
    """A second, of this rank."""
    samples_rate: Amount | None = None
    loss: Signed | None = None
    grad_norm: Amount | None = None
    data: Amount | None = None
    """The share of waiting for batches; None: the loop takes none from the session."""
    saving: Amount = 0.0
    """The share in which training stood still for checkpoints."""
    comm: Amount | None = None
    """The share of waiting for collectives: for the network, or for ranks that come later."""
    comm_by: Label = ""
    """How that is known: `ddp` (PyTorch's timers of some steps), `stacks` (where the main thread
    was found twenty times a second), or both."""
    cpu: Amount | None = None
    """Processors that the process keeps busy."""
    crowded: Amount | None = None
    """The share in which the main thread could run, and other processes did."""
    threads: Count = 0
    cores: Count = 0
    workers: Count | None = None
    """Of the loader."""
    memory: Count = 0
    """Bytes of the computer's memory."""
    peak: Count = 0
    """The most that PyTorch has used of its GPU."""
    gpu: Gpu | None = None
