"""Dockerfiles: for the right accelerator, and without a finding of hadolint's."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.export import asking
from tradewind import catalog as catalogs
from tradewind.export import images, making, setups
from tradewind.export.exported import Refused
from tradewind.model import Job

HADOLINT = Path(sys.executable).parent / "hadolint"
KNOWN = images.table()
CHIPS = catalogs.load(account=False, now=asking.DAY).accelerators


def dockerfile(name: str, **settings: str) -> str:
    return making.made("dockerfile", asking.example(name), settings).files["Dockerfile"].text


def linted(text: str, tmp_path: Path) -> str:
    (tmp_path / "Dockerfile").write_text(text)
    done = subprocess.run(
        [HADOLINT, "--no-color", tmp_path / "Dockerfile"], capture_output=True, text=True
    )
    return done.stdout + done.stderr


def test_hadolint_finds_what_is_wrong(tmp_path: Path) -> None:
    assert "DL3007" in linted("FROM ubuntu:latest\n", tmp_path)


@pytest.mark.parametrize("build", ["auto", *KNOWN.builds])
@pytest.mark.parametrize("name", ["pretrain-1.3b", "finetune-lora", "jax-tpu", "serve-chat"])
def test_hadolint_finds_nothing(name: str, build: str, tmp_path: Path) -> None:
    try:
        text = dockerfile(name, build=build)
    except Refused:
        return
    assert linted(text, tmp_path) == ""


@pytest.mark.parametrize(
    ("chip", "build"),
    [
        ("H100-SXM", "cu130"), ("L40S", "cu130"), ("T4", "cu130"), ("B300", "cu130"),
        ("RTX5090", "cu130"), ("GH200", "cu130"), ("V100-16GB", "cu126"), ("P100", "cu126"),
        ("P40", "cu126"), ("M60", "cu126"), ("MI300X", "rocm7.2"), ("MI355X", "rocm7.2"),
        ("Trainium1", "neuron"), ("TPU-v5p", "tpu"), ("T4g", None), ("K80", None),
        ("Gaudi2", None),
    ],
)  # fmt: skip
def test_a_build_has_kernels_for_its_accelerator(chip: str, build: str | None) -> None:
    if build is None:
        with pytest.raises(Refused, match="no build"):
            images.chosen(KNOWN, CHIPS[chip])
    else:
        assert images.chosen(KNOWN, CHIPS[chip])[0] == build


def test_machines_with_arm_processors_get_images_for_them() -> None:
    assert images.platform(KNOWN, CHIPS["GH200"]) == "linux/arm64"
    assert images.platform(KNOWN, CHIPS["H100-SXM"]) == "linux/amd64"
    assert set(KNOWN.arm64) <= set(CHIPS)


def test_bases_are_pinned_and_the_table_is_dated() -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", KNOWN.as_of)
    for name, build in KNOWN.builds.items():
        assert name == "neuron" or re.search(r"@sha256:[0-9a-f]{64}$", build.base), name
        assert bool(build.cuda) == bool(build.driver)
    assert KNOWN.sources


def test_a_younger_table_of_ones_own_serves(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    text = images.PACKAGED.read_text()
    (tmp_path / images.OWN).write_text(text.replace(KNOWN.as_of, "2099-01-01"))
    assert images.table().as_of == "2099-01-01"
    (tmp_path / images.OWN).write_text(text.replace(KNOWN.as_of, "2020-01-01"))
    images._read.cache_clear()
    assert images.table().as_of == KNOWN.as_of


def test_requirements_are_taken_by_their_hashes_where_they_are_locked() -> None:
    asked = asking.example("finetune-lora")
    settings = {"build": "cpu"}
    text = making.made("dockerfile", asked, settings).files["Dockerfile"].text
    assert "pip install -r requirements.txt" in text
    assert "--mount=type=bind,source=requirements.txt,target=/build" in text
    locked = replace(asked, files={**asked.files, "requirements.lock": "a==1 --hash=sha256:0\n"})
    text = making.made("dockerfile", locked, settings).files["Dockerfile"].text
    assert "pip install --no-deps --require-hashes -r requirements.lock" in text
    assert "-r requirements.txt" not in text


def test_the_image_starts_the_job_with_what_is_left_of_its_setup() -> None:
    text = dockerfile("pretrain-1.3b")
    assert (
        'CMD ["/bin/sh", "-c", "python fetch_tokenizer.py && exec torchrun --nproc-per-node=8'
        ' --standalone train.py"]' in text
    )
    assert "USER 10001:10001" in text
    assert text.count("FROM ${BASE}") == 2


def test_several_machines_are_told_apart_by_who_starts_them() -> None:
    text = dockerfile("continue-70b-eu")
    assert '--nnodes=2 --node-rank=\\"$NODE_RANK\\" --master-addr=\\"$MASTER_ADDR\\"' in text


def test_a_script_that_imports_us_gets_us() -> None:
    assert "ARG TRADEWIND=" in dockerfile("tiny-gpt", build="cpu")
    assert "ARG TRADEWIND=" not in dockerfile("pretrain-1.3b")


def test_values_are_not_filled_in() -> None:
    asked = asking.example("pretrain-1.3b")
    job = Job(command="python a.py", env={"A": 'b "$HOME" \\ c', "B": ""})
    asked = replace(asked, workload=replace(asked.workload, run=job))
    text = making.made("dockerfile", asked).files["Dockerfile"].text
    assert r'A="b \"\$HOME\" \\ c"' in text
    assert 'B=""' in text


@pytest.mark.parametrize(
    ("setup", "installs", "rest"),
    [
        ("pip install -r requirements.txt", ("-r requirements.txt",), ()),
        ("python -m pip install --quiet 'jax[tpu]'", ("'jax[tpu]'",), ()),
        ("pip install a\npython b.py", ("a",), ("python b.py",)),
        ("pip install a && rm b", (), ("pip install a && rm b",)),
        ("pip install $(cat c)", (), ("pip install $(cat c)",)),
        ("apt-get install \\\n  a\npip install b", (), ("apt-get install \\\n  a\npip install b",)),
        (None, (), ()),
    ],
)
def test_what_of_a_setup_an_image_can_hold(
    setup: str | None, installs: tuple[str, ...], rest: tuple[str, ...]
) -> None:
    assert setups.parted(setup) == (installs, rest)


def test_weights_are_named() -> None:
    asked = asking.example("serve-chat")
    assert "meta-llama/Llama-3.1-8B-Instruct" in dockerfile("serve-chat")
    assert '"my/own"' in dockerfile("serve-chat", model="my/own")
    assert asked.workload.serve is not None
    unknown = replace(asked.workload.serve, model="gpt3-1.3b")
    with pytest.raises(Refused, match="shape of a model"):
        making.made("dockerfile", replace(asked, workload=replace(asked.workload, serve=unknown)))
