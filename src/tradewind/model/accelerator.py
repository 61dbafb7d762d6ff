"""A chip and its facts."""

from __future__ import annotations

from dataclasses import dataclass

PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """Rates are dense peaks (no sparsity) of one chip; `None` where the chip cannot or nobody says.

    `memory_bandwidth_gbps` and `link_gbytes_per_s` are gigabytes per second: NVLink, ICI and
    NeuronLink count both directions, PCIe one.
    """

    name: str
    vendor: str
    architecture: str
    release_year: int
    memory_gb: float
    memory_bandwidth_gbps: float | None
    fp64_tflops: float | None
    fp32_tflops: float | None
    tf32_tflops: float | None
    fp16_tflops: float | None
    bf16_tflops: float | None
    fp8_tflops: float | None
    int8_tops: float | None
    fp4_tflops: float | None
    link_type: str
    link_gbytes_per_s: float | None
    tdp_watts: float | None
    compute_capability: str
    purchase_price_usd: float | None
    purchase_price_source: str
    source: str
    evidence: str
    uncertain: tuple[str, ...]
    note: str

    def peak(self, precision: str) -> float | None:
        """Dense peak in TFLOP/s (TOP/s for int8)."""
        value: float | None = getattr(
            self, "int8_tops" if precision == "int8" else f"{precision}_tflops"
        )
        return value

    @property
    def training_tflops(self) -> float | None:
        """The dense rate that mixed-precision training can reach: bf16, else fp16, else fp32."""
        return self.bf16_tflops or self.fp16_tflops or self.fp32_tflops
