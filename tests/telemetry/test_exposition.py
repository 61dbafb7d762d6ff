from __future__ import annotations

import re

from tradewind.model.figures import Figures, Gpu
from tradewind.telemetry import dashboard, exposition, measured
from tradewind.telemetry.exposition import Metric, Sample

RUN = {"run": "r-1", "name": "a", "project": ""}


def test_labels_are_quoted_and_metrics_stand_together() -> None:
    one, other = Metric("one", "First\nof \\ two."), Metric("two", "Second.", "counter")
    text = exposition.text(
        [Sample(one, {"a": 'x"\\\n'}, 1), Sample(other, {}, 2.5), Sample(one, {"a": "y"}, 3)]
    )
    assert text == (
        "# HELP one First\\nof \\\\ two.\n# TYPE one gauge\n"
        'one{a="x\\"\\\\\\n"} 1.0\none{a="y"} 3.0\n'
        "# HELP two Second.\n# TYPE two counter\ntwo{} 2.5\n"
    )


def test_gpus_have_the_names_and_units_of_dcgm() -> None:
    gpu = Gpu(
        name="NVIDIA H200", busy=0.93, memory_busy=0.5, memory_used=2 << 30, memory_total=8 << 30,
        power_w=512.5, clock_mhz=1980, temperature_c=61, slowed=("power",),
    )  # fmt: skip
    rank = Figures(rank=3, world=4, host="node-1", device="cuda:3", gpu=gpu, step_s=0.25, data=0.1)
    found = {s.metric.name: s for s in measured.of_ranks(RUN, [rank])}
    assert found["DCGM_FI_DEV_GPU_UTIL"].value == 93
    assert found["DCGM_FI_DEV_FB_USED"].value == 2048
    assert found["DCGM_FI_DEV_FB_FREE"].value == 6144
    assert found["DCGM_FI_DEV_POWER_USAGE"].value == 512.5
    assert found["tradewind_gpu_slowed"].labels["why"] == "power"
    labels = found["DCGM_FI_DEV_GPU_TEMP"].labels
    assert labels == {**RUN, "rank": "3", "gpu": "3", "modelName": "NVIDIA H200",
                      "Hostname": "node-1"}  # fmt: skip
    assert found["tradewind_rank_step_seconds"].value == 0.25
    assert "DCGM_FI_DEV_MAX_SM_CLOCK" not in found  # nobody knows


def test_what_holds_a_training_up_is_a_metric() -> None:
    slow = Figures(steps=50, step=50, step_s=0.1, window_s=20, data=0.8)
    (found,) = measured.of_bottleneck(RUN, [slow])
    assert (found.labels["kind"], found.value) == ("input-bound", 0.8)
    assert list(measured.of_bottleneck(RUN, [])) == []


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    names = {metric.name for metric in measured.METRICS}
    for query in dashboard.queries():
        asked = set(re.findall(r"\b(?:tradewind|DCGM)_\w+", query))
        assert asked
        assert asked <= names
    panels = [each for each in dashboard.dashboard()["panels"] if each["type"] != "row"]
    ids = [each["id"] for each in dashboard.dashboard()["panels"]]
    assert len(ids) == len(set(ids))
    spots = {(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels}
    assert len(spots) == len(panels) == len(dashboard.queries())
