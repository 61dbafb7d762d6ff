"""What holds for every kind: headers, settings, secrets, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.export import asking
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.export import header, making, registry
from tradewind.export.exported import Exported, File, Refused, Setting
from tradewind.model import Job


@pytest.mark.parametrize("kind", registry.KINDS)
@pytest.mark.parametrize("name", asking.NAMES)
def test_every_example_is_exported_or_refused_with_a_reason(kind: str, name: str) -> None:
    asked = asking.example(name)
    refused = None
    try:
        exported = making.made(kind, asked)
    except Refused as error:
        refused = error
    if refused is not None:
        assert refused.hint
        return
    assert exported.files
    for path, file in exported.files.items():
        assert file.text.endswith("\n"), path
        assert "\t \n" not in file.text
        assert not [line for line in file.text.splitlines() if line != line.rstrip()], path
        if not path.endswith((".json", ".lock")):
            for words in (asked.digest, asked.command, "2026-11-15"):
                assert words in file.text, path
    assert making.made(kind, asked) == exported  # the same again


SMALL = ("batch-inference", "big-model", "finetune-lora", "frameworks", "resnet", "tiny-gpt")
"""They are planned on a T4g, for which PyTorch has no kernels and some services no machines."""
NOT_ON_T4G = ("dockerfile", "terraform", "pulumi", "sagemaker")
NEVER = {
    "continue-70b-eu": ("compose", "script", "makefile"),  # several machines
    "jax-tpu": ("compose", "kubernetes", "terraform", "pulumi", "skypilot", "dstack", "sagemaker",
                "batch", "vertex", "azureml", "slurm"),
    "resnet50-imagenet": ("vertex", "azureml"),  # within its budget these clouds have nothing
    "serve-chat": ("sagemaker", "batch", "vertex", "azureml", "slurm"),
}  # fmt: skip


IN_A_CLUSTER = {"cluster": "research"}
NODES = {("terraform", registry.SERVICE), ("pulumi", registry.SERVICE)}
"""They have no machines for services, but nodes for their pods."""


@pytest.mark.parametrize("kind", registry.KINDS)
@pytest.mark.parametrize("name", asking.NAMES)
def test_which_examples_each_kind_is_made_from(kind: str, name: str) -> None:
    """Of the best plan at the kind's own cloud, or of the one that the refusal names."""
    if kind in NEVER.get(name, ()):
        with pytest.raises((Refused, NotFound)):
            making.made(kind, asking.suited(kind, name))
    elif kind in NOT_ON_T4G and name in SMALL:
        with pytest.raises(Refused) as caught:
            making.made(kind, asking.suited(kind, name))
        assert "--accelerator" in (caught.value.hint or "")
        assert making.made(kind, asking.at(name, "aws", "T4")).files
    else:
        asked = asking.suited(kind, name)
        served = asked.serving is not None and (kind, registry.SERVICE) in NODES
        assert making.made(kind, asked, IN_A_CLUSTER if served else {}).files


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_kind_takes_what_it_says(kind: str) -> None:
    takes = registry.kind(kind).TAKES
    training, service = asking.suited(kind, "pretrain-1.3b"), asking.suited(kind, "serve-chat")
    for asked, what in ((training, registry.TRAINING), (service, registry.SERVICE)):
        if what in takes:
            settings = IN_A_CLUSTER if (kind, what) in NODES else {}
            assert making.made(kind, asked, settings).files
        else:
            with pytest.raises(Refused):
                making.made(kind, asked)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_kind_has_a_page_and_a_line(kind: str) -> None:
    docs = asking.EXAMPLES.parent / "docs" / "export"
    page = (docs / f"{kind}.md").read_text()
    assert f"$ tradewind export {kind} " in page
    assert f"({kind}.md)" in (docs / "README.md").read_text()
    for each in registry.kind(kind).SETTINGS:
        assert f"`{each.name}`" in page, f"{kind} has a setting that its page does not tell of"
        assert each.choices or each.example
    assert registry.KINDS[kind].endswith(".")


