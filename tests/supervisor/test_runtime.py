"""The whole supervisor: real processes, a real folder store, minutes that pass in seconds."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import json, structs

from tests.lifecycle.builders import WAY
from tests.supervisor.machines import RUN, MachineUnderTest, Run, TroubledStore, lives, until
from tradewind.model import places
from tradewind.model.event import LegDraining, LegOver
from tradewind.store.local import LocalStore
from tradewind.supervisor.folder import MOST_DEATHS, MachineFolder, State
from tradewind.supervisor.logs import read_logs

pytestmark = pytest.mark.slow

Launch = Callable[..., MachineUnderTest]
PYTHON = sys.executable
OVER = LegOver(leg=1, cause="finished", reason="all is done")
DRAIN = LegDraining(leg=1, cause="moved", reason="there is a better way")
SAVES = 'trap "echo saved; exit 3" TERM; echo begun; while :; do sleep 0.05; done'
IGNORES = 'trap "" TERM; echo begun; while :; do sleep 0.05; done'


def test_a_job_that_succeeds(launch: Launch) -> None:
    machine = launch("echo hello; echo $TRADEWIND_RUN $TRADEWIND_LEG >&2; pwd")
    told = machine.does("finished")
    assert (told.exit_code, told.trouble, told.tail) == (0, "", "")
    work = machine.folder / "work"
    assert machine.log() == f"hello\nrun-1 1\n{work}\n"  # before the end is reported
    machine.run.record(OVER)
    until(lambda: machine.off)
    assert machine.why == ["its leg has ended: all is done"]
    assert machine.does("finished")


def test_what_a_job_finds(launch: Launch) -> None:
    machine = launch("env", env={"MINE": "7", "TRADEWIND_LEG": "9"}, setup="echo setting up")
    machine.does("finished")
    lines = machine.log().splitlines()
    assert lines[0] == "setting up"
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    expected = {
        "MINE": "7",
        "TRADEWIND_RUN": RUN,
        "TRADEWIND_LEG": "1",
        "TRADEWIND_RANK": "0",
        "TRADEWIND_NODES": "1",
        "TRADEWIND_STORE": machine.run.calm.url,
        "TRADEWIND_RESUME": "",
        "TRADEWIND_LAYOUT": "",
        "PYTHONUNBUFFERED": "1",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert Path(found["TRADEWIND_PROGRESS"]).parent == machine.folder
    assert Path(found["TRADEWIND_SAVE"]).parent == machine.folder


def test_a_job_gets_nothing_of_the_environment_that_was_not_meant_for_it(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MY_DATABASE"):
        monkeypatch.setenv(name, "not-for-jobs")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    machine = launch("env", env={"MINE": "7"})
    machine.does("finished")
    assert "not-for-jobs" not in machine.log()
    found = set(machine.log().splitlines())
    assert {"OMP_NUM_THREADS=3", "HTTPS_PROXY=http://proxy:3128", "MINE=7"} <= found


def test_a_job_finds_the_layout_of_what_was_bought(launch: Launch) -> None:
    layout = {"dp": 4, "tp": 2, "sharding": "zero3", "precision": "bf16"}
    way = structs.replace(WAY, layout=layout)
    machine = launch('printf %s "$TRADEWIND_LAYOUT"', way=way)
    machine.does("finished")
    assert json.decode(machine.log().strip()) == layout


def test_a_job_that_fails_is_tried_again_in_place_and_set_up_once(launch: Launch) -> None:
    machine = launch("echo try; exit 4", setup="echo setup", tries=3)
    told = machine.does("failed")
    assert (told.exit_code, told.trouble, told.failures) == (4, "user", 3)
    assert told.tail.splitlines() == ["try"]
    said = machine.log().splitlines()
    assert (said.count("setup"), said.count("try")) == (1, 3)


def test_every_failure_is_seen_at_once(launch: Launch) -> None:
    """Also one that comes so soon, and is so like the last, that nobody saw the job run."""
    machine = launch("exit 4", tries=5, machine={"speed": 1.0})
    assert machine.does("failed").uptime_s < 30


def test_a_setup_that_fails_is_the_job_s_failure(launch: Launch) -> None:
    machine = launch("echo never", setup="echo no such package >&2; exit 2", tries=2)
    told = machine.does("failed")
    assert (told.exit_code, told.trouble, told.failures) == (2, "user", 2)
    assert "no such package" in told.tail
    assert told.reason == "the job's setup has failed with exit code 2"
    assert "never" not in machine.log()


def test_a_try_in_place_resumes_from_what_the_leg_has_saved(launch: Launch) -> None:
    write = (
        f"{PYTHON} -c 'import os, sys; from pathlib import Path; "
        'p = Path(os.environ["TRADEWIND_PROGRESS"]); n = p.with_suffix(".new"); '
        'n.write_text("{\\"step\\": 12, \\"saved\\": 10, \\"rate\\": 1.5}"); n.rename(p)\''
    )
    machine = launch(f'echo "from=$TRADEWIND_RESUME."; {write}; sleep 0.1; test -e ok', tries=2)
    machine.said("from=.")
    key = places.checkpoint(RUN, 1, 10)
    machine.run.calm.create(key, b"{}")
    told = machine.does("failed")
    assert (told.step, told.saved, told.failures) == (12.0, 10.0, 2)
    assert f"from={key}." in machine.spool()


def test_each_try_compiles_into_a_folder_of_its_own(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed one leaves there may be half a library."""
    monkeypatch.setenv("TRITON_CACHE_DIR", "/of/the/shell")
    machine = launch(
        'for each in "$TORCHINDUCTOR_CACHE_DIR" "$TRITON_CACHE_DIR"; do'
        ' test -e "$each" && echo found; mkdir -p "$each" && touch "$each/half"; echo "in=$each";'
        " done; exit 4",
        tries=2,
    )
    machine.does("failed")
    folders = [line.removeprefix("in=") for line in machine.log().splitlines() if "in=" in line]
    assert len(set(folders)) == 4
    assert all(Path(each).is_relative_to(machine.folder) for each in folders)
    assert "found" not in machine.log()
    assert not Path(folders[0]).exists()  # what nobody uses any more takes no room


