"""What gets into a kit, and runs as root on machines: nothing that we have not seen before."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

from tradewind.base.errors import BadFile, SourceFailed
from tradewind.supervisor import kit

ROOT = Path(__file__).parents[2]
HASHES = json.loads((ROOT / "src/tradewind/supervisor/kit_hashes.json").read_text())
TARGET = ("3.12", "x86_64")


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that calls itself the msgspec for that target, in the index that the user's pip asks."""
    version, _ = kit._known("msgspec")
    name = f"msgspec-{version}-cp312-cp312-manylinux_2_17_x86_64.whl"
    path = tmp_path / "simple" / "msgspec" / name
    path.parent.mkdir(parents=True)
    info = f"msgspec-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("msgspec/__init__.py", "print('anything at all')\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: msgspec\nVersion: {version}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: cp312-cp312-linux_x86_64\n")
        archive.writestr(f"{info}/RECORD", "")
    (path.parent / "index.html").write_text(f"<a href='{name}'>{name}</a>")
    for each in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    return path


def trusted(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were the one that was published."""
    version, _ = kit._known("msgspec")
    hashes = wheel.parents[2] / "hashes.json"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    hashes.write_text(json.dumps({"msgspec": {version: {wheel.name: digest}}}))
    monkeypatch.setattr(kit, "_HASHES", hashes)


def names(made: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        return tar.getnames()


def test_a_wheel_that_is_not_the_published_one_is_refused(wheel: Path) -> None:
    with pytest.raises(SourceFailed, match=r"other wheels of msgspec==\S+ for 3\.12, x86_64 than"):
        kit.build("file:///x", targets=[TARGET])
    # Nor is it taken along where it is only wished for.
    assert wheel.name not in names(kit.build("file:///x", wished=[TARGET]))


def test_a_wheel_with_the_right_hash_comes_from_whatever_index(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted(wheel, monkeypatch)
    assert wheel.name in names(kit.build("file:///x", targets=[TARGET]))


def test_the_folder_in_which_the_user_is_does_not_stand_in_for_pip(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted(wheel, monkeypatch)
    cloned = tmp_path / "cloned"
    cloned.mkdir()
    (cloned / "pip.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(cloned)
    assert wheel.name in names(kit.build("file:///x", targets=[TARGET]))
    assert not (tmp_path / "ran").exists()


def test_a_version_that_came_out_later_is_not_fetched(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has shipped its hashes: machines get the newest whose are known."""
    hashes = tmp_path / "hashes.json"
    hashes.write_text(json.dumps({"msgspec": {"0.1": {"a": "1"}, "0.2": {"b": "3", "c": "2"}}}))
    monkeypatch.setattr(kit, "_HASHES", hashes)
    assert kit._known("msgspec") == ("0.2", ["2", "3"])


def test_of_two_versions_the_installed_one_goes_along() -> None:
    installed = ["a-2-cp311-abi3-manylinux_2_17_x86_64.whl", "b-1-cp311-cp311-linux_x86_64.whl"]
    assert kit._has(installed, "a-1-cp311-abi3-manylinux_2_28_x86_64.whl")
    assert not kit._has(installed, "a-1-cp311-abi3-manylinux_2_28_aarch64.whl")
    assert not kit._has(installed, "b-1-cp312-cp312-manylinux_2_28_x86_64.whl")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a package of the kit, which Python finds first."""
    site = tmp_path / "site"
    site.mkdir()
    found = metadata.distribution("nvidia-ml-py")
    for path in found.files or ():
        if ".." not in path.parts and path.suffix != ".pyc":
            (site / path).parent.mkdir(exist_ok=True)
            shutil.copyfile(str(path.locate()), site / path)
    monkeypatch.syspath_prepend(str(site))
    assert metadata.distribution("nvidia-ml-py").locate_file("") == site
    return site


def test_a_package_is_packed_as_it_was_installed(installed: Path) -> None:
    assert any(name.startswith("nvidia_ml_py-") for name in names(kit.build("file:///x")))


def test_an_installed_file_that_was_changed_is_not_packed(installed: Path) -> None:
    with (installed / "pynvml.py").open("a") as stream:
        stream.write("print('anything at all')\n")
    with pytest.raises(BadFile, match=r"pynvml\.py is not as nvidia-ml-py \S+ was inst") as told:
        kit.build("file:///x")
    assert "--force-reinstall" in str(told.value.hint)


def test_an_installed_file_that_is_gone_is_said(installed: Path) -> None:
    (installed / "pynvml.py").unlink()
    with pytest.raises(BadFile, match=r"pynvml\.py is not as"):
        kit.build("file:///x")


def test_an_installed_file_without_a_hash_is_not_packed(installed: Path) -> None:
    (record,) = installed.glob("*.dist-info/RECORD")
    lines = [
        "pynvml.py,," if line.startswith("pynvml.py,") else line
        for line in record.read_text().splitlines()
    ]
    record.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadFile, match=r"pynvml\.py is not as"):
        kit.build("file:///x")


def test_hashes_are_shipped_for_what_is_pinned_and_for_all_our_machines() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    for name, versions in HASHES.items():
        assert pins[name] in versions, "run tools/renew_kit_hashes.py"
        wheels = [parse_wheel_filename(each)[3] for each in versions[pins[name]]]
        for processor in kit._PROCESSORS:
            for python in ("cp311", "cp312", "cp313", "cp314"):
                assert any(
                    tag.platform.endswith(processor)
                    and (tag.interpreter == python or tag.abi == "abi3")
                    for tags in wheels
                    for tag in tags
                ), (name, python, processor)


def test_no_hash_is_shipped_for_what_we_do_not_admit() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cloud"]]
    admitted = {each.name: each.specifier for each in map(Requirement, wanted)}
    for name, versions in HASHES.items():
        assert versions
        assert all(version in admitted[name] for version in versions)
