"""The conformance suite, and what only Slurm has, on a real one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from msgspec import convert
from msgspec.structs import replace

from tests.eventually import eventually
from tests.lifecycle.builders import a_request
from tests.providers.conformance import Conformance, Place
from tests.providers.slurm.machines import (
    Patient,
    argument,
    footprint,
    opened_patiently,
    way,
)
from tests.slurm.cluster import NAME, NODES, Slurm
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.providers.base import Refused
from tradewind.providers.slurm import jobs, script
from tradewind.providers.slurm.login import Login, Unreachable
from tradewind.providers.slurm.names import Name
from tradewind.providers.slurm.setup import Look
from tradewind.providers.slurm.wish import Wish

pytestmark = pytest.mark.system


@pytest.fixture
def place(slurm: Slurm, tmp_path: Path) -> Place:
    (tmp_path / "scratch").mkdir()
    given = argument(footprint(tmp_path), f"file://{tmp_path}/store")
    other = argument(footprint(tmp_path), f"file://{tmp_path}/other")
    return Place(
        opened_patiently(given),
        way(),
        others=opened_patiently(other),
        again=lambda: opened_patiently(given),
        client=("tests.providers.slurm.machines:opened_patiently", given),
        crashes=5,
    )


class Cut:
    """Slurm's commands, before or behind the n-th of which whoever called them is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        for name in ("squeue", "sacct", "sbatch", "scancel"):
            path = folder / name
            path.write_text(_CUT.format(real=shutil.which(name), folder=folder))
            path.chmod(0o755)

    @contextmanager
    def at(self, step: int) -> Iterator[Callable[[], bool]]:
        (self._folder / "steps").write_text(str(step))
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{self._folder}:{before}"
        try:
            # Empty: it was killed while it wrote.
            yield lambda: int((self._folder / "steps").read_text() or 0) <= 0
        finally:
            os.environ["PATH"] = before


_CUT = """\
#!/bin/sh
cut() {{
  left=$(($(cat {folder}/steps) - 1))
  echo $left > {folder}/steps
  [ $left = 0 ] || return
  pid=$$
  while [ "$pid" -gt 1 ]; do
    pid=$(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f2)
    [ "$(tr '\\0' ' ' < /proc/$pid/cmdline)" != "sh -s " ] || kill -9 $pid
  done
  exit 1
}}
cut
{real} "$@"
code=$?
cut
exit $code
"""


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    return Cut(tmp_path / "cut")


class TestSlurm(Conformance):
    safety = "name"

    def test_one_of_several_machines_can_be_terminated(self, place: Place) -> None:
        """And the others of its job end with it."""
        bought = place.provider.launch(place.request(nodes=3), 1)
        other = place.provider.launch(place.request(leg=2), 1)
        eventually(lambda: len(place.running()) == 4)
        place.provider.terminate([bought[1].machine_id])
        place.is_gone(bought)
        assert place.running() == list(other)

    def test_a_launch_cut_off_anywhere_is_all_or_none_and_can_be_repeated(  # type: ignore[override]
        self, place: Place, slurm: Slurm, cut: Cut
    ) -> None:
        """The shell on the login node is killed before and behind each of Slurm's commands."""
        assert isinstance(place.provider, Patient)
        for step in range(1, 9):
            request = place.request(leg=step, nodes=2)
            with cut.at(step) as done, suppress(TradewindError):
                place.provider.provider.launch(request, 1)
            found = place.running(request.launch_id)
            assert len(found) in (0, 2), step
            sold = place.provider.launch(request, 1)
            assert len(sold) == 2
            name = next(iter(slurm.said("squeue", "-h", "-t", "R", "-o", "%j").split()))
            assert len(slurm.said("squeue", "-h", "-t", "all", f"--name={name}").splitlines()) == 1
            place.provider.terminate([m.machine_id for m in sold])
            place.is_gone(sold)
            if not done():
                assert step > 6, "nothing was cut off"
                return

    def test_a_termination_cut_off_anywhere_can_be_repeated_and_lists_no_living_as_ended(  # type: ignore[override]
        self, place: Place, cut: Cut
    ) -> None:
        for step in range(1, 9):
            bought = place.provider.launch(place.request(leg=step, nodes=2), 1)
            names = [machine.machine_id for machine in bought]
            with cut.at(step) as done, suppress(TradewindError):
                place.provider.terminate(names)
            assert len(place.running(bought[0].launch_id)) in (0, 2)
            place.provider.terminate(names)
            place.is_gone(bought)
            if not done():
                assert step > 6, "nothing was cut off"
                return

    def test_nothing_is_left_of_what_is_over(self, place: Place, tmp_path: Path) -> None:
        bought = place.provider.launch(place.request(nodes=2), 1)
        eventually(lambda: len(list((tmp_path / "scratch").iterdir())) == 2)
        place.provider.terminate([bought[0].machine_id])
        place.is_gone(bought)
        assert isinstance(place.provider, Patient)
        place.provider.provider.tidy()
        assert list((tmp_path / "jobs").iterdir()) == []
        eventually(lambda: list((tmp_path / "scratch").iterdir()) == [])


