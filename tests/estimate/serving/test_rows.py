from __future__ import annotations

import math

import pytest

from tradewind import catalog
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.bench.inference import finder
from tradewind.estimate import registry
from tradewind.estimate.serving import chips, engines, formats, others, rows, served
from tradewind.model import Accelerator
from tradewind.model.shape import Shape

CATALOG = catalog.load(account=False)


def chip(name: str) -> Accelerator:
    found = chips.extra().get(name) or CATALOG.accelerators.get(name)
    if found is None:
        raise NotFound(f"no accelerator is called {name!r}")
    return found


def row(**changed: str) -> dict[str, str]:
    return {
        "source": "s", "task": "llm", "model": "llama-3.1-8b", "accelerator": "H100-SXM",
        "n_accelerators": "4", "accelerators_per_replica": "2", "tp": "2", "engine": "vllm",
        "weight_precision": "fp8", "mode": "closed-loop", "concurrency": "32", "quality": "ok",
        "input_len": "1000", "output_len": "100", "output_tokens_per_s": "5000", "date": "2025-07",
        "ttft_ms_p50": "80", "tpot_ms_mean": "9", "tpot_ms_p50": "8",
    } | changed  # fmt: skip


def case(**changed: str) -> dict[str, object]:
    return rows.case_of(row(**changed), chip, served.find)


def test_a_row_is_read_with_its_replicas_and_what_was_measured() -> None:
    found = rows.read([row()], chip, served.find)
    assert (found.rows, len(found.cases)) == (1, 1)
    assert (found.cases.group[0], found.cases.replicas[0]) == (2, 2)
    assert found.cases.year[0] == 2025.5
    assert found.measured["throughput"][0] == 5000
    assert found.measured["tpot"][0] == 0.009  # the mean before the median
    assert found.measured["ttft"][0] == 0.08


def test_throughput_is_what_the_row_gives_first() -> None:
    total = rows.outcomes(row(output_tokens_per_s="", total_tokens_per_s="11000"), 1000, 100)
    assert (total[0], total[3]) == (11000, 11)
    requests = rows.outcomes(row(output_tokens_per_s="", requests_per_s="50"), 1000, 100)
    assert (requests[0], requests[3]) == (50, 0.01)
    assert math.isnan(rows.outcomes(row(output_tokens_per_s=""), 1000, 100)[0])


def test_rows_of_doubt_and_of_other_tasks_are_not_read_and_unknown_ones_are_counted() -> None:
    table = [
        row(quality="doubtful: why"),
        row(task="other"),
        row(model="no-such-thing"),
        row(accelerator="no-such-chip"),
        row(mode="sideways"),
        row(output_tokens_per_s="", ttft_ms_p50="", tpot_ms_mean="", tpot_ms_p50=""),
        row(),
    ]
    found = rows.read(table, chip, served.find)
    assert (found.rows, len(found.cases), sum(found.unsupported.values())) == (5, 1, 4)
    assert not len(rows.read([row(model="no-such-thing")], chip, served.find).cases)


def test_dp_attention_is_a_flag_or_a_number_of_ranks_by_its_source() -> None:
    flags = [row(dp_attention="0"), row(dp_attention="1")]
    ranks = [row(source="t", dp_attention="1"), row(source="t", dp_attention="8")]
    found = rows.read(flags + ranks, chip, served.find)
    assert found.cases.spread_attention.tolist() == [0, 1, 0, 1]


def test_a_layout_that_is_not_said_has_the_fewest_accelerators_with_room_for_a_cache() -> None:
    open_layout = {"accelerators_per_replica": "", "tp": "", "n_accelerators": "8"}
    for name, group in (("llama-2-70b", 2.0), ("llama-2-7b", 1.0)):
        found = case(model=name, **open_layout)
        assert (found["group"], found["replicas"]) == (group, 8 / group)


def test_workers_that_only_prefill_are_told_apart() -> None:
    found = case(
        disagg="1", n_accelerators="24",
        notes="prefill tp8 ep8 gpus8 workers1; decode workers2",
    )  # fmt: skip
    assert (found["prefill_group"], found["prefill_workers"]) == (8, 1)
    assert (found["group"], found["replicas"]) == (8, 2)


