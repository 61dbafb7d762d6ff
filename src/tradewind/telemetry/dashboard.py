"""A dashboard of Grafana's, of the metrics in measured.py. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

_WIDE, _HIGH = 24, 8
_OF = '{project=~"$project",run=~"$run"}'


class Panel(NamedTuple):
    title: str
    query: str
    """In which `#` stands for the choice of runs."""
    legend: str
    unit: str = "short"
    """As Grafana calls them."""
    width: int = 8


PANELS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Runs",
        (
            Panel("Done", "tradewind_run_step# / tradewind_run_work#", "{{name}}", "percentunit"),
            Panel("Cost", "tradewind_run_cost_dollars#", "{{name}}", "currencyUSD"),
            Panel("Budget left", "tradewind_run_budget_dollars# - tradewind_run_cost_dollars#",
                  "{{name}}", "currencyUSD"),
            Panel("Time to the deadline",
                  "tradewind_run_deadline_timestamp_seconds# - time()", "{{name}}", "s"),
            Panel("Machines", "tradewind_run_machines#", "{{name}}"),
            Panel("Bottleneck", "tradewind_run_bottleneck_ratio#", "{{name}} {{kind}} {{rank}}",
                  "percentunit"),
        ),
    ),
    (
        "Training",
        (
            Panel("Loss", "avg by (name, run) (tradewind_rank_loss#)", "{{name}}"),
            Panel("Tokens a second", "sum by (name, run) (tradewind_rank_tokens_per_second#)",
                  "{{name}}"),
            Panel("Step", "max by (name, run) (tradewind_rank_step_seconds#)", "{{name}}", "s"),
            Panel("Waiting for data", "tradewind_rank_data_ratio#", "{{name}} {{rank}}",
                  "percentunit"),
            Panel("Waiting for others", "tradewind_rank_communication_ratio#", "{{name}} {{rank}}",
                  "percentunit"),
            Panel("Waiting for checkpoints", "tradewind_rank_saving_ratio#", "{{name}} {{rank}}",
                  "percentunit"),
        ),
    ),
    (
        "GPUs",
        (
            Panel("Busy", "DCGM_FI_DEV_GPU_UTIL#", "{{Hostname}} {{gpu}}", "percent"),
            Panel("Memory", "DCGM_FI_DEV_FB_USED# / (DCGM_FI_DEV_FB_USED# + DCGM_FI_DEV_FB_FREE#)",
                  "{{Hostname}} {{gpu}}", "percentunit"),
            Panel("Power", "DCGM_FI_DEV_POWER_USAGE#", "{{Hostname}} {{gpu}}", "watt"),
            Panel("Temperature", "DCGM_FI_DEV_GPU_TEMP#", "{{Hostname}} {{gpu}}", "celsius"),
            Panel("Clock", "DCGM_FI_DEV_SM_CLOCK# * 1e6", "{{Hostname}} {{gpu}}", "hertz"),
            Panel("Slowed down", "tradewind_gpu_slowed#", "{{name}} {{rank}} {{why}}"),
        ),
    ),
)  # fmt: skip


def queries() -> list[str]:
    return [query(panel) for _, panels in PANELS for panel in panels]


def query(panel: Panel) -> str:
    return panel.query.replace("#", _OF)


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    down = 0
    for title, row in PANELS:
        at = {"x": 0, "y": down, "w": _WIDE, "h": 1}
        panels.append({"type": "row", "title": title, "collapsed": False, "gridPos": at,
                       "id": len(panels) + 1, "panels": []})  # fmt: skip
        down += 1
        across = 0
        for panel in row:
            if across + panel.width > _WIDE:
                across, down = 0, down + _HIGH
            panels.append(_drawn(panel, len(panels) + 1, across, down))
            across += panel.width
        down += _HIGH
    return {
        "title": "Tradewind",
        "uid": "tradewind",
        "tags": ["tradewind", "gpu"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Prometheus", "type": "datasource",
                 "query": "prometheus"},
                _choice("project", "tradewind_run_step", "project"),
                _choice("run", 'tradewind_run_step{project=~"$project"}', "run"),
            ]
        },
        "panels": panels,
    }  # fmt: skip


def _choice(name: str, metric: str, label: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "query": {"query": f"label_values({metric}, {label})", "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _drawn(panel: Panel, number: int, across: int, down: int) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {"x": across, "y": down, "w": panel.width, "h": _HIGH},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []}
        if panel.title not in ("Loss", "Time to the deadline", "Budget left")
        else {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"},
                    "tooltip": {"mode": "multi"}},
        "targets": [{"refId": "A", "datasource": source, "expr": query(panel),
                     "legendFormat": panel.legend}],
    }  # fmt: skip
