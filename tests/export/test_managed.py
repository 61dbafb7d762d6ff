"""Job descriptions of managed services, by the vendors' own models of their APIs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import googleapiclient  # type: ignore[import-untyped]
import pytest
import yaml
from botocore.validate import ParamValidator

from tests.export import asking
from tradewind.export import making
from tradewind.export.asked import Asked
from tradewind.export.exported import Refused
from tradewind.export.kinds import sagemaker, vertex
from tradewind.model import Job

AWS = {
    "training-job.yaml": ("sagemaker", "CreateTrainingJob"),
    "compute-environment.yaml": ("batch", "CreateComputeEnvironment"),
    "job-queue.yaml": ("batch", "CreateJobQueue"),
    "job-definition.yaml": ("batch", "RegisterJobDefinition"),
}
CASES = [
    ("pretrain-1.3b", ()), ("continue-70b-eu", ()), ("tiny-gpt", ("T4",)), ("resnet", ("T4",)),
    ("resnet50-imagenet", ()),
]  # fmt: skip
"""Examples, and accelerators that they are planned with at AWS."""


def files(kind: str, asked: Asked, **settings: str) -> dict[str, Any]:
    made = making.made(kind, asked, settings).files
    return {path: yaml.safe_load(file.text) for path, file in made.items()}


def with_job(asked: Asked, **fields: Any) -> Asked:
    return replace(asked, workload=replace(asked.workload, run=Job(**fields)))


# -- Amazon's models ------------------------------------------------------------------------------


def faults(path: str, value: Any) -> list[str]:
    service, operation = AWS[path]
    shape = _model(service).operation_model(operation).input_shape
    report = ParamValidator().validate(value, shape)
    return [*report.generate_report().splitlines(), *_beyond(shape, value, operation)]


@cache
def _model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def _beyond(shape: Any, value: Any, where: str) -> Iterator[str]:
    """What botocore leaves to the service: choices, patterns, lengths; and unknown members."""
    if shape.type_name == "structure":
        for name, each in value.items():
            if name not in shape.members:
                yield f"{where}.{name}: no such member"
            else:
                yield from _beyond(shape.members[name], each, f"{where}.{name}")
    elif shape.type_name == "list":
        for each in value:
            yield from _beyond(shape.member, each, where)
        if len(value) > shape.metadata.get("max", len(value)):
            yield f"{where}: too many"
    elif shape.type_name == "map":
        for each in value.values():
            yield from _beyond(shape.value, each, where)
    elif shape.type_name == "string":
        if (found := getattr(shape, "enum", None)) and value not in found:
            yield f"{where}: {value} is none of its choices"
        pattern = shape.metadata.get("pattern")
        if pattern and not re.fullmatch(pattern, value):
            yield f"{where}: {value} is not as {pattern}"
        if len(value) > shape.metadata.get("max", len(value)):
            yield f"{where}: too long"
    elif shape.type_name == "integer" and value > shape.metadata.get("max", value):
        yield f"{where}: too large"


@pytest.mark.parametrize("kind", ["sagemaker", "batch"])
@pytest.mark.parametrize(("name", "chips"), CASES)
def test_amazons_models_take_each(kind: str, name: str, chips: tuple[str, ...]) -> None:
    asked = asking.at(name, "aws", *chips)
    for path, value in files(kind, asked).items():
        assert faults(path, value) == [], path


def test_that_check_finds_faults() -> None:
    made = files("sagemaker", asking.at("pretrain-1.3b", "aws"))["training-job.yaml"]
    path = "training-job.yaml"
    assert faults(path, {**made, "Role": "x"})
    assert faults(path, {**made, "EnableManagedSpotTraining": "yes"})
    assert faults(path, {**made, "TrainingJobName": "a_b"})
    assert faults(path, {name: each for name, each in made.items() if name != "RoleArn"})
    wrong = {**made["ResourceConfig"], "InstanceType": "ml.none"}
    assert faults(path, {**made, "ResourceConfig": wrong})


def test_all_families_that_we_count_on_are_sagemakers() -> None:
    shape = _model("sagemaker").operation_model("CreateTrainingJob").input_shape
    known = shape.members["ResourceConfig"].members["InstanceType"].enum
    families = {each.split(".")[1] for each in known}
    assert set(sagemaker._FAMILIES) <= families


def test_a_training_job_is_as_planned() -> None:
    asked = asking.at("tiny-gpt", "aws", "T4")
    assert asked.plan is not None
    made = files("sagemaker", asked, bucket="s3://b/", role="arn:aws:iam::123456789012:role/a")
    made = made["training-job.yaml"]
    assert made["ResourceConfig"]["InstanceType"] == f"ml.{asked.plan.instance_type}"
    assert made["EnableManagedSpotTraining"] is True
    stop = made["StoppingCondition"]
    assert stop["MaxWaitTimeInSeconds"] >= stop["MaxRuntimeInSeconds"] > asked.plan.hours * 3600
    assert made["CheckpointConfig"]["S3Uri"] == "s3://b/tiny-gpt/checkpoints"
    several = files("sagemaker", asking.at("continue-70b-eu", "aws"))["training-job.yaml"]
    assert several["ResourceConfig"]["InstanceCount"] == 2


def test_spot_for_several_machines_is_refused_where_there_is_none() -> None:
    asked = asking.at("continue-70b-eu", "aws")
    assert asked.plan is not None
    asked = replace(asked, plan=replace(asked.plan, markets=("spot",)))
    assert files("sagemaker", asked)
    with pytest.raises(Refused, match="no spot machines for jobs of several") as caught:
        files("batch", asked)
    assert "--market on_demand" in (caught.value.hint or "")


def test_several_machines_of_batch_have_a_definition_of_nodes() -> None:
    made = files("batch", asking.at("continue-70b-eu", "aws"), filesystem="fs-0123456789abcdef0")
    nodes = made["job-definition.yaml"]["nodeProperties"]
    assert nodes["numNodes"] == 2
    container = nodes["nodeRangeProperties"][0]["container"]
    assert container["mountPoints"][0]["containerPath"] == "/job/checkpoints"
    assert "$AWS_BATCH_JOB_NODE_INDEX" in container["command"][-1]
    assert faults("job-definition.yaml", made["job-definition.yaml"]) == []


# -- Google's -------------------------------------------------------------------------------------


@cache
def _schemas() -> dict[str, Any]:
    folder = Path(googleapiclient.__file__).parent / "discovery_cache/documents"
    found: dict[str, Any] = json.loads((folder / "aiplatform.v1.json").read_text())["schemas"]
    return found


def google_faults(value: Any, schema: dict[str, Any], where: str = "job") -> Iterator[str]:
    """By the description of its API: members, kinds and choices."""
    if "$ref" in schema:
        schema = _schemas()[schema["$ref"]]
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "boolean": bool,
    }
    whole = schema["type"] == "string" and schema.get("format") in ("int64", "uint64")
    wanted: Any = int if whole else kinds[schema["type"]]
    if not isinstance(value, wanted):
        yield f"{where}: is no {schema['type']}"
    elif schema["type"] == "object":
        for name, each in value.items():
            if name not in schema.get("properties", {}):
                yield f"{where}.{name}: no such member"
            else:
                yield from google_faults(each, schema["properties"][name], f"{where}.{name}")
    elif schema["type"] == "array":
        for each in value:
            yield from google_faults(each, schema["items"], where)
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value} is none of its choices"


SPEC = {"$ref": "GoogleCloudAiplatformV1CustomJobSpec"}


@pytest.mark.parametrize("name", ["pretrain-1.3b", "continue-70b-eu", "lora-8b-overnight"])
def test_googles_description_takes_each(name: str) -> None:
    made = files("vertex", asking.at(name, "gcp"), account="a@b.iam.gserviceaccount.com")
    made = made["custom-job.yaml"]
    assert list(google_faults(made, SPEC)) == []
    assert list(google_faults({**made, "Scheduling": {}}, SPEC))
    made["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] = "T4"
    assert list(google_faults(made, SPEC))


def test_all_accelerators_that_we_count_on_are_googles() -> None:
    known = _schemas()["GoogleCloudAiplatformV1MachineSpec"]["properties"]["acceleratorType"]
    assert set(vertex._CHIPS.values()) <= set(known["enum"])


# -- Microsoft's ----------------------------------------------------------------------------------

FETCHED = Path(__file__).parents[2] / "build/azureml"
SDK = """
import json, logging, sys
logging.disable(logging.WARNING)
from azure.ai.ml import load_compute, load_job
found = {}
for name, path in json.load(sys.stdin).items():
    try:
        read = load_job(path) if name.endswith("job.yaml") else load_compute(path)
        told = read._to_rest_object()
        found[name] = told.as_dict() if hasattr(told, "as_dict") else dict(told)
        if name.endswith("job.yaml"):
            found[name]["command"] = read.component.command
    except Exception as error:
        found[name] = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(found, default=str))