def test_llama_cpp_cuts_by_layers() -> None:
    found = case(engine="llama.cpp", weight_precision="q4_k_m")
    assert (found["group"], found["stages"]) == (1, 2)


def test_the_table_and_the_registry_agree_about_a_model() -> None:
    for name in ("llama-3.1-8b", "llama-2-70b", "mixtral-8x7b", "deepseek-r1"):
        shape = registry.find(name)
        assert isinstance(shape, Shape)
        ours, theirs = served.find(name), served.of_shape(shape)
        for field in ("params", "active_params", "expert_params", "kv_values", "layers"):
            assert getattr(ours, field) == pytest.approx(getattr(theirs, field), rel=0.05), field


def test_formats_that_a_chip_lacks_are_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidValue, match="no fp8 units") as caught:
        formats.check(chip("A100-80GB"), "fp8")
    assert "int4" in (caught.value.hint or "")
    assert "mxfp4" not in (caught.value.hint or "")
    formats.check(chip("A100-80GB"), "int4")
    formats.check(chip("B200"), "fp4")
    with pytest.raises(InvalidValue, match="not a format"):
        formats.named("fp3")


def test_engines_by_what_people_call_them() -> None:
    for text, name in (
        ("TensorRT-LLM", "trtllm"), ("dynamo-sglang", "sglang"), ("vllm-tpu", "vllm"),
        ("transformers-neuronx", "neuron"), ("deepspeed-habana", "habana"), ("", "pytorch"),
    ):  # fmt: skip
        assert engines.nearest(text).name == name
    with pytest.raises(InvalidValue, match="no engine is called 'foo'") as caught:
        engines.named("foo")
    assert "sglang" in (caught.value.hint or "")


def test_accelerators_however_measurements_write_them() -> None:
    find = finder()
    for text, name in (
        ("NVIDIA GeForce RTX 2080 Ti", "RTX2080Ti"), ("Radeon RX 7900 XTX", "RX7900XTX"),
        ("NVIDIA Orin NX", "Orin-NX"), ("Intel Max 1100", "Max-1100"), ("M4-Max", "Apple-M4-Max"),
        ("A100", "A100-80GB"), ("V100", "V100-16GB"), ("MI300X", "MI300X"), ("H20", "H20"),
    ):  # fmt: skip
        assert find(text).name == name
    with pytest.raises(NotFound, match="no accelerator"):
        find("what is this")
    for each in chips.extra().values():
        assert each.memory_gb >= 4
        assert 10 <= (each.memory_bandwidth_gbps or 0) <= 10_000
        # An accelerator is faster in fewer bits, and its family is one that terms may differ by.
        rates = [each.fp16_tflops, each.fp8_tflops, each.fp4_tflops]
        known = [rate for rate in rates if rate]
        assert known == sorted(known)
        assert chips.family(each)
    assert chips.extra()["RTX2080Ti"].bf16_tflops is None  # Turing has no such units


def test_other_tasks_go_by_their_arithmetic() -> None:
    table = [
        row(task="other", model=model, mode="offline", weight_precision="int8", requests_per_s=rate,
            n_accelerators=count, accelerator="L4")
        for model, rate, count in (("resnet50", "12000", "1"), ("resnet50", "96000", "8"),
                                   ("bert", "1000", "1"), ("bert", "8000", "8"))
    ]  # fmt: skip
    read = others.read(table, chip)
    off = others.residuals(read, others.fit(read))
    assert abs(off).max() < 0.1
    unknown = others.read([row(task="other", model="no-such-thing", requests_per_s="1")], chip)
    assert sum(unknown.unsupported.values()) == 1
    # MLPerf's queries of a lone stream give a latency, and no rate.
    silent = others.read([row(task="other", model="bert", output_tokens_per_s="")], chip)
    assert (silent.silent, len(silent.places)) == (1, 0)
