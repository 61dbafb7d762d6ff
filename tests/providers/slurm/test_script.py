"""What runs on nodes: with and without containers, as shells read it, and what it leaves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import a_request
from tests.providers.slurm.machines import way
from tests.slurm.cluster import NAME
from tradewind.base.errors import InvalidValue
from tradewind.catalog import ratecard
from tradewind.model.run import Spec
from tradewind.providers.slurm import containers, names, script
from tradewind.providers.slurm.cloud import CLOUD
from tradewind.providers.slurm.facts import FACTS
from tradewind.providers.slurm.footprint import Cluster, Footprint
from tradewind.providers.slurm.script import Asked

IMAGE = "nvcr.io/nvidia/pytorch:25.10-py3"
STORE = "file:///shared/my%20store"


def asked(image: str = "") -> Asked:
    return Asked(partition="gpu", gres="gpu:a100:1", image=image)


def cluster(kind: str = "", **more: object) -> Cluster:
    return replace(Cluster(user="me", folder="/shared/tw", containers=kind), **more)


def name() -> names.Name:
    return names.Name(owner="abcdefgh", run_id="run-1", leg=1)


def batch(made: Cluster, image: str = "", store: str = STORE) -> str:
    return script.batch(made, asked(image), a_request(way=way()), name(), "lab", store)


def rank(made: Cluster, image: str = "") -> str:
    return script.rank(made, asked(image), name(), STORE)


@pytest.mark.parametrize("kind", ["", *containers.KINDS])
def test_shells_can_read_them(kind: str) -> None:
    made = cluster(kind, prepare=("module load python/3.12",), scratch="/local/a b")
    for text in (batch(made, IMAGE if kind else ""), rank(made, IMAGE if kind else "")):
        done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_pyxis_is_told_by_options_of_srun() -> None:
    made = cluster(containers.PYXIS, prepare=("module load python/3.12",))
    text = batch(made, IMAGE, "file:///shared/store")
    assert "--container-image=nvcr.io#nvidia/pytorch:25.10-py3" in text
    folder = "/shared/tw/tw-abcdefgh-run-1-1"
    mounts = f"{folder}:{folder},/shared/store:/shared/store"
    assert f'--container-mounts={mounts},"$scratch:$scratch"' in text
    assert "export ENROOT_ROOTFS_WRITABLE=y" in text
    assert "module load" not in rank(made, IMAGE), "modules are the node's"
    assert "--container" not in batch(made)
    assert "ENROOT" not in batch(made)
    assert "module load" in rank(made)


def test_apptainer_is_run_on_each_node() -> None:
    made = cluster(containers.APPTAINER, prepare=("module load apptainer",))
    assert "container-image" not in batch(made, IMAGE)
    text = rank(made, IMAGE)
    assert text.index("module load") < text.index(" exec ")
    start = 'env HOME="$home/home" sh ./start.sh &'
    assert f"docker://{IMAGE} {start}" in text
    assert "--bind '/shared/my store'" in text
    assert f"/images/a.sif {start}" in rank(made, "/images/a.sif")
    assert "HOME=" not in rank(made).replace("TRADEWIND_HOME=", "")


def test_whose_a_folder_is_no_container_decides() -> None:
    """Root is what clusters may map users to there, and whoever tidies up is outside."""
    made = cluster(containers.PYXIS)
    text = batch(made, IMAGE)
    assert text.index("TRADEWIND_UID=$(id -u)") < text.index("sh ./rank.sh")
    done = subprocess.run(
        ["sh", "-c", f"scratch=/x SLURM_JOB_ID=1\n{script._SWEEP}\necho $stem"],
        env={"PATH": os.environ["PATH"], "TRADEWIND_UID": "1234"},
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("/x/tradewind-1234-\n", "")
    # Where Slurm can be asked: on the nodes, in a step before the one in the container.
    before = text.partition("--container-image")[0]
    assert "srun --ntasks=1 --ntasks-per-node=1 --input=none sh -c" in before
    assert "squeue -h -j" in before
    assert "squeue" not in rank(made, IMAGE), "an image's own may wait for a cluster in vain"
    assert "squeue -h -j" in rank(cluster(containers.APPTAINER), IMAGE)
    assert "squeue -h -j" not in batch(cluster(containers.APPTAINER), IMAGE)


@pytest.mark.parametrize(
    ("image", "told"),
    [
        ("ubuntu:24.04", "ubuntu:24.04"),
        ("pytorch/pytorch:2.9", "pytorch/pytorch:2.9"),
        ("localhost:5000/team/a", "localhost:5000#team/a"),
        ("/images/a.sqsh", "/images/a.sqsh"),
    ],
)
def test_enroot_parts_the_registry(image: str, told: str) -> None:
    assert containers.reference(containers.PYXIS, image) == told


@pytest.mark.parametrize(
    ("kind", "store", "wrong"),
    [
        (containers.PYXIS, "file:///shared/my%20store", "'/shared/my store'"),
        (containers.PYXIS, "file:///shared/a,b", "'/shared/a,b'"),
        (containers.APPTAINER, "file:///shared/a:b", "'/shared/a:b'"),
        (containers.APPTAINER, "file:///shared/my%20store", ""),
        (containers.PYXIS, "file:///shared/store", ""),
        (containers.PYXIS, "s3://bucket", ""),
        ("", "file:///shared/a:b", ""),
    ],
)
def test_what_cannot_be_mounted_is_refused_at_setup(kind: str, store: str, wrong: str) -> None:
    if not wrong:
        containers.check_paths(cluster(kind), store)
        return
    with pytest.raises(InvalidValue) as caught:
        containers.check_paths(cluster(kind), store)
    assert f"{wrong} cannot be mounted into containers by {kind}" in caught.value.message
    with pytest.raises(InvalidValue, match="'/local/a,b' cannot be mounted"):
        containers.check_paths(cluster(kind, scratch="/local/a,b"), "s3://bucket")


def test_pyxis_takes_no_image_of_apptainers() -> None:
    with pytest.raises(InvalidValue, match="runs containers by pyxis"):
        containers.chosen(cluster(containers.PYXIS), "/images/a.sif", "lab")
    made = cluster(containers.APPTAINER)
    assert containers.chosen(made, "/images/a.sqsh", "lab") == "/images/a.sqsh"


def test_an_image_needs_something_that_runs_it() -> None:
    with pytest.raises(InvalidValue, match="nobody has told") as caught:
        containers.chosen(cluster(), IMAGE, "lab")
    assert "--containers pyxis" in (caught.value.hint or "")
    assert containers.chosen(cluster(), "", "lab") == ""
    made = cluster(containers.PYXIS, image="ubuntu:24.04")
    assert containers.chosen(made, "", "lab") == "ubuntu:24.04"
    assert containers.chosen(made, IMAGE, "lab") == IMAGE


SQUEUE = """\
#!/bin/sh
case "$3" in
  7) echo RUNNING ;;
  8) ;;
  9) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;;
  *) echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1 ;;
