"""What is installed and what is missing, without importing it; and GPUs, drivers, PyTorch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tradewind.model.finding import Finding
from tradewind.upkeep import gpus, parts

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def named(requirement: str) -> tuple[str, str]:
    """`transformers[torch]>=5,<6` → transformers, 5"""
    found = re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement)
    assert found
    return found[1], found[2]


def test_the_tables_are_the_project_s() -> None:
    ours = ("dev", "docs", "audit")
    extras = {k: v for k, v in PROJECT["optional-dependencies"].items() if k not in ours}
    assert {part.extra for part in parts.parts()} == set(extras)
    for part in parts.parts():
        [requirement] = extras[part.extra]
        assert named(requirement) == (part.packages[0], part.least)
    assert list(parts.BASE.values()) == [named(each)[0] for each in PROJECT["dependencies"]]


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing is installed but what Tradewind must have."""
    folder = tmp_path / "packages"
    folder.mkdir()
    more = ("markdown-it-py", "mdurl", "Pygments")  # which rich needs
    for package in (*parts.BASE.values(), *more):
        found = metadata.distribution(package)
        for top in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}:
            target = Path(str(found.locate_file(top)))
            if not (folder / top).exists():
                (folder / top).symlink_to(target)
    source = Path(parts.__file__).parent.parent.parent
    kept = {k: v for k, v in os.environ.items() if not k.endswith(("_KEY", "_TOKEN", "_NOW"))}
    own = {"PYTHONPATH": f"{folder}:{source}", "TRADEWIND_HOME": str(tmp_path / "home")}
    return kept | own | {"HOME": str(tmp_path), "COLUMNS": "200"}


def doctor(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    # -S: without the packages of the Python that runs the tests.
    command = [sys.executable, "-S", "-m", "tradewind", "doctor", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_nothing_optional_is_installed(bare: dict[str, str]) -> None:
    done = doctor(bare)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    for part in parts.parts():
        [line] = [each for each in lines if f" {part.packages[0]} is not installed" in each]
        assert line.startswith("missing  parts ")
        assert f"needed for {part.needed_for}: pip install 'tradewind[{part.extra}]'" in line
    assert re.search(r"^all is well; \d+ optional things are missing$", lines[-1])
    told = json.loads(doctor(bare, "parts", "--json").stdout)
    assert (told["missing"], told["warnings"], told["broken"]) == (len(parts.parts()), 0, 0)


def test_what_must_be_there_and_is_not(bare: dict[str, str]) -> None:
    (Path(bare["PYTHONPATH"].split(":")[0]) / "pathspec").unlink()
    done = doctor(bare, "parts")
    assert done.returncode == 1
    assert "pathspec not installed" in done.stdout
    assert "hint: pip install tradewind" in done.stderr


def levels(found: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.what) for finding in found]


def test_one_that_is_too_old(tmp_path: Path) -> None:
    had = {"torch": "2.4.1+cu121", "lightning": "2.5.0"}
    found = list(parts.part_checks(had.get))
    old = next(finding for finding in found if finding.level == "warning")
    assert old.what == "torch 2.4.1+cu121 is older than 2.11"
    assert old.todo == "pip install --upgrade 'tradewind[torch]'"
    assert "lightning 2.5.0" in found[0].what  # its other name will do
    assert parts.numbers("2.13.0+cpu") > parts.numbers("2.9.1")


def test_torchrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [finding] = parts.torchrun_checks(tmp_path)
    assert finding.level == "warning"
    (tmp_path / "torchrun").write_text("#!/bin/sh\n")
    (tmp_path / "torchrun").chmod(0o755)
    assert list(parts.torchrun_checks(tmp_path)) == []


def test_keys_of_price_sources() -> None:
    sources = {"aws": (), "lambda": ("LAMBDA_API_KEY",), "gcp": ("GOOGLE_API_KEY",)}
    [ok, missing] = parts.price_checks(sources, {"GOOGLE_API_KEY": "x"})
    assert ok.what == "2 of 3 sources can be asked"
    assert missing.todo == "export LAMBDA_API_KEY=…, then tradewind catalog refresh -p lambda"
    full = {"GOOGLE_API_KEY": "x", "LAMBDA_API_KEY": "x"}
    assert len(list(parts.price_checks(sources, full))) == 1


def test_who_we_would_be_to_a_bucket(tmp_path: Path) -> None:
    [finding] = parts.bucket_checks("file:///x", {}, tmp_path)
    assert finding.level == "missing"
    (tmp_path / ".azure").mkdir()
    [finding] = parts.bucket_checks("file:///x", {"AWS_PROFILE": "me"}, tmp_path)
    assert (finding.level, finding.measured) == ("ok", {"found": ["s3", "az"]})
    assert list(parts.bucket_checks("s3://x", {}, tmp_path)) == []


DRIVER = gpus.Driver("570.124.06", (12, 8), ("NVIDIA H100 80GB HBM3",) * 8)


@pytest.mark.parametrize(
    ("driver", "torch", "bus", "level", "todo"),
    [
        (None, None, 0, "missing", "tradewind plan"),
        (None, None, 2, "warning", "nvidia-smi"),
        (DRIVER, None, 8, "ok", ""),
        (DRIVER, gpus.Torch("2.13.0", (12, 9)), 8, "ok", ""),  # a newer minor version will do
        (DRIVER, gpus.Torch("2.13.0", (13, 0)), 8, "warning", "driver 580 or newer; or: pip"),
        (DRIVER, gpus.Torch("2.13.0+cpu", None), 8, "warning", "/whl/cu126"),
        (DRIVER._replace(cuda=(13, 1)), gpus.Torch("2.13.0+cpu", None), 8, "warning", "/whl/cu130"),
        (DRIVER._replace(cuda=(11, 4)), gpus.Torch("2.13.0", (12, 6)), 8, "warning", "525"),
        (DRIVER, gpus.Torch("2.13.0+rocm6.4", None, True), 8, "ok", ""),
    ],
)
def test_drivers(driver: Any, torch: Any, bus: int, level: str, todo: str) -> None:
    found = list(gpus.judged(driver, torch, bus))
    assert found[-1].level == level, levels(found)
    assert todo in found[-1].todo
    if driver:
        assert found[0].what.startswith("8 of NVIDIA (NVIDIA H100 80GB HBM3), driver 570")


def test_what_pytorch_was_built_for() -> None:
    text = "debug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
    assert gpus.read("2.13.0", text) == gpus.Torch("2.13.0", (13, 0))
    assert gpus.read("2.4", "cuda = '12.1'\nhip = None\n").cuda == (12, 1)
    rocm = "cuda: Optional[str] = None\nhip: Optional[str] = '6.4'\n"
    assert gpus.read("2.13.0+rocm6.4", rocm) == gpus.Torch("2.13.0+rocm6.4", None, True)
    real = gpus.torch()
    assert (real is None) == (parts.installed("torch") is None)


def test_gpus_without_a_driver_are_seen(tmp_path: Path) -> None:
    for name, vendor, kind in (
        ("0000:01:00.0", "0x10de", "0x030200"),
        ("0000:01:00.1", "0x10de", "0x040300"),  # its sound
        ("0000:02:00.0", "0x8086", "0x030000"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    assert gpus.on_the_bus(tmp_path) == 1
    assert gpus.on_the_bus(tmp_path / "none") == 0


def test_torch_is_not_imported() -> None:
    code = "from tradewind.upkeep import gpus, parts; list(parts.part_checks());"
    code += "list(gpus.gpu_checks()); import sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
