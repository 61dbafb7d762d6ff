"""Modules of Terraform: by the schemas of the clouds' providers, HashiCorp's own parser and
formatter, and by running what each machine runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.export import asking, stand_ins
from tests.export.linting import linted
from tests.providers.aws.tf_check import faults
from tests.providers.gcp.tf_schema import schema as google
from tradewind.export import making
from tradewind.export.asked import Asked
from tradewind.export.exported import Refused
from tradewind.model import Job
from tradewind.providers import infrastructure

CASES = [
    ("pretrain-1.3b", "aws", ()),
    ("tiny-gpt", "aws", ("T4",)),
    ("continue-70b-eu", "aws", ()),
    ("pretrain-1.3b", "gcp", ()),
    ("continue-70b-eu", "gcp", ()),
    ("lora-8b-overnight", "gcp", ()),
]


def files(asked: Asked) -> dict[str, str]:
    return {path: file.text for path, file in making.made("terraform", asked).files.items()}


def module(asked: Asked) -> str:
    return "".join(text for path, text in files(asked).items() if path.endswith(".tf"))


def with_job(asked: Asked, **fields: Any) -> Asked:
    return replace(asked, workload=replace(asked.workload, run=Job(**fields)))


# -- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "cloud", "chips"), [c for c in CASES if c[1] == "gcp"])
def test_googles_provider_knows_all_of_it(name: str, cloud: str, chips: tuple[str, ...]) -> None:
    assert faults(module(asking.at(name, cloud, *chips)), google()) == []


@pytest.mark.parametrize(
    ("was", "becomes", "fault"),
    [
        ("target_size ", "size ", "google_compute_instance_group_manager.job.size: no such"),
        ("var.machines", "var.machine", "var.machine is not declared"),
        ('"${var.name}-"', '"${var.label}-"', "var.label is not declared"),
        ("default     = 1\n", 'default     = "1"\n', "var.machines.default: is string"),
        ("google_storage_bucket.job.name", "google_storage_bucket.job.names", "no attribute names"),
        ("filemd5(var.job)", "filemd5(var.machines)", "filemd5() takes one string"),
        ("create_before_destroy = true", "prevent_destroy = true", "lifecycle"),
        ('value       = google_storage_bucket.job.name', "value = google_storage_bucket.job.n",
         "output.bucket.value"),
    ],
)  # fmt: skip
def test_that_check_finds_faults(was: str, becomes: str, fault: str) -> None:
    text = module(asking.at("pretrain-1.3b", "gcp"))
    assert was in text
    found = faults(text.replace(was, becomes, 1), google())
    assert [each for each in found if fault in each], found


@pytest.mark.parametrize(("name", "cloud", "chips"), CASES)
def test_it_is_as_planned(name: str, cloud: str, chips: tuple[str, ...]) -> None:
    asked = asking.at(name, cloud, *chips)
    plan = asked.plan
    assert plan is not None
    text = files(asked)
    told = dict(
        re.findall(r'^variable "(\w+)" \{.*?^  default +?= "?(.*?)"?$', text["variables.tf"],
                   re.MULTILINE | re.DOTALL)
    )  # fmt: skip
    assert told["region"] == plan.region
    assert told["zone"] == plan.zone
    assert plan.instance_type.startswith(told["machine_type"])
    assert int(told["machines"]) == plan.nodes
    assert int(told["budget"]) >= plan.cost_high / 1e6
    spot = "spot" in plan.markets
    if cloud == "aws":
        assert told["on_demand_percent"] == ("0" if spot else "100")
    else:
        assert f'provisioning_model  = "{"SPOT" if spot else "STANDARD"}"' in re.sub(
            r"provisioning_model +=", "provisioning_model  =", text["main.tf"]
        )


@pytest.mark.parametrize(("name", "cloud", "chips"), CASES)
def test_nobody_comes_in_but_machines_of_the_group(
    name: str, cloud: str, chips: tuple[str, ...]
) -> None:
    asked = asking.at(name, cloud, *chips)
    text = module(asked)
    assert asked.plan is not None
    among = ('"aws_vpc_security_group_ingress_rule"', '"google_compute_firewall"')
    assert any(each in text for each in among) is (asked.plan.nodes > 1)
    assert "cidr_ipv4_ingress" not in text
    assert "source_ranges" not in text
    assert "ingress {" not in text


def test_machines_read_no_parameters_but_the_jobs_own() -> None:
    text = module(asking.at("pretrain-1.3b", "aws"))
    assert "ssmmessages:OpenDataChannel" in text
    assert "ManagedInstanceCore" not in text
    assert "GetParameter" not in text
    assert text.count('notification_type          = "ACTUAL"') == 3


def test_two_jobs_of_a_project_do_not_meet() -> None:
    text = module(asking.at("pretrain-1.3b", "gcp"))
    assert 'replace(var.name, "-", "_")' in text
    assert "currency_code" not in text


def test_secrets_are_read_by_the_machine() -> None:
    here = asking.at("pretrain-1.3b", "aws")
    job = {"TOKEN": "aws-ssm:/a/hf", "OTHER": "aws-secretsmanager:all#key"}
    told = files(with_job(here, command="python a.py", secrets=job))
    assert "TOKEN=$(aws ssm get-parameter --with-decryption --name '/a/hf'" in told["start.sh"]
    assert '"arn:aws:ssm:*:*:parameter/a/hf"' in told["main.tf"]
    assert '"arn:aws:secretsmanager:*:*:secret:all-??????"' in told["main.tf"]
    with pytest.raises(Refused, match="cannot read TOKEN") as caught:
        files(with_job(here, command="python a.py", secrets={"TOKEN": "file:~/t"}))
    assert "aws-ssm:" in (caught.value.hint or "")
    there = asking.at("pretrain-1.3b", "gcp")
    secret = {"TOKEN": "gcp-secretmanager:hf/versions/3"}
    told = files(with_job(there, command="python a.py", secrets=secret))
    assert "gcloud secrets versions access '3' --secret 'hf'" in told["start.sh"]
    assert faults("".join(v for k, v in told.items() if k.endswith(".tf")), google()) == []


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("pretrain-1.3b", "for runpod, and terraform is written for aws and gcp", "--provider aws"),
        ("jax-tpu", "slice of TPUs", "--accelerator"),
        ("tiny-gpt", "no build for Arm", "--accelerator"),
    ],
)
def test_what_it_cannot_say_is_refused(name: str, said: str, hint: str) -> None:
    with pytest.raises(Refused, match=said) as caught:
        files(asking.example(name))
    assert hint in (caught.value.hint or "")


def test_reserved_capacity_is_refused() -> None:
    asked = asking.at("pretrain-1.3b", "aws")
    assert asked.plan is not None
    with pytest.raises(Refused, match="reserved"):
        files(replace(asked, plan=replace(asked.plan, markets=("reserved",))))


def test_every_cloud_says_what_pulumi_calls_its_things() -> None:
    for cloud in infrastructure.clouds():
        found = infrastructure.of(cloud)
        assert found.CLASSES  # type: ignore[attr-defined]


# -- HashiCorp's own ------------------------------------------------------------------------------


@pytest.mark.system
def test_hashicorps_parser_reads_it_and_its_formatter_leaves_it() -> None:
    from tests.providers.aws.test_printed_terraform import told

    texts = [
        text
        for name, cloud, chips in CASES
        for path, text in files(asking.at(name, cloud, *chips)).items()
        if path.endswith(".tf")
    ]
    broken = texts[0].replace("jsonencode({", "jsonencode({,", 1)
    *same, refused = told([*texts, broken])
    assert same == texts
    assert refused.startswith("Error: parse config: [main.tf:")


@pytest.mark.system
@pytest.mark.parametrize(("name", "cloud", "chips"), [c for c in CASES if c[1] == "aws"])
def test_amazons_provider_knows_all_of_it(name: str, cloud: str, chips: tuple[str, ...]) -> None:
    from tests.providers.aws.tf_schema import schema

    text = module(asking.at(name, cloud, *chips))
    assert faults(text, schema()) == []
    assert faults(text.replace("max_size ", "most ", 1), schema())


@pytest.mark.terraform
@pytest.mark.parametrize(("name", "cloud", "chips"), CASES)
def test_terraform_finds_it_valid(
    name: str, cloud: str, chips: tuple[str, ...], tmp_path: Path
) -> None:
    """Needs a mirror of the cloud's provider: TF_PLUGIN_DIR."""
    mirror = os.environ.get("TF_PLUGIN_DIR", "")
    provider = (
        Path(mirror) / f"registry.terraform.io/hashicorp/{'aws' if cloud == 'aws' else 'google'}"
    )
    if not mirror or not provider.is_dir():
        pytest.skip(f"no mirror of {provider.name}: TF_PLUGIN_DIR names none")
    for path, text in files(asking.at(name, cloud, *chips)).items():
        (tmp_path / path).write_text(text)
    (tmp_path / "job.tar.gz").write_bytes(b"")
    env = {key: each for key, each in os.environ.items() if not key.startswith("TF_")}
    terraform = shutil.which("terraform")
    assert terraform, "terraform is not installed"
    for words in (["fmt", "-check", "-diff"], ["init", f"-plugin-dir={mirror}"], ["validate"]):
        done = subprocess.run(
            [terraform, *words, "-no-color"], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


# -- what each machine runs -----------------------------------------------------------------------

JOB = """\
import os, pathlib, signal, sys, time
saved = pathlib.Path("checkpoints/step")
step = int(saved.read_text()) if saved.exists() else 0
def told(*_):
    saved.write_text(str(step))
    print("saved", step, flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, told)
print("from", step, os.environ["TOKEN"], os.environ["INNER"], flush=True)
if step == 0:
    step = 7
    pathlib.Path(os.environ["WORLD"], "notice").touch()
    time.sleep(60)
pathlib.Path("losses.csv").write_text("1\\n")
print("done", flush=True)
"""


def world(tmp_path: Path, job: str = "") -> Path:
    made = tmp_path / "world"
    if not made.exists():
        stand_ins.put(made)
        (tmp_path / "job.py").write_text(job)
        (tmp_path / "prepared").touch()
        with tarfile.open(made / "bucket/job.tar.gz", "w:gz") as archive:
            archive.add(tmp_path / "job.py", "job.py")
            archive.add(tmp_path / "prepared", ".prepared")
    return made


def started(
    tmp_path: Path, asked: Asked, job: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A machine of the group, whose image has all that is prepared."""
    tools = world(tmp_path, job) / "tools"
    (tmp_path / "start.sh").write_text(files(asked)["start.sh"])
    folder = tmp_path / f"machine-{len(list(tmp_path.glob('machine-*')))}"
    return subprocess.run(
        ["/bin/bash", str(tmp_path / "start.sh")],
        env={
            "PATH": f"{tools}:{os.environ['PATH']}", "WORLD": str(tools.parent), "JOB": str(folder),
            "BUCKET": "b", "REGION": "r", "GROUP": "g", "LOOK_S": "0.05", "AGAIN_S": "0.05",
            **variables,
        },
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def bucket(tmp_path: Path) -> Mapping[str, str]:
    root = tmp_path / "world/bucket"
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".gz"
    }


def test_what_is_taken_saves_and_the_next_machine_goes_on(tmp_path: Path) -> None:
    secrets = {"TOKEN": "aws-ssm:/t", "INNER": "aws-secretsmanager:s#key"}
    asked = with_job(
        asking.at("pretrain-1.3b", "aws"), command="python3 job.py", secrets=secrets,
        outputs=("*.csv",),
    )  # fmt: skip
    done = started(tmp_path, asked, JOB)
    assert done.returncode == 0, done.stderr
    found = bucket(tmp_path)
    assert found["checkpoints/step"] == "7"
    assert found["logs/127.0.0.1.txt"] == "from 0 told-/t inner\nsaved 7\n"
    assert "finished" not in found
    assert not (tmp_path / "world/machines").exists(), "the group replaces it"
    (tmp_path / "world/notice").unlink()
    done = started(tmp_path, asked, JOB, ADDRESS="127.0.0.9")
    assert done.returncode == 0, done.stderr
    found = bucket(tmp_path)
    assert found["logs/127.0.0.9.txt"] == "from 7 told-/t inner\ndone\n"
    assert found["outputs/losses.csv"] == "1\n"
    assert found["finished"].startswith("after ")
    assert (tmp_path / "world/machines").read_text() == "0\n", "nothing is paid any longer"
    before = (tmp_path / "world/asked").read_text().count("job.tar.gz")
    assert started(tmp_path, asked, JOB).returncode == 0
    assert (tmp_path / "world/asked").read_text().count("job.tar.gz") == before, "it is done"


def test_what_fails_again_and_again_ends_the_group(tmp_path: Path) -> None:
    asked = with_job(asking.at("pretrain-1.3b", "aws"), command="echo so; exit 3")
    done = started(tmp_path, asked, "")
    assert done.returncode == 0, done.stderr
    found = bucket(tmp_path)
    assert found["failed"] == "exit code 3, 3 times; logs/ has what it said\n"
    assert found["logs/127.0.0.1.txt"] == "so\n" * 3
    assert (tmp_path / "world/machines").read_text() == "0\n"


def test_a_machine_that_cannot_begin_ends_the_group(tmp_path: Path) -> None:
    secrets = {"TOKEN": "aws-ssm:/t"}
    asked = with_job(asking.at("pretrain-1.3b", "aws"), command="true", secrets=secrets)
    started(tmp_path, asked, "")
    shutil.rmtree(tmp_path / "world/bucket")
    (tmp_path / "world/bucket").mkdir()
    (tmp_path / "world/machines").unlink()
    started(tmp_path, asked, "")
    assert bucket(tmp_path)["failed"].startswith("a machine ended with code ")
    assert (tmp_path / "world/machines").read_text() == "0\n"


def test_a_group_is_ended_in_the_end(tmp_path: Path) -> None:
    asked = with_job(asking.at("pretrain-1.3b", "aws"), command="true")
    for _ in ("it ends", "it is done, and a machine came all the same"):
        world(tmp_path).joinpath("refuses-end").write_text("1\n2\n3\n")
        done = started(tmp_path, asked, "")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "world/machines").read_text() == "0\n"
        (tmp_path / "world/machines").unlink()


@pytest.mark.parametrize(("times", "ends"), [(4, "finished"), (5, "failed")])
def test_what_was_saved_last_is_in_the_bucket_or_the_job_failed(
    tmp_path: Path, times: int, ends: str
) -> None:
    asked = with_job(asking.at("pretrain-1.3b", "aws"), command="echo 9 > checkpoints/step")
    world(tmp_path).joinpath("refuses-save").write_text("no\n" * times)
    started(tmp_path, asked, "")
    found = bucket(tmp_path)
    assert ends in found
    assert ("checkpoints/step" in found) is (ends == "finished")


def test_the_newest_checkpoint_is_taken_though_it_is_as_large(tmp_path: Path) -> None:
    there = world(tmp_path)
    old = tmp_path / "step"
    old.write_text("3")
    os.utime(old, (1, 1))
    with tarfile.open(there / "bucket/job.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "prepared", ".prepared")
        archive.add(old, "checkpoints/step")
    (there / "bucket/checkpoints").mkdir()
    (there / "bucket/checkpoints/step").write_text("8")
    asked = with_job(asking.at("pretrain-1.3b", "aws"), command="cat checkpoints/step")
    started(tmp_path, asked, "")
    assert bucket(tmp_path)["logs/127.0.0.1.txt"] == "8"


def test_checkpoints_of_this_computer_are_not_packed(tmp_path: Path) -> None:
    asked = asking.at("pretrain-1.3b", "aws")
    folder = tmp_path / "job"
    for name in ("checkpoints/last.pt", "src/checkpoints/a.py", "train.py", ".env"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (note,) = [each for each in making.made("terraform", asked).notes if "tar -czf" in each]
    packs = note.removeprefix("in DIR: ").partition(" && ")[0]
    packs = packs.replace(f"-C {asked.job_path} ", f"-C {folder} ")
    subprocess.run(["/bin/bash", "-c", packs], cwd=tmp_path, check=True)
    with tarfile.open(tmp_path / "job.tar.gz") as archive:
        names = {each.name for each in archive if each.isfile()}
    assert names == {"./src/checkpoints/a.py", "./train.py"}


def test_a_machine_that_restarts_begins_again(tmp_path: Path) -> None:
    boot = tmp_path / "boot"
    boot.mkdir()
    asked = with_job(asking.at("pretrain-1.3b", "aws"), command="true")
    started(tmp_path, asked, "", BOOT=str(boot))
    kept = boot / "job.sh"
    assert kept.read_text() == (tmp_path / "start.sh").read_text()
    assert os.access(kept, os.X_OK)


SNAP = """#!/bin/bash
echo snap >> "$WORLD/asked"
[ "$(grep -c snap "$WORLD/asked")" -gt "$SNAP_FAILS" ] && mv "$WORLD/aws" "$WORLD/tools/aws"
"""


@pytest.mark.parametrize(("fails", "ends"), [(2, "finished"), (9, "off")])
def test_a_machine_without_tools_gets_them_or_goes(tmp_path: Path, fails: int, ends: str) -> None:
    there = world(tmp_path)
    (there / "tools/aws").rename(there / "aws")
    for name, text in (("snap", SNAP), ("shutdown", '#!/bin/sh\necho "$*" > "$WORLD/off"\n')):
        (there / "tools" / name).write_text(text)
        (there / "tools" / name).chmod(0o755)
    asked = with_job(asking.at("pretrain-1.3b", "aws"), command="true")
    started(tmp_path, asked, "", PATH=f"{there}/tools:/usr/bin:/bin", SNAP_FAILS=str(fails))
    assert ("finished" in bucket(tmp_path)) is (ends == "finished")
    assert (there / "off").exists() is (ends == "off")


@pytest.mark.parametrize(("name", "cloud", "chips"), CASES)
def test_shellcheck_finds_nothing(
    name: str, cloud: str, chips: tuple[str, ...], tmp_path: Path
) -> None:
    secrets = {"TOKEN": "aws-ssm:/t" if cloud == "aws" else "gcp-secretmanager:t"}
    asked = with_job(asking.at(name, cloud, *chips), command="python3 a.py", secrets=secrets)
    assert linted(files(asked)["start.sh"], tmp_path) == ""


def of_two(command: str) -> Asked:
    asked = asking.at("continue-70b-eu", "aws")
    assert asked.plan is not None
    return with_job(replace(asked, plan=replace(asked.plan, nodes=2)), command=command)


def test_who_waits_for_the_other_machines_asks_again_and_not_for_ever(tmp_path: Path) -> None:
    world(tmp_path).joinpath("refuses-members").write_text("1\n2\n")
    started(tmp_path, of_two("true"), "", ADDRESS="127.0.0.2")
    assert "failed" not in bucket(tmp_path)
    # It is none of those who are there: its own is not told.
    started(tmp_path, of_two("true"), "", ADDRESS="127.0.0.7", PATIENCE_S="1")
    assert bucket(tmp_path)["failed"].startswith("not all 2 machines came within ")
    assert (tmp_path / "world/machines").read_text() == "0\n"


def test_machines_of_a_group_meet_at_the_first(tmp_path: Path) -> None:
    asked = of_two("env | grep -E '^(MASTER|NODE)' | sort")
    told = "MASTER_ADDR=127.0.0.1\nMASTER_PORT=29500\nNODE_RANK={}\n"
    started(tmp_path, asked, "", ADDRESS="127.0.0.2")
    assert bucket(tmp_path)["logs/127.0.0.2.txt"] == told.format(1)
    assert not (tmp_path / "world/machines").exists(), "the first ends the group"
    started(tmp_path, asked, "")
    found = bucket(tmp_path)
    assert found["logs/127.0.0.1.txt"] == told.format(0)
    assert "finished" in found
    assert (tmp_path / "world/machines").read_text() == "0\n"
