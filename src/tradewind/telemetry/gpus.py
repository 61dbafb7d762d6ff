"""NVIDIA's GPUs of this machine, as their driver tells through NVML. Without one, or without
`nvidia-ml-py`, there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.model.figures import Gpu

# Bits of NVML's answer why clocks are below their top; the others are no trouble (idle, set so).
_SLOWED = {"power": 0x4, "hardware": 0x8, "heat": 0x60, "brake": 0x80}


class Gpus:
    """All of them, or the one with this UUID."""

    def __init__(self, nvml: Any, handles: list[Any]) -> None:
        self._nvml, self._handles = nvml, handles

    @classmethod
    def here(cls, uuid: str | None = None) -> Gpus | None:
        try:
            import pynvml as nvml
        except ImportError:
            return None
        try:
            nvml.nvmlInit()
            if uuid is not None:
                name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
                return cls(nvml, [nvml.nvmlDeviceGetHandleByUUID(name)])
            found = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError:
            return None
        return cls(nvml, found) if found else None

    def busy_percent(self) -> int | None:
        """Of the busiest; None where that cannot be seen."""
        try:
            rates = self._nvml.nvmlDeviceGetUtilizationRates
            return max(int(rates(gpu).gpu) for gpu in self._handles)
        except self._nvml.NVMLError:
            return None

    def read(self) -> list[Gpu]:
        return [self._one(handle) for handle in self._handles]

    def _one(self, handle: Any) -> Gpu:
        nvml = self._nvml

        def ask(call: Callable[..., Any], *more: Any) -> Any:
            """Not every GPU knows everything."""
            try:
                return call(handle, *more)
            except nvml.NVMLError:
                return None

        used = ask(nvml.nvmlDeviceGetUtilizationRates)
        memory = ask(nvml.nvmlDeviceGetMemoryInfo)
        power, limit = ask(nvml.nvmlDeviceGetPowerUsage), ask(nvml.nvmlDeviceGetEnforcedPowerLimit)
        bits = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons) or 0
        name = ask(nvml.nvmlDeviceGetName) or ""
        return Gpu(
            name=name.decode() if isinstance(name, bytes) else str(name),
            busy=None if used is None else used.gpu / 100,
            memory_busy=None if used is None else used.memory / 100,
            memory_used=0 if memory is None else int(memory.used),
            memory_total=0 if memory is None else int(memory.total),
            power_w=None if power is None else power / 1000,
            limit_w=None if limit is None else limit / 1000,
            clock_mhz=ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            top_mhz=ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
            temperature_c=ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            slowed=tuple(word for word, bit in _SLOWED.items() if bits & bit),
        )


def driver_version() -> str:
    """Empty where there is no driver, or nothing to ask it with."""
    try:
        import pynvml as nvml
    except ImportError:
        return ""
    try:
        nvml.nvmlInit()
        told = nvml.nvmlSystemGetDriverVersion()
    except nvml.NVMLError:
        return ""
    return told.decode() if isinstance(told, bytes) else str(told)
