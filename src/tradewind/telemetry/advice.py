"""What to do next about what holds a training up. Words only: `diagnose` decides."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.figures import Figures, Gpu

_MOST_WORKERS = 16


def starting(first: Figures) -> str:
    if first.steps:
        return "figures follow"
    return "loading, compiling and the first batch come before the first step"


def stalled(ranks: Sequence[Figures]) -> str:
    if len(ranks) > 1 or ranks[0].world > 1:
        return "an evaluation, or ranks that wait for one that is gone: see `tradewind logs`"
    return "an evaluation, or something hangs: `py-spy dump --pid` says where"


def throttled(gpu: Gpu) -> str:
    if "heat" in gpu.slowed or "hardware" in gpu.slowed:
        return "it is too hot or broken: give the machine back and take another"
    if "brake" in gpu.slowed:
        return "the machine's power supply holds it back: take another machine"
    return "its power limit holds it back: `nvidia-smi -q -d POWER` says whether it may be raised"


def saving() -> str:
    return "save less often (every_s=, checkpoint: {every: auto}) or to a faster disk"


def data(each: Figures) -> str:
    workers, share = each.workers, _share_of_cores(each)
    if workers is not None and workers < share:
        return f"try num_workers={share}"
    if workers is None:
        return "make batches in other processes: a DataLoader with num_workers"
    return "make a sample cheaper: decode and tokenize beforehand, or read from a faster disk"


def _share_of_cores(each: Figures) -> int:
    """Those of this machine, as far as one rank may have them: one is its own."""
    return min(max(each.cores // max(each.local, 1) - 1, 1), _MOST_WORKERS)


def communication(ranks: Sequence[Figures]) -> str:
    if ranks[0].device.startswith("cuda"):
        return "larger batches or accumulated gradients, bf16 gradients, ranks on fewer machines"
    return "larger batches, accumulated gradients (no_sync), or fewer ranks: gloo is slow"


def how_known(by: str) -> str:
    return {"ddp": "by DDP's own timers", "stacks": "by samples of the main thread"}.get(
        by, "by DDP's timers and samples"
    )


def straggling(late: Figures) -> str:
    if late.device.startswith("cuda"):
        return "compare its GPU's clock with the others'; if it stays, take another machine"
    return "see what else runs on its machine"


def crowded(each: Figures) -> str:
    if each.local * max(each.threads, 1) > each.cores:
        fewer = max(each.cores // max(each.local, 1), 1)
        return (
            f"{each.local} ranks of {each.threads} threads have {each.cores} cores:"
            f" OMP_NUM_THREADS={fewer}, or end what else runs there"
        )
    return "end what else runs on the machine, or use fewer loader workers"


def launches() -> str:
    return "torch.compile(mode='reduce-overhead') or larger batches; .item() and print less often"


def bandwidth() -> str:
    return "torch.compile to fuse kernels, bf16, fused optimizers, larger batches"


def compute(first: Figures) -> str:
    return "this is what GPUs are for: bf16 or fp8, or more and faster GPUs make it faster"


def processors(first: Figures) -> str:
    if first.threads * first.local < first.cores:
        return f"torch.set_num_threads({first.cores // max(first.local, 1)}), or use a GPU"
    return "use a GPU"