def test_a_workload_may_name_its_caches(launch: Launch) -> None:
    machine = launch("echo $TRITON_CACHE_DIR", env={"TRITON_CACHE_DIR": "/mnt/cache"})
    machine.does("finished")
    assert machine.log() == "/mnt/cache\n"


def pid_of_try(machine: MachineUnderTest, number: int) -> int:
    def found() -> str | None:
        lines = [line for line in machine.spool().splitlines() if line.startswith("pid=")]
        return lines[number - 1] if len(lines) >= number else None

    return int(until(found, f"try {number}").removeprefix("pid="))


def test_a_job_killed_from_outside_starts_again_in_place_while_it_gets_further(
    launch: Launch,
) -> None:
    """What it saved need not be in its progress file: the store knows."""
    machine = launch('echo "from=$TRADEWIND_RESUME."; echo pid=$$; exec sleep 1000', tries=1)
    os.kill(pid_of_try(machine, 1), signal.SIGKILL)
    second = pid_of_try(machine, 2)
    assert machine.spool().count("from=.") == 2
    key = places.checkpoint(RUN, 1, 10)
    machine.run.calm.create(key, b"{}")
    os.kill(second, signal.SIGKILL)
    third = pid_of_try(machine, 3)
    assert f"from={key}." in machine.spool()
    os.kill(third, signal.SIGKILL)
    told = machine.does("failed")
    assert (told.exit_code, told.trouble, told.failures) == (-9, "infrastructure", 0)
    assert told.saved == 10.0


def test_a_job_whose_keeper_is_killed_does_not_go_on(launch: Launch) -> None:
    machine = launch("echo pid=$$; sleep 1000")
    pid = int(machine.said("pid=").split("pid=")[1].split()[0])
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    again = pid_of_try(machine, 2)
    assert not lives(pid)
    assert lives(again)