"""


def microsofts(texts: dict[str, str], folder: Path) -> dict[str, Any]:
    """What its SDK makes of each, as it would be sent."""
    assert FETCHED.is_dir(), f"{FETCHED} is not there; run `make test-system`"
    for name, each in texts.items():
        (folder / name).write_text(each)
    done = subprocess.run(
        [sys.executable, "-c", SDK],
        input=json.dumps({name: str(folder / name) for name in texts}),
        env={
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(FETCHED),
            "AZURE_EXTENSION_DIR": str(folder),
        },
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.system
def test_microsofts_models_take_each(tmp_path: Path) -> None:
    texts, plans = {}, {}
    for name in ("pretrain-1.3b", "continue-70b-eu", "tiny-gpt", "lora-8b-overnight"):
        asked = asking.suited("azureml", name)
        if name == "pretrain-1.3b":
            asked = with_job(asked, command="python a.py", secrets={"HF_TOKEN": "file:~/a"})
        for path, file in making.made("azureml", asked).files.items():
            texts[f"{name}-{path}"] = file.text
        plans[name] = asked.plan
    wrong = {
        "unknown-job.yaml": texts["tiny-gpt-job.yaml"] + "surely_not: 1\n",
        "kind-job.yaml": texts["tiny-gpt-job.yaml"].replace("instance_count: 1", "count: 1"),
        "unknown-compute.yaml": texts["tiny-gpt-compute.yaml"] + "surely_not: 1\n",
        "tier-compute.yaml": texts["tiny-gpt-compute.yaml"].replace("low_priority", "cheap"),
    }
    found = microsofts(texts | wrong, tmp_path)
    for name in wrong:
        assert "error" in found.pop(name), name
    for name, plan in plans.items():
        assert plan is not None
        job, cluster = found[f"{name}-job.yaml"], found[f"{name}-compute.yaml"]
        assert "error" not in {*job, *cluster}, (job, cluster)
        assert job["resources"]["instance_count"] == plan.nodes
        assert job["outputs"]["checkpoints"]["mode"] == "ReadWriteMount"
        assert ("distribution" in job) is (plan.nodes > 1)
        assert job["computeId"].endswith(yaml.safe_load(texts[f"{name}-compute.yaml"])["name"])
        has = cluster["properties"]["properties"]
        assert has["vmSize"] == plan.instance_type
        assert has["vmPriority"] == ("LowPriority" if "spot" in plan.markets else "Dedicated")
        assert has["scaleSettings"]["maxNodeCount"] == plan.nodes
    assert found["pretrain-1.3b-job.yaml"]["identity"]["identity_type"] == "Managed"


# -- what is said to be run -----------------------------------------------------------------------


def told(made: dict[str, Any]) -> str:
    """The script that SageMaker's container is begun with, as it is."""
    said = made["AlgorithmSpecification"]
    *shell, read, name = said["ContainerEntrypoint"]
    read = read.replace("eval", "printf %s")
    done = subprocess.run(
        [*shell, read, name, *said["ContainerArguments"]], capture_output=True, text=True
    )
    return done.stdout


