"""NVML's answers as figures. No GPU is needed: the library's constants and structures are its own,
and only what a driver would answer is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tradewind.model.figures import Gpu
from tradewind.telemetry.gpus import Gpus

nvml = pytest.importorskip("pynvml")


class Driver:
    """As nvidia-ml-py, with one GPU behind it; what is None it does not support."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvmlDeviceGet"):
            return getattr(nvml, name)
        assert hasattr(nvml, name), f"NVML has no {name}"

        def call(*_: Any) -> Any:
            answer = self._answers.get(name.removeprefix("nvmlDeviceGet"))
            if answer is None:
                raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
            return answer

        return call


def test_all_that_it_tells() -> None:
    driver = Driver(
        UtilizationRates=SimpleNamespace(gpu=97, memory=41),
        MemoryInfo=SimpleNamespace(used=5, total=9),
        PowerUsage=640_000,
        EnforcedPowerLimit=700_000,
        CurrentClocksThrottleReasons=nvml.nvmlClocksThrottleReasonSwPowerCap
        | nvml.nvmlClocksThrottleReasonHwThermalSlowdown
        | nvml.nvmlClocksThrottleReasonGpuIdle,
        Name="NVIDIA H200",
        ClockInfo=1500,
        MaxClockInfo=1980,
        Temperature=88,
    )
    gpus = Gpus(driver, [object()])
    assert gpus.read() == [
        Gpu(
            name="NVIDIA H200",
            busy=0.97,
            memory_busy=0.41,
            memory_used=5,
            memory_total=9,
            power_w=640.0,
            limit_w=700.0,
            clock_mhz=1500,
            top_mhz=1980,
            temperature_c=88,
            slowed=("power", "heat"),
        )
    ]
    assert gpus.busy_percent() == 97


def test_what_it_does_not_know_is_none() -> None:
    gpus = Gpus(Driver(Name=b"Old"), [object()])
    assert gpus.read() == [Gpu(name="Old")]
    assert gpus.busy_percent() is None


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("HwSlowdown", "hardware"),
        ("SwThermalSlowdown", "heat"),
        ("HwPowerBrakeSlowdown", "brake"),
        ("SwPowerCap", "power"),
    ],
)
def test_each_reason_has_its_word(reason: str, word: str) -> None:
    bits = getattr(nvml, f"nvmlClocksThrottleReason{reason}")
    (gpu,) = Gpus(Driver(CurrentClocksThrottleReasons=bits), [object()]).read()
    assert gpu.slowed == (word,)


def test_idle_is_not_slowed_down() -> None:
    bits = nvml.nvmlClocksThrottleReasonGpuIdle | nvml.nvmlClocksThrottleReasonSyncBoost
    (gpu,) = Gpus(Driver(CurrentClocksThrottleReasons=bits), [object()]).read()
    assert gpu.slowed == ()


def test_a_gpu_that_is_not_here() -> None:
    assert Gpus.here("GPU-00000000-0000-0000-0000-000000000000") is None
