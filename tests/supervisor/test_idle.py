from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from tests.eventually import eventually
from tradewind.supervisor.idle import Quiet, of_machine


def quiet(*busy: bool) -> Quiet:
    """One answer for each look, and no use after them."""
    answers = list(busy)
    made = Quiet(lambda uptime_s: answers.pop(0) if answers else False)
    made.begin(0.0, 100.0)
    return made


def test_steps_are_progress() -> None:
    job = quiet()
    assert job.seen(1.0, 160.0) == (0.0, 0.0)
    assert job.seen(2.0, 220.0) == (0.0, 0.0)
    assert job.seen(2.0, 280.0) == (60.0, 60.0)


def test_a_job_that_counts_no_steps_has_not_stalled() -> None:
    assert quiet().seen(0.0, 160.0) == (0.0, 60.0)


def test_a_busy_job_without_steps_has_stalled_and_is_not_idle() -> None:
    job = quiet(True, True)
    job.seen(1.0, 160.0)
    assert job.seen(1.0, 220.0) == (60.0, 0.0)
    assert job.seen(1.0, 280.0) == (120.0, 60.0)


def test_between_two_looks_nobody_is_called_idle() -> None:
    job = quiet(True)
    job.seen(0.0, 116.0)
    assert job.seen(0.0, 130.0) == (0.0, 0.0)
    assert job.seen(0.0, 131.0) == (0.0, 15.0)


def test_a_job_that_starts_again_begins_anew() -> None:
    job = quiet()
    job.seen(5.0, 200.0)
    job.begin(5.0, 400.0)
    assert job.seen(5.0, 410.0) == (0.0, 0.0)


@pytest.mark.parametrize(("code", "busy"), [("while True: pass", True), ("input()", False)])
def test_use_of_processors_is_seen(code: str, busy: bool) -> None:
    """Its own time is the processor's: whatever the wall clock says, it cannot decide this."""
    command = [sys.executable, "-c", f"print(flush=True); {code}" if not busy else code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            uptimes_s = (n / 10 for n in count())
            use = of_machine(lambda: [process.pid])
            if busy:
                assert eventually(lambda: use(next(uptimes_s)))
            else:
                assert process.stdout is not None
                process.stdout.readline()
                use(0.0)
                assert not any(use(10.0 * n) for n in range(1, 20))
        finally:
            process.kill()


_NVML = """
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned f) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (char *)1 + i; return 0; }
typedef struct { unsigned gpu, memory; } use_t;
int nvmlDeviceGetUtilizationRates(void *d, use_t *u) {
  u->gpu = d == (void *)2 ? PERCENT : 0; u->memory = 0; return 0;
}
"""


@pytest.mark.system
@pytest.mark.parametrize(("percent", "busy"), [(0, False), (4, False), (97, True)])
def test_gpus_tell_where_there_are_any(tmp_path: Path, percent: int, busy: bool) -> None:
    """By the library's own binding, against a driver of two GPUs that answers so."""
    (tmp_path / "nvml.c").write_text(_NVML.replace("PERCENT", str(percent)))
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "nvml.c"], check=True)
    code = "from tradewind.supervisor.idle import of_machine; print(of_machine(lambda: [])(9.0))"
    env = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(busy)