@pytest.mark.parametrize("kind", registry.KINDS)
def test_work_without_a_command_is_refused(kind: str) -> None:
    if registry.TRAINING not in registry.kind(kind).TAKES:
        return
    asked = asking.suited(kind, "pretrain-1.3b")
    with pytest.raises(Refused, match=r"no run\.command"):
        making.made(kind, replace(asked, workload=replace(asked.workload, run=None)))


@pytest.mark.parametrize("kind", registry.KINDS)
def test_secrets_are_named_and_never_written(kind: str) -> None:
    """Only the variable's name is there, and where its value is."""
    if registry.TRAINING not in registry.kind(kind).TAKES:
        return
    asked = asking.suited(kind, "pretrain-1.3b")
    job = Job(
        command="python train.py", secrets={"HF_TOKEN": asking.SECRETS[asking.AT.get(kind, "")]}
    )
    asked = replace(asked, workload=replace(asked.workload, run=job))
    texts = [file.text for file in making.made(kind, asked).files.values()]
    assert any("HF_TOKEN" in text for text in texts)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_what_looks_like_a_secret_is_not_written(kind: str) -> None:
    if registry.TRAINING not in registry.kind(kind).TAKES:
        return
    token = "hf_" + "a1B2" * 10
    asked = asking.suited(kind, "pretrain-1.3b")
    job = asked.job
    assert job is not None
    object.__setattr__(job := replace(job), "env", {"A": token})  # as no workload can have it
    work = replace(asked.workload, run=None)
    object.__setattr__(work, "run", job)
    with pytest.raises(Refused, match="Hugging Face token"):
        making.made(kind, replace(asked, workload=work))
    fine = Job(command="python train.py", env={"SAMPLE": token}, not_secret=("SAMPLE",))
    asked = replace(asked, workload=replace(asked.workload, run=fine))
    assert making.made(kind, asked).files


def test_a_header_leaves_the_first_line_where_it_must_be() -> None:
    asked = asking.example("pretrain-1.3b")
    text = header.over("run.sh", "#!/bin/sh\necho\n", asked)
    assert text.startswith("#!/bin/sh\n# pretrain-1.3b: plan ")
    assert text.endswith("\n\necho\n")
    assert header.over("a.json", "{}\n", asked) == "{}\n"
    assert header.over("README.md", "# A\n", asked).startswith("<!-- pretrain-1.3b: plan ")


def test_the_header_names_prices_and_machines() -> None:
    asked = asking.example("pretrain-1.3b")
    assert asked.plan is not None
    words = "\n".join(header.words(asked))
    assert asked.plan.instance_type in words
    assert asked.plan.price_as_of in words
    assert "on demand" in words


def test_a_plan_has_the_same_digest_whenever_it_was_made() -> None:
    asked = asking.example("pretrain-1.3b")
    assert asked.plan is not None
    assert replace(asked, command="another").digest == asked.digest
    assert replace(asked, plan=replace(asked.plan, nodes=2)).digest != asked.digest


def test_settings_are_checked() -> None:
    settings = (Setting("labels", "w", ("plain", "gke")), Setting("tag", "w", example="a"))
    assert making.chosen("k", settings, {}) == {"labels": "plain", "tag": ""}
    assert making.chosen("k", settings, {"labels": "gke"})["labels"] == "gke"
    with pytest.raises(InvalidValue, match="none of its choices"):
        making.chosen("k", settings, {"labels": "x"})
    with pytest.raises(InvalidValue, match="no setting 'label'"):
        making.chosen("k", settings, {"label": "x"})


def test_a_kind_that_is_not_there_is_named() -> None:
    with pytest.raises(NotFound) as caught:
        registry.kind("scrypt")
    assert "did you mean script?" in (caught.value.hint or "")


def test_paths_stay_below_the_folder() -> None:
    for path in ("../a", "/a", "a/../../b"):
        with pytest.raises(AssertionError):
            Exported({path: File("")})