def test_what_has_no_room_waits_with_a_reason_and_can_be_withdrawn(
    slurm: Slurm, place: Place
) -> None:
    assert isinstance(place.provider, Patient)
    provider = place.provider.provider
    everything = ("-p", "gpu", f"-N{NODES}", "--exclusive", "-t", "5", "-o", "/dev/null")
    slurm.said("sbatch", *everything, "--wrap", "sleep 300")
    eventually(lambda: slurm.said("squeue", "-h", "-t", "R", "-o", "%i"))
    assert list(provider.launch(place.request(nodes=2), 1)) == []
    (queued,) = provider.list_machines().queued
    assert (queued.launch_id, queued.run_id, queued.leg) == ("run-1-1", "run-1", 1)
    assert queued.refused == ""
    started = eventually(lambda: provider.list_machines().queued[0].starts_s, within_s=60)
    assert started is not None
    assert started > provider.list_machines().at_s
    told = provider.list_machines().queued[0].reason
    assert told in [f"{each}, place 1 in its queue" for each in ("Resources", "Priority")]
    assert list(provider.launch(place.request(leg=2), 1)) == []
    (second,) = [q for q in provider.list_machines().queued if q.leg == 2]
    assert second.reason.endswith("place 2 in its queue")
    provider.withdraw(["run-1-2"])
    eventually(lambda: len(provider.list_machines().queued) == 1)
    assert list(provider.launch(place.request(nodes=2), 1)) == []
    assert len(provider.list_machines().queued) == 1, "it was submitted again"
    provider.withdraw(["run-1-1"])
    eventually(lambda: provider.list_machines().queued == ())
    provider.withdraw(["run-1-1"])
    assert provider.list_machines().machines == ()


def test_one_that_can_never_begin_is_refused(slurm: Slurm, place: Place) -> None:
    assert isinstance(place.provider, Patient)
    asked = dict(place.way.layout["slurm"], partition="brief")
    with_limit = replace(place.way, layout={"slurm": asked})
    request = replace(place.request(), way=with_limit)
    assert list(place.provider.provider.launch(request, 1)) == []
    (queued,) = place.provider.provider.list_machines().queued
    assert (queued.refused, queued.reason.partition(":")[0]) == (
        "not_allowed",
        "PartitionTimeLimit",
    )


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"partition": "nope"}, "not_found"),
        ({"gres": "gpu:h100:1"}, "not_found"),
        ({"mem_mb": 900_000}, "not_found"),
    ],
)
def test_what_sbatch_refuses_is_refused(
    slurm: Slurm, place: Place, change: dict[str, object], kind: str
) -> None:
    wrong = replace(place.way, layout={"slurm": {**place.way.layout["slurm"], **change}})
    with pytest.raises(Refused) as caught:
        place.provider.launch(replace(place.request(), way=wrong), 1)
    assert caught.value.kind == kind
    assert place.listed() == []


_BLOCK = 4096