def test_daemons_go_with_the_job(launch: Launch, tmp_path: Path) -> None:
    """Also those in a session of their own, and those without our mark in their environment."""
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/one; exec sleep 1000' & "
    daemon += f"setsid env -i sh -c 'echo $$ > {tmp_path}/two; exec sleep 1000' & "
    machine = launch(daemon + f"while ! [ -s {tmp_path}/one -a -s {tmp_path}/two ]; do :; done")
    machine.does("finished")
    pids = [int((tmp_path / name).read_text()) for name in ("one", "two")]
    assert not any(lives(pid) for pid in pids)


def test_services_of_the_setup_stay_until_the_end(launch: Launch, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    machine = launch("kill -0 $(cat ../../pid)", setup=f"sleep 1000 & echo $! > {pid_file}")
    machine.does("finished")
    pid = int(pid_file.read_text())
    assert lives(pid)
    machine.end()
    assert not lives(pid)


def test_a_drained_job_saves_and_exits(launch: Launch) -> None:
    machine = launch(SAVES + " # $TRADEWIND_SAVE")
    machine.said("begun")
    machine.run.record(DRAIN)
    told = machine.does("stopped")
    assert (told.exit_code, told.failures, told.reason) == (3, 0, "there is a better way")
    assert "saved\ntradewind: the job has ended, after it was asked to save (exit code 3)\n" in (
        machine.log()
    )
    assert (machine.folder / "save").read_text() == '{"within_s":240}'


def test_a_job_that_ignores_all_is_killed_when_its_time_is_over(launch: Launch) -> None:
    machine = launch(IGNORES, machine={"speed": 100.0})
    machine.said("begun")
    machine.run.record(DRAIN)
    told = machine.does("stopped")
    assert told.exit_code == -9
    assert "its time to save ran out" in machine.spool()
    assert not machine.left()


def test_notice_is_obeyed_at_once_and_for_as_long_as_there_is(launch: Launch) -> None:
    machine = launch(IGNORES, machine={"speed": 2.0})  # a beat is 15 s, draining two minutes
    machine.said("begun")
    machine.notice.write_text("8")
    told = machine.does("stopped")
    assert told.notice
    assert told.uptime_s < 60
    assert "interruption notice from the provider" in machine.spool()


def test_a_setup_has_nothing_to_save(launch: Launch) -> None:
    machine = launch("echo never", setup=IGNORES)
    machine.said("begun")
    machine.notice.touch()
    told = machine.does("stopped")
    assert (told.failures, told.notice) == (0, True)
    assert not machine.left()
    assert "never" not in machine.spool()


def test_the_hard_stop(launch: Launch) -> None:
    machine = launch(IGNORES, machine={"hard_stop_s": 400})
    until(lambda: machine.off)
    assert "all that it was given" in machine.why[0]
    said = machine.spool()
    # By the hard stop itself, or when its time to save ran out: that is the same moment.
    ended = max(said.find("the job is stopped"), said.find("the job was killed"))
    assert said.index("its time is up in") < ended
    assert not machine.left()
    told = machine.beat()
    assert told is not None
    assert told.doing == "stopped"
    assert "shuts down" in machine.log()


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_who_cannot_reach_the_store_stops_the_job_and_then_itself(launch: Launch, how: str) -> None:
    machine = launch(IGNORES, machine={"speed": 40.0})
    machine.said("begun")
    machine.does("working")
    if how == "fails":
        machine.run.store.fails = True
    else:
        machine.run.store.goes_on.clear()
    machine.said("the job is stopped: it could not reach the store for 1")
    until(lambda: not machine.left())
    until(lambda: machine.off)
    assert "could not reach the store for 3" in machine.why[0]


def test_a_store_that_comes_back_in_time_changes_nothing(launch: Launch) -> None:
    machine = launch("echo begun; while ! [ -e ../go ]; do sleep 0.05; done; echo done")
    machine.said("begun")
    machine.run.store.goes_on.clear()
    until(lambda: machine.run.store.hanging)
    machine.run.store.goes_on.set()
    (machine.folder / "go").touch()
    assert machine.does("finished").failures == 0
    assert machine.log() == "begun\ndone\n"


def test_notice_is_obeyed_while_the_store_hangs(launch: Launch) -> None:
    machine = launch(SAVES)
    machine.said("begun")
    machine.does("working")
    machine.run.store.goes_on.clear()
    until(lambda: machine.run.store.hanging)
    machine.notice.touch()
    machine.said("saved")
    machine.run.store.goes_on.set()
    assert machine.does("stopped").notice


def test_the_hard_stop_comes_while_the_store_hangs_from_the_first(tmp_path: Path) -> None:
    machine = Run(tmp_path, command="echo never").machine(hard_stop_s=200)
    machine.run.store.goes_on.clear()
    machine.start()
    until(lambda: machine.off)
    assert "its time is up" in machine.why[0] or "all that it was given" in machine.why[0]
    machine.end()


def test_a_long_log_arrives_whole_and_in_order(launch: Launch) -> None:
    script = (
        "import sys\n"
        "for n in range(20):\n"
        "    out = sys.stdout if n % 2 else sys.stderr\n"
        "    print(f'{n:06d}' + chr(97 + n) * 1_000_000, file=out)\n"
    )
    machine = launch(f'{PYTHON} -c "$SCRIPT"; exit 5', env={"SCRIPT": script}, tries=1)
    told = machine.does("failed")
    expected = "".join(f"{n:06d}{chr(97 + n) * 1_000_000}\n" for n in range(20))
    whole, at = b"", 0
    while piece := read_logs(machine.run.calm, RUN, 1, 0, at, most=3_000_000):
        whole += piece
        at = len(whole)
    text = whole.decode()
    assert text.startswith(expected)
    assert len(told.tail) <= 4096
    assert len(machine.run.calm.list_after(places.logs(RUN, 1, 0))) < 40


def test_a_bundle_is_fetched_and_run(launch: Launch, tmp_path: Path) -> None:
    from tradewind.supervisor.bundle import pack

    user = tmp_path / "user"
    (user / "sub").mkdir(parents=True)
    (user / "sub" / "train.py").write_text("print('trained')")
    made = pack(user, tmp_path / "bundle.tar.gz")
    key = places.bundle(RUN)
    run = Run(tmp_path, command=f"{PYTHON} train.py", bundle=key, workdir="sub")
    run.calm.upload(key, made.path)
    machine = run.machine().start()
    machine.does("finished")
    assert machine.log() == "trained\n"
    machine.end()


def test_a_bundle_that_is_not_there_is_nobody_s_machine_s_fault(launch: Launch) -> None:
    told = launch("echo never", bundle="runs/run-1/job/none.tar.gz").does("failed")
    assert told.trouble == "user"
    assert "there is no runs/run-1/job/none.tar.gz" in told.tail


def test_two_supervisors_do_not_share_a_machine(launch: Launch) -> None:
    from tradewind.base.errors import NoAccess

    machine = launch("sleep 1000")
    with pytest.raises(NoAccess, match="another supervisor"):
        machine.start()


def test_progress_is_reported_and_nonsense_is_not(launch: Launch) -> None:
    machine = launch(
        'echo \'{"step": 7, "saved": 5, "rate": 2.5}\' > $TRADEWIND_PROGRESS; echo told;'
        " while ! [ -e ../go ]; do sleep 0.05; done;"
        " echo nonsense > $TRADEWIND_PROGRESS; exec sleep 1000"
    )
    machine.said("told")
    until(lambda: (beat := machine.beat()) and beat.step == 7)
    told = machine.beat()
    assert told is not None
    assert (told.step, told.saved, told.rate) == (7.0, 5.0, 2.5)
    (machine.folder / "go").touch()
    until(lambda: (machine.folder / "progress.json").read_text() == "nonsense\n")
    machine.run.record(OVER)
    until(lambda: machine.off)
    assert (last := machine.beat()) is not None
    assert last.step == 7


def test_what_ranks_measure_goes_with_the_heartbeat_and_not_into_the_next_try(
    launch: Launch,
) -> None:
    told = (
        "mkdir -p $TRADEWIND_TELEMETRY; cd $TRADEWIND_TELEMETRY;"
        ' echo \'{"rank": 1, "world": 2, "step": 5, "data": 0.25}\' > 1.json;'
        ' echo nonsense > 0.json; while ! [ -e "$OLDPWD/../go" ]; do sleep 0.05; done'
    )
    machine = launch(told)
    until(lambda: (beat := machine.beat()) is not None and bool(beat.figures))
    beat = machine.beat()
    assert beat is not None
    assert [(each.rank, each.step, each.data) for each in beat.figures] == [(1, 5, 0.25)]
    (machine.folder / "go").touch()
    machine.does("finished")
    beat = machine.beat()
    assert beat is not None
    assert beat.figures == ()


def test_the_state_on_disk_is_json_for_people_too(launch: Launch) -> None:
    machine = launch("exit 0")
    machine.does("finished")
    kept = json.decode((machine.folder / "state.json").read_bytes())
    assert (kept["doing"], kept["exit_code"]) == ("finished", 0)


class Witness(TroubledStore):
    """Notes what of the log is in the store when the end is told."""

    found: bytes | None = None

    def replace(self, key: str, data: bytes) -> None:
        if b'"finished"' in data and self.found is None and not self.fails:
            self.found = read_logs(LocalStore(self._root), RUN, 1, 0)
        super().replace(key, data)


def test_the_end_is_told_after_the_last_words_though_the_store_was_away(tmp_path: Path) -> None:
    go = tmp_path / "go"
    words = "yes 0123456789abcdef | head -c 9000000"
    run = Run(tmp_path, command=f"echo up; until [ -e {go} ]; do sleep 0.05; done; {words}")
    run.store = witness = Witness(tmp_path / "store")
    machine = run.machine().start()
    machine.said("up")
    machine.does("working")
    witness.fails = True
    go.touch()
    until(lambda: b'"finished"' in (machine.folder / "state.json").read_bytes(), "its end is known")
    witness.fails = False
    machine.does("finished")
    assert witness.found is not None
    assert len(witness.found) == 9_000_003
    machine.end()


def test_a_bundle_that_is_another_one_is_not_run(launch: Launch, tmp_path: Path) -> None:
    from tradewind.supervisor.bundle import pack

    user = tmp_path / "user"
    user.mkdir()
    (user / "train.py").write_text("print('trained')")
    made = pack(user, tmp_path / "bundle.tar.gz")
    LocalStore(tmp_path / "store").upload(places.bundle(RUN), made.path)
    told = launch(
        f"{PYTHON} train.py", bundle=places.bundle(RUN), bundle_sha256="0" * 64, tries=1
    ).does("failed")
    assert told.trouble == "user"
    assert "not the one that was submitted" in told.tail
    assert made.sha256 in told.tail


def test_supervisors_that_were_killed_again_and_again_are_the_last_ones(tmp_path: Path) -> None:
    """As the fifth leaves it: the next does not begin the job, and says why."""
    machine = Run(tmp_path, command="echo never").machine()
    folder = MachineFolder(machine.folder)
    state = State(doing="working", saved=3.0)
    for deaths in range(1, MOST_DEATHS):
        state = state.succeeded()
        assert (state.doing, state.deaths) == ("working", deaths)
    further = structs.replace(state, saved=4.0).succeeded()
    assert (further.doing, further.deaths) == ("working", 1), "it gets on, if slowly"
    folder.keep(state)
    told = machine.start().does("failed")
    assert (told.exit_code, told.trouble) == (-9, "infrastructure")
    assert "5 supervisors in a row were killed" in told.reason
    machine.end()
    assert "never" not in machine.spool()
