"""What there is to be seen of runs, as metrics: those of a GPU by the names of NVIDIA's DCGM
exporter, so that dashboards and alarms made for it hold here too. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tradewind.model.figures import Figures, Gpu
from tradewind.telemetry.diagnose import diagnose
from tradewind.telemetry.exposition import Metric, Sample

MIB = 1 << 20

STEP = Metric("tradewind_run_step", "Units of work done.")
WORK = Metric("tradewind_run_work", "Units of work that there are to do.")
COST = Metric("tradewind_run_cost_dollars", "What the run has cost so far.")
BUDGET = Metric("tradewind_run_budget_dollars", "What the run may cost.")
DEADLINE = Metric("tradewind_run_deadline_timestamp_seconds", "When the run is to be done.")
MACHINES = Metric("tradewind_run_machines", "Machines that the run has now.")
LEGS = Metric("tradewind_run_legs", "Legs of the run so far.")
LATE = Metric("tradewind_run_late", "1 where the run will miss its deadline.")
STATE = Metric("tradewind_run_state", "1, by the state in which the run is.")
HELD = Metric("tradewind_run_bottleneck_ratio", "Share of the time that the heaviest one costs.")

DOING = Metric("tradewind_machine_doing", "1, by what the machine does.")
UPTIME = Metric("tradewind_machine_uptime_seconds", "Since the machine came up.")
RATE = Metric("tradewind_machine_work_per_second", "Units of work a second, as the machine says.")
NOTICE = Metric("tradewind_machine_notice", "1 where the machine is about to be interrupted.")
FAILURES = Metric("tradewind_machine_failures", "Failures of its job since that last got further.")
IDLE = Metric("tradewind_machine_idle_seconds", "Since its job made a step or used the machine.")

_RANK: Mapping[str, Metric] = {
    "step": Metric("tradewind_rank_step", "Steps made by the rank."),
    "step_s": Metric("tradewind_rank_step_seconds", "A step, the mean of the last ones."),
    "slowest_s": Metric("tradewind_rank_slowest_step_seconds", "The slowest of them."),
    "tokens_rate": Metric("tradewind_rank_tokens_per_second", "Tokens a second of the rank."),
    "samples_rate": Metric("tradewind_rank_samples_per_second", "Samples a second of the rank."),
    "loss": Metric("tradewind_rank_loss", "The loss, as the script tells it."),
    "grad_norm": Metric("tradewind_rank_grad_norm", "Norm of the gradients."),
    "data": Metric("tradewind_rank_data_ratio", "Share of the time that waits for batches."),
    "saving": Metric("tradewind_rank_saving_ratio", "Share that waits for checkpoints."),
    "comm": Metric("tradewind_rank_communication_ratio", "Share that waits for collectives."),
    "cpu": Metric("tradewind_rank_cpu_cores", "Processors that the rank keeps busy."),
    "crowded": Metric("tradewind_rank_crowded_ratio", "Share that others take its processors."),
    "memory": Metric("tradewind_rank_memory_bytes", "Memory of the computer."),
    "peak": Metric("tradewind_rank_gpu_peak_bytes", "The most that PyTorch used of its GPU."),
    "age_s": Metric("tradewind_rank_age_seconds", "How old the rank's figures are."),
}
_GPU: Mapping[str, tuple[Metric, float]] = {
    "busy": (Metric("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)."), 100),
    "memory_busy": (Metric("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %)."), 100),
    "power_w": (Metric("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."), 1),
    "limit_w": (Metric("DCGM_FI_DEV_POWER_MGMT_LIMIT", "Power limit (in W)."), 1),
    "clock_mhz": (Metric("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz)."), 1),
    "top_mhz": (Metric("DCGM_FI_DEV_MAX_SM_CLOCK", "Its maximum (in MHz)."), 1),
    "temperature_c": (Metric("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."), 1),
}
USED = Metric("DCGM_FI_DEV_FB_USED", "Frame buffer memory used (in MiB).")
FREE = Metric("DCGM_FI_DEV_FB_FREE", "Frame buffer memory free (in MiB).")
SLOWED = Metric("tradewind_gpu_slowed", "1, by why the GPU is slower than it could be.")

METRICS: tuple[Metric, ...] = (
    STEP, WORK, COST, BUDGET, DEADLINE, MACHINES, LEGS, LATE, STATE, HELD,
    DOING, UPTIME, RATE, NOTICE, FAILURES, IDLE,
    *_RANK.values(), *(metric for metric, _ in _GPU.values()), USED, FREE, SLOWED,
)  # fmt: skip


def of_ranks(labels: Mapping[str, str], ranks: Sequence[Figures]) -> Iterator[Sample]:
    """`labels`: of the run, and where it is known of the machine."""
    for each in ranks:
        of_rank = {**labels, "rank": str(each.rank)}
        for name, metric in _RANK.items():
            value = getattr(each, name)
            if value is not None:
                yield Sample(metric, of_rank, value)
        if each.gpu is not None:
            yield from _of_gpu(of_rank, each, each.gpu)


def of_bottleneck(labels: Mapping[str, str], ranks: Sequence[Figures]) -> Iterator[Sample]:
    for found in diagnose(ranks)[:1]:
        rank = "" if found.rank is None else str(found.rank)
        yield Sample(HELD, {**labels, "kind": found.kind, "rank": rank}, found.share)


def _of_gpu(labels: Mapping[str, str], rank: Figures, gpu: Gpu) -> Iterator[Sample]:
    number = rank.device.partition(":")[2] or "0"
    # As the DCGM exporter calls them.
    known = {**labels, "gpu": number, "modelName": gpu.name, "Hostname": rank.host}
    for name, (metric, times) in _GPU.items():
        value = getattr(gpu, name)
        if value is not None:
            yield Sample(metric, known, value * times)
    if gpu.memory_total:
        yield Sample(USED, known, gpu.memory_used // MIB)
        yield Sample(FREE, known, max(gpu.memory_total - gpu.memory_used, 0) // MIB)
    for why in gpu.slowed:
        yield Sample(SLOWED, {**labels, "gpu": number, "why": why}, 1)
