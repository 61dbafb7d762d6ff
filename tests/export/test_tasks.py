"""Task files for SkyPilot and dstack, by their own parsers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.export import asking
from tradewind.export import making
from tradewind.export.asked import Asked
from tradewind.export.exported import Refused
from tradewind.model import Job

BUILD = Path(__file__).parents[2] / "build"
KINDS = ("skypilot", "dstack")

SKYPILOT = """
import json, sys
import sky
found = {}
for name, path in json.load(sys.stdin).items():
    try:
        task = sky.Task.from_yaml(path)
        (one,) = task.resources
        found[name] = {
            "nodes": task.num_nodes, "spot": one.use_spot, "chips": one.accelerators,
            "cloud": str(one.cloud).lower(), "region": one.region, "run": task.run,
            "service": task.service and [task.service.min_replicas, task.service.max_replicas],
        }
    except Exception as error:
        found[name] = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(found))
"""
DSTACK = """
import json, sys
import yaml
from dstack._internal.core.models.configurations import parse_run_configuration
found = {}
for name, path in json.load(sys.stdin).items():
    try:
        one = parse_run_configuration(yaml.safe_load(open(path)))
        gpu = one.resources.gpu
        found[name] = {
            "nodes": getattr(one, "nodes", None) or 1, "spot": one.spot_policy.value,
            "chips": {gpu.name[0]: gpu.count.min}, "cloud": one.backends[0].value,
            "region": (one.regions or [None])[0], "run": one.commands[-1],
            "service": one.type == "service" and [one.replicas.min, one.replicas.max] or None,
        }
    except Exception as error:
        found[name] = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(found))
"""


def text(kind: str, asked: Asked, **settings: str) -> str:
    (file,) = making.made(kind, asked, settings).files.values()
    return file.text


def read(kind: str, asked: Asked) -> Any:
    return yaml.safe_load(text(kind, asked))


def parsed(kind: str, texts: dict[str, str], folder: Path) -> dict[str, Any]:
    """What its parser makes of each."""
    fetched = BUILD / kind
    assert fetched.is_dir(), f"{fetched} is not there; run `make test-system`"
    for name, each in texts.items():
        (folder / f"{name}.yaml").write_text(each)
    done = subprocess.run(
        [sys.executable, "-c", {"skypilot": SKYPILOT, "dstack": DSTACK}[kind]],
        input=json.dumps({name: str(folder / f"{name}.yaml") for name in texts}),
        env={
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(fetched),
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1", "no_proxy": "*",
        },
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.system
@pytest.mark.parametrize("kind", KINDS)
def test_their_parsers_read_each_example_as_planned(kind: str, tmp_path: Path) -> None:
    texts, plans = {}, {}
    for name in asking.NAMES:
        asked = replace(asking.example(name), job_path=".")  # it has to be there
        if name == "jax-tpu":  # refused: below
            continue
        texts[name], plans[name] = text(kind, asked), asked
    first = next(iter(texts))
    wrong = {
        "unknown field": texts[first] + "surely_not: 1\n",
        "wrong kind": texts[first].replace("name:", "name: []\nresources: here\nx:", 1),
    }
    found = parsed(kind, texts | wrong, tmp_path)
    for name in wrong:
        assert "error" in found.pop(name), name
    for name, one in found.items():
        asked, bought = plans[name], plans[name].bought
        assert "error" not in one, (name, one)
        assert sum(one["chips"].values()) == bought.accelerator_count, name
        if asked.plan is not None:
            assert one["nodes"] == asked.plan.nodes, name
            assert bool(one["spot"] in (True, "spot", "auto")) == ("spot" in asked.plan.markets)
            assert one["service"] is None
        else:
            assert asked.serving is not None
            pool = asked.serving.pools[0]
            counts = [(hour.on_demand + hour.spot) * pool.replicas for hour in pool.hours]
            assert one["service"] == [min(counts), max(counts)]
        if bought.provider == "aws":
            assert (one["cloud"], one["region"]) == ("aws", bought.region), name
    assert len(found) == len(asking.NAMES) - 1


@pytest.mark.parametrize("kind", KINDS)
def test_several_machines_meet_by_the_names_that_they_are_told(kind: str) -> None:
    task = read(kind, asking.example("continue-70b-eu"))
    said = task["run"] if kind == "skypilot" else task["commands"][-1]
    rank = {"skypilot": "$SKYPILOT_NODE_RANK", "dstack": "$DSTACK_NODE_RANK"}[kind]
    assert f'--node-rank="{rank}"' in said
    assert task["num_nodes" if kind == "skypilot" else "nodes"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_are_theirs(kind: str) -> None:
    asked = asking.example("pretrain-1.3b")
    job = Job(command="python a.py", secrets={"TOKEN": "aws-ssm:/t"}, env={"A": "b: #"})
    task = read(kind, replace(asked, workload=replace(asked.workload, run=job)))
    if kind == "skypilot":
        assert task["secrets"] == {"TOKEN": None}
        assert task["envs"]["A"] == "b: #"
    else:
        assert "TOKEN=${{ secrets.TOKEN }}" in task["env"]
        assert "A=b: #" in task["env"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_they_cannot_say_is_refused(kind: str) -> None:
    asked = asking.example("pretrain-1.3b")
    assert asked.plan is not None
    with pytest.raises(Refused, match="rents nothing from nowhere") as caught:
        text(kind, replace(asked, plan=replace(asked.plan, provider="nowhere")))
    assert "--provider with one of" in (caught.value.hint or "")
    with pytest.raises(Refused, match="machines of your own"):
        text(kind, replace(asked, plan=replace(asked.plan, own=True)))
    with pytest.raises(Refused, match="slices of TPU-v5p"):
        text(kind, asking.example("jax-tpu"))
    served = asking.example("serve-chat")
    assert served.serving is not None
    pool = replace(served.serving.pools[0], replicas=2)
    with pytest.raises(Refused, match="2 replicas onto a machine"):
        text(kind, replace(served, serving=replace(served.serving, pools=(pool,))))


def test_checkpoints_go_to_the_bucket_though_the_folder_brings_some(tmp_path: Path) -> None:
    asked = asking.example("pretrain-1.3b")
    assert asked.plan is not None
    spot = replace(asked, plan=replace(asked.plan, markets=("spot",)))
    (link,) = [each for each in read("skypilot", spot)["setup"].splitlines() if "ln -s" in each]
    (tmp_path / "work/checkpoints").mkdir(parents=True)
    (tmp_path / "checkpoints").mkdir()
    for _ in ("at first", "again"):
        subprocess.run(
            ["/bin/bash", "-ec", link], cwd=tmp_path / "work", check=True,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        )  # fmt: skip
        assert (tmp_path / "work/checkpoints").resolve() == tmp_path / "checkpoints"


def test_dstack_is_told_how_much_may_be_paid() -> None:
    asked = asking.example("pretrain-1.3b")
    assert asked.plan is not None
    hour = max(asked.plan.price_hour.values()) / 1e6
    assert hour < read("dstack", asked)["max_price"] < 1.3 * hour