def ran(script: str, tmp_path: Path, **variables: str) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_machines_of_a_training_job_meet_at_the_first(tmp_path: Path) -> None:
    asked = with_job(asking.at("continue-70b-eu", "aws"), command="torchrun train.py")
    made = files("sagemaker", asked)["training-job.yaml"]
    script = told(made)
    (tmp_path / "c.json").write_text(
        json.dumps({"current_host": "algo-2", "hosts": ["algo-1", "algo-3", "algo-2"]})
    )
    script = script.replace("/opt/ml/input/config/resourceconfig.json", f"{tmp_path}/c.json")
    said = ran(script.replace("exec torchrun", "echo"), tmp_path)
    assert "--node-rank=1 --master-addr=algo-1" in said


def test_machines_of_a_custom_job_meet_at_the_first(tmp_path: Path) -> None:
    asked = with_job(asking.at("continue-70b-eu", "gcp"), command="torchrun train.py")
    made = files("vertex", asked, bucket="gs://b")["custom-job.yaml"]
    assert [each["replicaCount"] for each in made["workerPoolSpecs"]] == [1, 3]
    (script,) = made["workerPoolSpecs"][1]["containerSpec"]["args"]
    cluster = {
        "cluster": {"workerpool0": ["one:2222"], "workerpool1": ["two:2222", "three:2222"]},
        "task": {"type": "workerpool1", "index": 1},
    }
    script = script.replace("/gcs", str(tmp_path / "gcs")).replace("/job/", f"{tmp_path}/")
    said = ran(script.replace("exec torchrun", "echo"), tmp_path, CLUSTER_SPEC=json.dumps(cluster))
    assert "--node-rank=2 --master-addr=one" in said
    assert (tmp_path / "checkpoints").resolve() == tmp_path / "gcs/b/continue-70b-eu/checkpoints"