esac
"""


def test_what_jobs_that_are_over_have_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    scratch, here = tmp_path / "scratch", tmp_path / "here"
    for path in (scratch, here, tmp_path / "bin"):
        path.mkdir()
    squeue = tmp_path / "bin" / "squeue"
    squeue.write_text(SQUEUE)
    squeue.chmod(0o755)
    (here / "start.sh").write_text('echo "$TRADEWIND_HOME" > began\n')
    uid = os.getuid()
    for job in (7, 8, 9, 10):
        (scratch / f"tradewind-{uid}-{job}-0" / "kept").mkdir(parents=True)
    (scratch / f"tradewind-{uid + 1}-8-0").mkdir()
    (scratch / "others").mkdir()
    done = subprocess.run(
        ["sh", "-s"],
        input=rank(cluster(scratch=str(scratch))),
        cwd=here,
        env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "11",
             "SLURM_PROCID": "0"},
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    left = {each.name for each in scratch.iterdir()}
    assert left == {
        f"tradewind-{uid}-7-0",  # it runs
        f"tradewind-{uid}-10-0",  # nobody knows
        f"tradewind-{uid + 1}-8-0",  # somebody else's
        "others",
    }
    assert (here / "began").read_text().strip() == f"{scratch}/tradewind-{uid}-11-0"


@pytest.mark.parametrize(("image", "boot_timeout_s"), [("", FACTS.boot_timeout_s), (IMAGE, 1800)])
def test_an_image_takes_its_time_to_be_fetched(image: str, boot_timeout_s: int) -> None:
    record = Footprint(clusters={NAME: cluster(containers.APPTAINER)})
    spec = Spec(name="a", work=1.0, ways=(way(),), job={"image": image} if image else {})
    priced = CLOUD.priced(record, spec, way(), ratecard.card())
    assert priced.facts.boot_timeout_s == boot_timeout_s
    assert priced.layout["slurm"].get("image", "") == image
