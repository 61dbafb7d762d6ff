"""From a machine that has only Python to a job that was run, without any network."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import platform
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.supervisor.machines import MachineUnderTest, Run
from tradewind.base.errors import NotFound
from tradewind.store.memory import MemoryStore
from tradewind.supervisor import bootstrap, keeper, kit

pytestmark = pytest.mark.slow

BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PIP_NO_INPUT": "1"}


@pytest.fixture(scope="module")
def made() -> bytes:
    return kit.build("file:///somewhere")


def machine_with(tmp_path: Path, **boot: str) -> MachineUnderTest:
    python = f"{base_python()} -c 'import tradewind.model.run as m; print(m.__file__)'"
    command = f'echo hello; ls "$PYTHONPATH"; {python}; true'
    machine = Run(tmp_path, command=command).machine()
    given = replace(machine.boot, **boot)
    (machine.folder / "boot.json").write_bytes(json.encode(given))
    return machine


def boots(machine: MachineUnderTest, python: str = sys.executable) -> subprocess.Popen[str]:
    """With a base interpreter: none of ours is to be found by accident."""
    return subprocess.Popen(
        [python, "-I", bootstrap.__file__, str(machine.folder / "boot.json")],
        env=BARE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def base_python() -> str:
    """The one that this virtual environment was made with, which has no Tradewind."""
    return str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")


@pytest.mark.parametrize("file", [bootstrap.__file__, keeper.__file__])
def test_one_file_with_the_standard_library_alone(file: str) -> None:
    for node in ast.walk(ast.parse(Path(file).read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            assert name.split(".")[0] in sys.stdlib_module_names


def test_the_same_environment_makes_the_same_kit(made: bytes) -> None:
    assert kit.build("file:///elsewhere") == made
    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        names = tar.getnames()
        assert [name.split("-")[0] for name in names] == ["msgspec", "nvidia_ml_py", "tradewind"]
        own = tar.extractfile(names[2])
        assert own is not None
        with zipfile.ZipFile(io.BytesIO(own.read())) as wheel:
            files = wheel.namelist()
    assert "tradewind/supervisor/__main__.py" in files
    assert not any("catalog/data" in name or name.endswith(".pyc") for name in files)
    assert kit.needed("s3://bucket/x") == ("msgspec", "nvidia-ml-py", "obstore")


def test_a_kit_is_published_once(made: bytes) -> None:
    store = MemoryStore()
    place = kit.publish(store, made)
    assert place == f"kits/{hashlib.sha256(made).hexdigest()}/kit.tar"
    assert kit.publish(store, made) == place
    assert store.get(place) == made


def test_what_is_not_installed_is_in_no_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "needed", lambda url: ("no-such-package",))
    with pytest.raises(NotFound, match="no-such-package"):
        kit.build("file:///x")


def finishes(machine: MachineUnderTest, booted: subprocess.Popen[str]) -> None:
    with booted:
        try:
            machine.does("finished")
            booted.terminate()
            out, _ = booted.communicate(timeout=60)
            assert booted.returncode == 0, out
        finally:
            booted.terminate()  # which it passes on, so that nothing is left behind
    lines = machine.log().splitlines()
    assert lines[:2] == ["hello", "tradewind"]  # and nothing else of ours is in the job's way
    assert "/for-job/tradewind/model/run.py" in lines[2]  # by a Python that does not have it


def test_a_bare_machine(tmp_path: Path, made: bytes) -> None:
    store_key = kit.key(made)
    machine = machine_with(tmp_path, kit=(tmp_path / "store" / store_key).as_uri())
    kit.publish(machine.run.calm, made)
    finishes(machine, boots(machine, base_python()))
    assert (machine.folder / "kit" / "_in_venv").is_dir()


@pytest.mark.parametrize("missing", [("venv",), ("venv", "pip")])
def test_a_machine_without_venv_or_pip(
    tmp_path: Path, made: bytes, missing: tuple[str, ...]
) -> None:
    """As on images that split them off; a script stands in for the interpreter that lacks them."""
    machine = machine_with(tmp_path, kit=f"{tmp_path}/kit.tar#sha256={_hash(made)}")
    (tmp_path / "kit.tar").write_bytes(made)
    python = tmp_path / "python3"
    lacks = "|".join(f'*"-m {name}"*' for name in missing)
    python.write_text(
        f'#!/bin/sh\ncase "$*" in {lacks}) echo "No such module" >&2; exit 1;; esac\n'
        f'exec {base_python()} "$@"\n'
    )
    python.chmod(0o755)
    script = (
        f"import sys, runpy; sys.executable = {str(python)!r}; "
        f"sys.argv = ['bootstrap.py', {str(machine.folder / 'boot.json')!r}]; "
        f"runpy.run_path({bootstrap.__file__!r}, run_name='__main__')"
    )
    booted = subprocess.Popen([base_python(), "-c", script], env=BARE, text=True)
    finishes(machine, booted)
    used = "_in_target" if missing == ("venv",) else "_in_unzipped"
    assert (machine.folder / "kit" / used).is_dir()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_an_interpreter_that_has_it_is_used_and_a_killed_supervisor_is_started_again(
    tmp_path: Path,
) -> None:
    from tests.supervisor.machines import lives, until

    machine = Run(tmp_path, command="echo pid=$PPID; exec sleep 1000").machine()
    given = replace(machine.boot, python=sys.executable)
    (machine.folder / "boot.json").write_bytes(json.encode(given))
    booted = subprocess.Popen(
        [base_python(), bootstrap.__file__, str(machine.folder / "boot.json")],
        env=BARE | {"PYTHONPATH": str(Path(kit.__file__).parents[2])},
    )
    try:
        machine.does("working")
        first = int(machine.said("pid=").split("pid=")[1].split()[0])
        (supervisor,) = (
            int(pid)
            for pid in Path(f"/proc/{booted.pid}/task/{booted.pid}/children").read_text().split()
        )
        os.kill(supervisor, 9)
        until(lambda: not lives(first), "its keeper")
        until(lambda: machine.spool().count("pid=") == 2, "the job is begun again")
        booted.terminate()
        assert booted.wait(60) == 0
        assert not machine.left()
    finally:
        booted.terminate()
        booted.wait()


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("{folder}/kit.tar", "nothing says what"),
        ("{folder}/kit.tar#sha256=" + "0" * 64, "not what it should be"),
        ("{folder}/none/" + "0" * 64 + "/kit.tar", "cannot be downloaded"),
        ("http://example.com/" + "0" * 64 + "/kit.tar", "cannot be downloaded by http"),
        ("", "names no kit"),
    ],
)
def test_a_kit_that_nobody_vouches_for_is_not_run(
    tmp_path: Path, made: bytes, named: str, words: str
) -> None:
    (tmp_path / "kit.tar").write_bytes(made)
    machine = machine_with(tmp_path, kit=named.format(folder=tmp_path))
    booted = boots(machine, base_python())
    out, _ = booted.communicate(timeout=60)
    assert booted.returncode == 1
    assert words in out


def test_a_supervisor_that_is_killed_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    monkeypatch.setattr(bootstrap, "_RESTARTS_S", (0, 0, 0))
    starts = tmp_path / "starts"
    try:
        with pytest.raises(bootstrap.Trouble, match=r"killed 4 times \(signal 9\)"):
            bootstrap._supervise(["/bin/sh", "-c", f"echo >> {starts}; kill -9 $$"])
        assert starts.read_text() == "\n" * 4
        # One that had lived for long does not count.
        monkeypatch.setattr(bootstrap, "_LIVED_S", 0)
        last = f"echo >> {starts}; [ $(wc -l < {starts}) -lt 12 ] || exit 5; kill -9 $$"
        assert bootstrap._supervise(["/bin/sh", "-c", last]) == 5
    finally:
        for each, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(each, handler)


@pytest.mark.parametrize(
    ("wheel", "fits"),
    [
        ("a-1-py3-none-any", True),
        ("a-1-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("a-1-cp312-cp312-manylinux_2_28_x86_64", True),
        ("a-1-cp312-cp312-linux_x86_64", True),
        ("a-1-cp312-cp312-macosx_10_12_x86_64", False),
        ("a-1-cp312-cp312-musllinux_1_2_x86_64", False),
        ("a-1-cp312-cp312-manylinux_2_28_aarch64", False),
        ("a-1-cp313-cp313-manylinux_2_28_x86_64", False),
        ("a-1-cp313-abi3-manylinux_2_28_x86_64", False),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="it is about Linux")
def test_which_wheels_an_intel_machine_with_python_3_12_takes(wheel: str, fits: bool) -> None:
    assert bootstrap._fits(wheel, 12, "x86_64") is fits


def test_without_pip_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in environments that uv makes."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(NotFound, match="has no pip") as told:
        kit.build("file:///x", targets=[("3.12", "x86_64")])
    assert "ensurepip" in str(told.value.hint)


@pytest.mark.system  # pip fetches wheels for other Pythons
def test_a_kit_for_several_pythons() -> None:
    made = kit.build(
        "s3://bucket", targets=[("3.12", "x86_64"), ("3.13", "x86_64")], wished=[("3.1", "x86_64")]
    )
    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        names = tar.getnames()
    parts = [name.split("-") for name in names]
    assert {"cp312", "cp313"} <= {each[2] for each in parts if each[0] == "msgspec"}
    # One of obstore is for all, and no other package is there twice; of this computer's own, which
    # go along, only where they are for another processor.
    of_target = [each for each in parts if each[0] == "obstore" and "x86_64" in each[-1]]
    assert len(of_target) == 1
    assert len([each for each in parts if each[0] == "nvidia_ml_py"]) == 1
    own = f"_{platform.machine()}"
    assert all(
        kit.is_pure(name) or "manylinux_2_17_x86_64" in name or own in name for name in names
    )
    assert len(made) < 16_000_000