def test_machines_of_a_command_job_meet_at_the_first_and_keep_checkpoints(tmp_path: Path) -> None:
    asked = asking.at("continue-70b-eu", "azure")
    asked = with_job(asked, command="torchrun train.py", secrets={"HF_TOKEN": "aws-ssm:/a/hf"})
    made = making.made("azureml", asked, {"vault": "acme"})
    assert any("HF-TOKEN (aws-ssm:/a/hf)" in note for note in made.notes)
    script = yaml.safe_load(made.files["job.yaml"].text)["command"]
    kept = tmp_path / "mounted"
    kept.mkdir()
    (tmp_path / "checkpoints").mkdir()
    script = script.replace("${{outputs.checkpoints}}", str(kept)).replace("/job", str(tmp_path))
    (tmp_path / "python3").write_text('#!/bin/sh\necho "$3/$4"\n')
    (tmp_path / "python3").chmod(0o755)
    said = ran(
        script.replace("exec torchrun", "echo $HF_TOKEN"), tmp_path, NODE_RANK="2",
        MASTER_ADDR="10.0.0.4", MASTER_PORT="6105", PATH=f"{tmp_path}:{os.environ['PATH']}",
    )  # fmt: skip
    assert said.startswith("acme/HF-TOKEN ")
    assert "--node-rank=2 --master-addr=10.0.0.4 --master-port=6105" in said
    assert (tmp_path / "checkpoints").resolve() == kept


def test_a_container_is_replaced_by_its_command() -> None:
    """So that it gets SIGTERM, where it is told that its machine is taken."""
    asked = with_job(
        asking.at("pretrain-1.3b", "aws"), command="python a.py", setup="pip install x"
    )
    made = files("sagemaker", asked)["training-job.yaml"]
    assert told(made) == "set -e\nexec python a.py"
    asked = with_job(
        asking.at("pretrain-1.3b", "aws"), command="python a.py", setup="pip install x", image="i"
    )
    made = files("batch", asked)["job-definition.yaml"]["containerProperties"]
    assert made["command"][-1] == "set -e\npip install x\nexec python a.py"
    assert made["image"] == "i"


# -- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sagemaker", "batch", "vertex", "azureml"])
def test_another_clouds_plan_is_refused(kind: str) -> None:
    with pytest.raises(Refused, match=r"for runpod, and .* has machines of") as caught:
        files(kind, asking.example("pretrain-1.3b"))
    assert "--provider " in (caught.value.hint or "")
    asked = asking.suited(kind, "pretrain-1.3b")
    assert asked.plan is not None
    with pytest.raises(Refused, match="reserved"):
        files(kind, replace(asked, plan=replace(asked.plan, markets=("reserved",))))
    if kind == "azureml":  # its secrets are in a vault of its own
        return
    job = {"command": "a", "secrets": {"A": "file:~/a"}}
    with pytest.raises(Refused, match="cannot read A"):
        files(kind, with_job(asked, **job))


@pytest.mark.parametrize("kind", ["sagemaker", "vertex"])
def test_what_would_outlast_the_service_is_refused(kind: str) -> None:
    asked = asking.suited(kind, "pretrain-1.3b")
    assert asked.plan is not None
    with pytest.raises(Refused, match="28 days"):
        files(kind, replace(asked, plan=replace(asked.plan, hours_high=1000.0)))


def test_what_a_cluster_would_end_is_refused() -> None:
    asked = asking.suited("azureml", "pretrain-1.3b")
    assert asked.plan is not None
    for market, days, hint in (("spot", 7, "--market on_demand"), ("on_demand", 21, "deadline")):
        plan = replace(asked.plan, hours_high=(days - 1) * 16.0, markets=(market,))
        assert files("azureml", replace(asked, plan=plan))
        plan = replace(plan, hours_high=days * 16.0 + 1)
        with pytest.raises(Refused, match=f"{days} days") as caught:
            files("azureml", replace(asked, plan=plan))
        assert hint in (caught.value.hint or "")


def test_what_the_service_would_fill_in_is_refused() -> None:
    asked = asking.suited("azureml", "pretrain-1.3b")
    with pytest.raises(Refused, match="fills in"):
        files("azureml", with_job(asked, command="python a.py --template '${{x}}'"))


def test_lines_that_are_too_long_are_refused() -> None:
    asked = asking.at("pretrain-1.3b", "aws")
    with pytest.raises(Refused, match="256 characters") as caught:
        files("sagemaker", with_job(asked, command="python a.py " + "x" * 300))
    assert "a script in the job's folder" in (caught.value.hint or "")


def test_machines_that_a_service_has_not_are_refused() -> None:
    with pytest.raises(Refused, match=r"SageMaker has no g5g\.xlarge"):
        files("sagemaker", asking.example("tiny-gpt"))
    with pytest.raises(Refused, match="Vertex AI has no name for TPU-v5p"):
        files("vertex", asking.example("jax-tpu"))
    with pytest.raises(Refused, match=r"clusters of Azure ML have no Standard_ND96isr_MI300X_v5"):
        files("azureml", asking.at("pretrain-1.3b", "azure"))
