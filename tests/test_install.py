"""How the Makefile installs: pip's settings hold for uv; PyTorch brings no CUDA unasked."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import install  # type: ignore[import-not-found]  # noqa: E402

TORCH = next(
    line.partition("==")[2]
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line.startswith("torch==")
)


def test_what_pip_is_told_uv_is_told() -> None:
    listed = """\
:env:.default-timeout='180'
:env:.find-links='/opt/wheels /mnt/more wheels'
:env:.index-url='https://user:pass@mirror.example/simple'
global.cert='/etc/ssl/own.pem'
global.extra-index-url='file:///opt/a\\nfile:///opt/b'
global.find-links='/elsewhere'
global.index-url='https://pypi.org/simple'
install.proxy='http://proxy.example:3128'
"""
    told = install.uv_variables(install.pip_settings(listed))
    assert told["UV_DEFAULT_INDEX"] == "https://user:pass@mirror.example/simple"
    assert told["UV_INDEX"] == "file:///opt/a file:///opt/b"
    assert told["UV_FIND_LINKS"] == "/opt/wheels,/mnt/more,wheels"
    assert told["SSL_CERT_FILE"] == "/etc/ssl/own.pem"
    assert told["ALL_PROXY"] == "http://proxy.example:3128"
    assert told["UV_HTTP_TIMEOUT"] == "180"


def wheel(folder: Path, version: str) -> None:
    info = f"torch-{version}.dist-info"
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as packed:
        packed.writestr("torch.py", f"version = {version!r}\n")
        packed.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
        )
        packed.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: us\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        packed.writestr(
            f"{info}/RECORD", f"torch.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )


def installed(links: Path, into: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Only what is in `links` can be had."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(into.parent),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
        "HTTPS_PROXY": "http://127.0.0.1:9",
        **more,
    }
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "install.py", "-qq", "--target", into, "torch"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not install.wants_cpu_builds(), reason="the ordinary build is right here")
def test_pytorch_comes_without_cuda_or_not_at_all(tmp_path: Path) -> None:
    links, into = tmp_path / "links", tmp_path / "into"
    links.mkdir()
    wheel(links, TORCH)  # as on PyPI: with CUDA
    refused = installed(links, into)
    assert refused.returncode != 0
    assert not into.exists() or not (into / "torch.py").exists()
    assert "TORCH=any make" in refused.stdout

    assert installed(links, into, TORCH="any").returncode == 0
    assert TORCH in (into / "torch.py").read_text()

    wheel(links, f"{TORCH}+cpu")
    other = tmp_path / "other"
    assert installed(links, other).returncode == 0
    assert f"{TORCH}+cpu" in (other / "torch.py").read_text()


def test_without_uv_pip_does_it_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, int(command[-1] == "uv"), "", "")

    monkeypatch.setattr(install, "find_spec", lambda _: None)
    monkeypatch.setattr(install, "is_reachable", lambda _: False)
    monkeypatch.setattr(install.subprocess, "run", run)
    assert install.main(["-e", "."]) == 0
    assert ran[-1][:4] == [sys.executable, "-m", "pip", "install"]
    assert ran[-1][-2:] == ["-e", "."]
    assert "uv cannot be had" in capsys.readouterr().out
