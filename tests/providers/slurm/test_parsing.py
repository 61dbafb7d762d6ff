"""What Slurm 22.05.8 has printed (recorded/, made with tests/slurm), read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind.base.errors import InvalidValue, SourceFailed
from tradewind.model.run import JOB, TAKEN
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.slurm import cluster, jobs, parsing, troubles
from tradewind.providers.slurm.login import Answer, Unreachable, answers, check

RECORDED = Path(__file__).parent / "recorded"
OWNER, RUN = "abcdefgh", "gpt-01a1e7f1d264-ec9622"


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def test_a_queue() -> None:
    rows = {row.name.leg: row for row in parsing.queue(recorded("queue"), OWNER)}
    assert {leg: row.state for leg, row in rows.items()} == {
        1: "RUNNING",
        2: "FAILED",
        3: "PENDING",
        4: "CANCELLED",
    }
    assert rows[1].name.run_id == RUN
    assert rows[1].placed
    assert rows[1].reason == ""
    assert rows[1].started_s == 1794980519
    assert rows[3].started_s is None
    assert rows[3].reason == "PartitionTimeLimit"
    assert parsing.queue(recorded("queue"), "zzzzzzzz") == []


def test_accounting() -> None:
    rows = {row.name.leg: row for row in parsing.book(recorded("book"), OWNER)}
    assert {leg: (row.state, row.placed) for leg, row in rows.items()} == {
        1: ("RUNNING", True),
        2: ("FAILED", True),
        3: ("PENDING", False),
    }
    (by,) = parsing.book(f"5|CANCELLED by 1000|1|2|3|1|n1|tw-{OWNER}-run-1", OWNER)
    assert (by.state, by.by) == ("CANCELLED", "1000")


def test_what_is_cut_short_is_an_error_and_not_an_empty_answer() -> None:
    with pytest.raises(SourceFailed, match="cannot be read"):
        parsing.queue("slurm_load_jobs error: Zero Bytes were transmitted", OWNER)


def test_both_must_agree() -> None:
    queue = parsing.queue(recorded("queue"), OWNER)
    book = parsing.book(recorded("book"), OWNER)
    found = {job.name.leg: job for job in jobs.agreed(queue, book, 1794980600)}
    assert found[1].lives
    assert found[2].ended_s == 1794980519
    assert found[2].by == JOB
    assert found[3].queued().refused == "not_allowed"
    # squeue says that it is over, and accounting has not heard of it.
    assert found[4].ended_s is None


def test_a_job_that_is_completing_has_all_of_its_nodes_until_the_end() -> None:
    """squeue has only those that are not done yet; accounting may not have heard of them."""
    title = f"tw-{OWNER}-run-1"
    comment = f"tradewind {OWNER} run run leg 1 nodes 2"
    queue = parsing.queue(f"7|COMPLETING|100|110|N/A|1|n2|None|{comment}|{title}", OWNER)
    book = parsing.book(f"7|CANCELLED by 1000|100|110|120|2|n[1-2]|{title}", OWNER)
    for told in ([], book):
        (job,) = jobs.agreed(queue, told, 130)
        assert [machine.rank for machine in job.machines("lab") if job.lives] == [0, 1]


@pytest.mark.parametrize("book", ["", f"7|RUNNING|100|110|Unknown|1|n1|tw-{OWNER}-run-1"])
def test_an_empty_queue_is_no_evidence(book: str) -> None:
    rows = parsing.book(book, OWNER)
    for job in jobs.agreed([], rows, 500):
        assert job.lives
    assert jobs.doubtful([], rows) == {row.job_id for row in rows}
    for job in jobs.agreed([], rows, 500, gone=jobs.doubtful([], rows)):
        assert job.ended_s == 500


def test_the_first_of_a_name_counts() -> None:
    rows = "".join(f"{n}|PENDING|100|N/A|N/A|1||Dependency||tw-{OWNER}-run-1\n" for n in (9, 8))
    firsts, doubles = jobs.firsts(jobs.agreed(parsing.queue(rows, OWNER), [], 500))
    assert [job.job_id for job in firsts] == [8]
    assert [job.job_id for job in doubles] == [9]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("UNLIMITED", None),
        ("2-00:00:00", 172_800),
        ("02:00:00", 7200),
        ("30:00", 1800),
        ("90", 5400),
        ("1-12", 129_600),
    ],
)
def test_time_limits(text: str, seconds: int | None) -> None:
    assert parsing.lasts_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(null)", []),
        ("gpu:2", [("", 2)]),
        ("gpu:a100:4(S:0-1)", [("a100", 4)]),
        ("gpu:nvidia_h100_80gb_hbm3:8(S:0-3),shard:8,lustre:1", [("nvidia_h100_80gb_hbm3", 8)]),
        ("gpu:a100:2,gpu:v100:2", [("a100", 2), ("v100", 2)]),
        ("gpu", [("", 1)]),
    ],
)
def test_gres(text: str, found: list[tuple[str, int]]) -> None:
    assert parsing.gpus(text) == found


@pytest.mark.parametrize(
    ("state", "by", "whose"),
    [
        ("PREEMPTED", "", TAKEN),
        ("NODE_FAIL", "", TAKEN),
        ("TIMEOUT", "", TAKEN),
        ("OUT_OF_MEMORY", "", JOB),
        ("FAILED", "", JOB),
        ("COMPLETED", "", ""),
        ("CANCELLED", "1000", ""),
        ("CANCELLED", "0", TAKEN),
    ],
)
def test_how_a_job_is_over(state: str, by: str, whose: str) -> None:
    assert troubles.ended(state, by, "1000")[0] == whose


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Resources", ""),
        ("Priority", ""),
        ("QOSMaxGRESPerUser", ""),
        ("AssocGrpGRES", ""),
        ("QOSMaxWallDurationPerJobLimit", "no_quota"),
        ("AssocGrpBillingMinutes", "no_quota"),
        ("AssocGrpCPUMinutesLimit", "no_quota"),
        ("AssocGrpCPURunMinutesLimit", ""),
        ("QOSGrpGRESMinutes", "no_quota"),
        ("QOSGrpWallLimit", "no_quota"),
        ("AssocMaxGRESPerNode", "no_quota"),
        ("QOSMinGRES", "no_quota"),
        ("AssocMaxJobsLimit", ""),
        ("PartitionTimeLimit", "not_allowed"),
        ("JobHeldAdmin", "not_allowed"),
        ("BadConstraints", "not_found"),
    ],
)
def test_what_waits_for_ever_is_refused(reason: str, kind: str) -> None:
    assert troubles.refused(reason)[0] == kind


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (
            "sbatch: error: Batch job submission failed: Invalid partition name specified",
            "not_found",
        ),
        ("sbatch: error: Batch job submission failed: Invalid feature specification", "not_found"),
        (
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job"
            " submit limit, user's size and/or time limits)",
            "no_quota",
        ),
        ("sbatch: error: Batch job submission failed: Something new", "not_allowed"),
    ],
)
def test_what_sbatch_says(errors: str, kind: str) -> None:
    found = troubles.submitting(Answer(1, "", errors), "submitting")
    assert isinstance(found, Refused)
    assert found.kind == kind


def test_a_submission_that_nobody_has_answered_is_unknown() -> None:
    late = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    assert isinstance(troubles.submitting(Answer(1, "", late), "x"), OutcomeUnknown)
    down = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"  # noqa: E501
    assert isinstance(troubles.submitting(Answer(1, "", down), "x"), Unreachable)


def test_answers_are_parted_from_what_login_shells_print() -> None:
    said = (
        "Welcome to the cluster\n@tw ready\n@tw begin queue\n7|x\n\n@tw end queue 0\n@tw begin book"
        "\n\n@tw end book 1\n@tw error sacct: error: one\n@tw error two\n@tw done\n"
    )
    assert answers(said) == {
        "queue": Answer(0, "7|x", ""),
        "book": Answer(1, "", "sacct: error: one\ntwo"),
    }


@pytest.mark.parametrize("wrong", ["-oProxyCommand=x", "a b", "host;ls", "user@host:99999", "$(x)"])
def test_a_login_node_is_an_address_and_nothing_else(wrong: str) -> None:
    with pytest.raises(InvalidValue, match="no login node"):
        check(wrong)


@pytest.mark.parametrize("right", ["", "box", "me@box.example.org", "me@box:2222", "me@[::1]"])
def test_login_nodes(right: str) -> None:
    assert check(right) == right


def test_places_are_counted_in_each_partition() -> None:
    told = "7|gpu\n9|cpu\n12|gpu,cpu\n11|gpu\n"
    assert parsing.places(told) == {7: 1, 9: 1, 12: 2, 11: 3}
    assert parsing.places("") == {}


def test_hours_that_are_used_up_are_so_for_all_below() -> None:
    """As `sshare -nP -o Account,User,GrpTRESMins,GrpTRESRaw` prints a tree of accounts."""
    told = (
        "root|||cpu=9,billing=900\n"
        " physics||billing=600|cpu=4,billing=600,gres/gpu=30\n"
        "  lasers|||cpu=1,billing=10\n"
        "   lasers|me||cpu=1,billing=10\n"
        " biology||cpu=100,gres/gpu:a100=50,fs/disk=0|cpu=99,billing=5,gres/gpu:a100=49\n"
        "  biology|me||cpu=0\n"
        " maths||cpu=100|cpu=3\n"
        "  maths|me|gres/gpu=0|cpu=3\n"
    )
    assert parsing.spent(told) == {
        "physics": "600 of 600 minutes of billing are used",
        "lasers": "600 of 600 minutes of billing are used",
        "maths": "0 of 0 minutes of gres/gpu are used",
    }
    assert parsing.spent("") == {}


@pytest.mark.parametrize(
    ("reason", "todo"),
    [
        ("AssocGrpBillingMinutes", "tradewind setup slurm --account"),
        ("QOSMaxWallDurationPerJobLimit", "sacctmgr show qos"),
        ("PartitionTimeLimit", "tradewind doctor slurm"),
        ("InvalidQOS", "--qos of tradewind setup slurm"),
    ],
)
def test_a_refusal_says_what_to_do(reason: str, todo: str) -> None:
    assert todo in troubles.refused(reason)[1]


def test_a_slurm_that_is_too_old() -> None:
    with pytest.raises(InvalidValue, match=r"19\.05\.5"):
        cluster.check_version("19.05.5", "box")
    for fine in ("20.11.9", "22.05.8", "24.11.0-rc1", ""):
        cluster.check_version(fine, "box")