@contextmanager
def a_disk(folder: Path, option: str) -> Iterator[None]:
    """Of its own, and small."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "jobs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_without_room_nothing_is_submitted(slurm: Slurm, place: Place, tmp_path: Path) -> None:
    """Neither where a launch's folder cannot be made, nor where any file in it is cut off."""
    jobs = tmp_path / "jobs"
    bought = place.provider.launch(place.request(), 1)
    written = [f for f in jobs.glob("*/*.*") if f.is_file()]
    blocks = sum(-(-f.stat().st_size // _BLOCK) for f in written)
    assert blocks > len(written) > 4
    place.provider.terminate([bought[0].machine_id])
    place.is_gone(bought)
    for leg, option in enumerate(
        ["nr_inodes=2", *(f"size={n * _BLOCK}" for n in (1, blocks // 2, blocks - 1))], start=2
    ):
        with a_disk(jobs, option):
            with pytest.raises(Refused, match="No space left on device") as caught:
                place.provider.launch(place.request(leg=leg), 1)
            assert "make room" in (caught.value.hint or "")
            assert slurm.said("squeue", "-h", "-o", "%j").split() == []
    with a_disk(jobs, "size=1m"):
        look = Look(Wish(store_url=f"file://{tmp_path}", folder=str(jobs)))
        with pytest.raises(NoAccess, match="has 1 MB free") as refused:
            look.prepared(None)
        assert "--folder" in (refused.value.hint or "")
    assert len(place.provider.launch(place.request(leg=9), 1)) == 1


def test_a_controller_that_is_down_is_no_evidence(slurm: Slurm, place: Place) -> None:
    (machine,) = place.provider.launch(place.request(), 1)
    slurm.stop_controller()
    try:
        with pytest.raises(Unreachable):
            place.provider.list_machines()
        assert isinstance(place.provider, Patient)
        with pytest.raises(Unreachable):
            place.provider.provider.launch(place.request(leg=2), 1)
    finally:
        slurm.start_controller()
    assert place.running() == [machine]


def a_second_job(slurm: Slurm, folder: Path) -> str:
    """Of the same launch, submitted by hand behind our back, as two login nodes without a common
    lock would."""
    return slurm.said(
        "sbatch", "--parsable", f"--job-name={folder.name}", "--dependency=singleton",
        "-p", "gpu", "-t", "5", f"--chdir={folder}", f"--output={folder}/again",
        str(folder / "batch.sh"),
    ).strip()  # fmt: skip


@pytest.mark.parametrize("began", [True, False])
def test_a_second_job_of_a_launch_never_begins(
    slurm: Slurm, place: Place, tmp_path: Path, began: bool
) -> None:
    """Even if the first one was ended before it has done anything."""
    (machine,) = place.provider.launch(place.request(), 1)
    (folder,) = (tmp_path / "jobs").iterdir()
    again = a_second_job(slurm, folder)
    assert place.running() == [machine]
    if began:
        eventually((folder / "begun").exists)
    first = slurm.said("squeue", "-h", "-t", "R,CF,CG", "-o", "%i").strip()
    slurm.said("scancel", first)
    if not began:
        eventually(lambda: first not in slurm.said("squeue", "-h", "-t", "R,CF", "-o", "%i"))
        with suppress(FileNotFoundError):
            (folder / "begun").rmdir()
    told = ("sacct", "-nPX", "-j", again, "-o", "State")
    eventually(lambda: slurm.said(*told).strip() not in ("PENDING", "RUNNING", ""))
    assert slurm.said(*told).strip() == "COMPLETED"
    assert "nothing is done twice" in (folder / "again").read_text()
    eventually(lambda: place.running() == [])


def test_a_second_job_is_ended_with_the_first(slurm: Slurm, place: Place, tmp_path: Path) -> None:
    (machine,) = place.provider.launch(place.request(), 1)
    (folder,) = (tmp_path / "jobs").iterdir()
    again = a_second_job(slurm, folder)
    place.provider.terminate([machine.machine_id])
    told = ("sacct", "-nPX", "-j", again, "-o", "State")
    eventually(lambda: slurm.said(*told).startswith("CANCELLED"))
    place.is_gone([machine])


def test_the_controller_says_which_numbers_it_does_not_know(slurm: Slurm) -> None:
    told = slurm.said("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 60")
    number = int(told)
    answers = Login("").ask(jobs.asking_for([number, 999_999]))
    assert jobs.denied(answers) == {999_999}


_RANK = """\
trap ': > told-$SLURM_PROCID' TERM
: > up-$SLURM_PROCID
while [ ! -e told-$SLURM_PROCID ]; do sleep 0.1; done
sleep 1 # it saves
: > saved-$SLURM_PROCID
"""


def test_what_its_batch_shell_is_told_every_rank_hears(slurm: Slurm, tmp_path: Path) -> None:
    """A while before its time limit, for one: each may save and end, and none is killed."""
    made = footprint(tmp_path).clusters[NAME]
    (tmp_path / "scratch").mkdir()
    wanted = a_request(way=way(nodes=2))
    name = Name(owner="abcdefgh", run_id="run-1", leg=1)
    asked = convert(wanted.way.layout["slurm"], script.Asked)
    folder = Path(made.folder) / name.text
    folder.mkdir(parents=True)
    (folder / "rank.sh").write_text(_RANK)
    store = f"file://{tmp_path}/store"
    (folder / "batch.sh").write_text(script.batch(made, asked, wanted, name, NAME, store))
    flags = script.flags(made, asked, wanted, name, store)
    job = slurm.said("sbatch", *flags, str(folder / "batch.sh")).strip()
    eventually(lambda: len(list(folder.glob("up-*"))) == 2)
    slurm.said("scancel", "--batch", "--signal=TERM", job)
    told = ("sacct", "-nPX", "-j", job, "-o", "State")
    eventually(lambda: slurm.said(*told).strip() not in ("PENDING", "RUNNING", ""))
    assert slurm.said(*told).strip() == "COMPLETED", (folder / "out").read_text()
    assert not folder.exists()  # as the batch script leaves it when all ranks have ended well
