"""In a pod: SIGTERM is a notice, and secrets are files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tradewind
from tests.supervisor.machines import SPEED, MachineUnderTest, Run, until
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.secrets import Reference
from tradewind.providers.cloud import Signalled
from tradewind.providers.kubernetes import aboard
from tradewind.providers.kubernetes.aboard import ABOARD, Sigterm

SAVES = """
trap '' TERM
echo begun
until [ -e "$TRADEWIND_SAVE" ]; do sleep 0.05; done
echo '{"step": 7, "saved": 7}' >> "$TRADEWIND_PROGRESS"
echo it has saved
"""
WHERE = [str(Path(__file__).parents[3]), str(Path(tradewind.__file__).parents[1])]


class Pod(MachineUnderTest):
    """Its supervisor is a process of its own, and is told to end as a pod is."""

    def begin(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.supervisor.fast_supervisor",
                str(SPEED),
                str(self.folder / "boot.json"),
            ],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(WHERE), TRADEWIND_GRACE_S="200"),
            cwd="/",
        )


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(Run(tmp_path, command=SAVES), notice="kubernetes")


def test_sigterm_is_a_notice_and_the_pod_ends_when_all_is_saved(pod: Pod) -> None:
    process = pod.begin()
    try:
        until(lambda: (pod.folder / "spool.log").exists())
        pod.said("begun")
        process.send_signal(signal.SIGTERM)
        told = pod.does("stopped")
        assert told.notice
        assert "interruption notice" in pod.spool()
        assert "it has saved" in pod.spool()
        assert process.wait(60) == 0, "it need not wait for the kill: all is told"
    finally:
        process.kill()
        process.wait()
    assert not pod.left()


def test_a_job_that_is_done_keeps_no_pod_that_is_to_end(tmp_path: Path) -> None:
    pod = Pod(Run(tmp_path, command="true"), notice="kubernetes")
    process = pod.begin()
    try:
        pod.does("finished")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert pod.does("finished")
    finally:
        process.kill()
        process.wait()


def test_what_is_left_of_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_GRACE_S", "15")
    notice = ABOARD.notice()
    assert isinstance(notice, Signalled)
    assert notice() is None
    notice.heard()
    left_s = notice()
    assert left_s is not None
    assert 0 < left_s <= 15
    until(lambda: (notice() or 15.0) < left_s)
    notice.heard()
    assert (notice() or 15.0) < left_s, "a second signal gives no more time"
    monkeypatch.setenv("TRADEWIND_GRACE_S", "soon")
    assert isinstance(ABOARD.notice(), Sigterm)


def test_secrets_are_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(aboard, "SECRETS", tmp_path)
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "token").write_text("secret")
    found = Reference("kubernetes-secret", "hf", "token")
    assert ABOARD.secret(found, rented=True) == "secret"
    with pytest.raises(InvalidValue):
        ABOARD.secret(found, rented=False)
    with pytest.raises(NotFound, match="no key other") as caught:
        ABOARD.secret(Reference("kubernetes-secret", "hf", "other"), rented=True)
    assert "kubectl create secret" in str(caught.value.hint)
