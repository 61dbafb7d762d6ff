"""An exported Dockerfile, built by a real buildah, run, and pushed to a real registry."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.export import base_image
from tradewind.cli.app import run

pytestmark = [pytest.mark.system, pytest.mark.long]

SCRIPT = """\
import os, sys
print("user", os.getuid(), "python", sys.prefix, "greeting", os.environ["GREETING"])
print("sent", sorted(os.listdir(".")), os.listdir("checkpoints"))
open("checkpoints/1", "w").write("here")
"""
WORK = """\
name: hello
work: {on: 1xL4, hours: 1, memory: 4GB}
limits: {deadline: 24h}
run:
  setup: |
    pip install --no-index -r requirements.txt
    echo prepared
  command: python train.py
  env: {GREETING: 'a "b" $HOME'}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "work.yaml").write_text(WORK)
    (folder / "requirements.txt").write_text("\n")
    (folder / ".env").write_text("TOKEN=x\n")
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "old").write_text("x")
    return folder


@contextmanager
def registry(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    config = tmp_path / "registry.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
    )
    done = subprocess.Popen(["docker-registry", "serve", str(config)], stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _listens(port))
        yield f"127.0.0.1:{port}"
    finally:
        done.terminate()
        done.wait()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def test_an_image_is_built_run_and_pushed(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = tmp_path / "storage"
    storage.mkdir()
    env = base_image.environment(storage)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00")
    base = base_image.make(storage, env)
    out = tmp_path / "image"
    export = ["export", "dockerfile", str(job / "work.yaml"), "--out", str(out)]
    assert run([*export, "--set", "build=tpu"]) == 0  # the job brings what it needs
    build = [
        "image", "build", str(job), "--file", str(out / "Dockerfile"), "--json",
        "--tool", "buildah",
        "--build-arg", f"BASE={base}", "--build-arg", f"PYTHON={base_image.PYTHON}",
    ]  # fmt: skip
    capsys.readouterr()
    assert run(build) == 0
    built = json.loads(capsys.readouterr().out)
    assert built["fresh"]
    assert built["size_bytes"] > 10**7

    # The same again is there already; another script makes another image.
    assert run(build) == 0
    assert json.loads(capsys.readouterr().out)["fresh"] is False
    (job / ".env").write_text("TOKEN=y\n")  # is not sent
    assert run(build) == 0
    assert json.loads(capsys.readouterr().out)["image"] == built["image"]

    # What the image would start, as its user.
    shown = json.loads(
        subprocess.run(
            ["buildah", "inspect", "--type", "image", built["image"]],
            env=env, check=True, capture_output=True, text=True,
        ).stdout
    )["Docker"]["config"]  # fmt: skip
    assert shown["User"] == "10001:10001"
    made = _out(env, "buildah", "from", built["image"])
    said = _out(env, "buildah", "run", made, "--", *shown["Cmd"])
    assert "prepared" in said
    assert "user 10001 python /opt/venv" in said
    assert 'greeting a "b" $HOME' in said
    assert "['checkpoints', 'requirements.txt', 'train.py', 'work.yaml'] []" in said

    with registry(tmp_path) as host:
        assert run(["image", "push", built["image"], f"{host}/hello:1", "--insecure",
                    "--tool", "buildah"]) == 0  # fmt: skip
        reference = capsys.readouterr().out.strip()
        assert reference.startswith(f"{host}/hello@sha256:")
        _out(env, "buildah", "pull", "--tls-verify=false", reference)


def _out(env: dict[str, str], *words: str) -> str:
    return subprocess.run(
        words, env=env, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
