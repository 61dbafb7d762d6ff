"""What hosts and ssh say, read without any: no server is needed for this."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.providers.ssh.machines import way
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, SourceFailed, TradewindError
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.ssh import found, names, offers, program, reach, troubles
from tradewind.providers.ssh.answers import Found, Gpu
from tradewind.providers.ssh.footprint import Footprint, Host, decoded
from tradewind.providers.ssh.reach import Door, Seen
from tradewind.providers.ssh.setup import checked, wish_of
from tradewind.providers.ssh.there import drivers, keeper
from tradewind.providers.ssh.troubles import Unreachable
from tradewind.providers.ssh.usable import usable

A100, T4 = "NVIDIA A100-SXM4-80GB", "Tesla T4"


def test_what_nvidia_smi_prints_is_read() -> None:
    printed = (
        "0, GPU-aaaa-1, NVIDIA A100-SXM4-80GB, 81920, 4, Disabled\n"
        "1, GPU-aaaa-2, NVIDIA A100-SXM4-80GB, 81920, 40000, Enabled\n"
        "2, GPU-aaaa-3, Tesla T4, 15360, [N/A], [N/A]\n"
        "Warning: infoROM is corrupted\n"
        "3, ../../etc, Tesla T4, 15360, 1, [N/A]\n"
    )
    read = drivers.parsed(printed, "GPU-aaaa-3, 4711\nGPU-aaaa-3, 4712\n\n[N/A], [N/A]\n")
    assert [(each.uuid, each.name, each.memory_mb, each.used_mb) for each in read] == [
        ("GPU-aaaa-1", A100, 81920, 4),
        ("GPU-aaaa-2", A100, 81920, 40000),
        ("GPU-aaaa-3", T4, 15360, 0),
    ]
    assert [each.mig for each in read] == [False, True, False]
    assert read[2].pids == (4711, 4712)


ROCM = """WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

{"card1": {"Card Series": "AMD Instinct MI300X OAM", "Card Model": "0x74a1",
  "Unique ID": "0x365628C172834D70", "VRAM Total Memory (B)": "206141652992",
  "VRAM Total Used Memory (B)": "301989888"},
 "card0": {"Card series": "N/A", "Card model": "0x744c", "Unique ID": "N/A",
  "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "20000000000"},
 "system": {"Driver version": "6.10.5"}}
"""


def test_what_rocm_smi_prints_is_read_and_told_to_jobs() -> None:
    one, two = drivers.parsed_rocm(ROCM)
    assert (one.index, one.uuid, one.name, one.memory_mb) == (0, "amd-card0", "0x744c", 24560)
    assert (two.uuid, two.name) == ("GPU-365628c172834d70", "AMD Instinct MI300X OAM")
    assert (two.memory_mb, two.used_mb) == (196592, 288)
    assert drivers.visible([one, two]) == {"ROCR_VISIBLE_DEVICES": "0,GPU-365628c172834d70"}
    nvidia = drivers.Gpu(index=0, uuid="GPU-a", name=A100, memory_mb=1, used_mb=0)
    assert drivers.visible([nvidia]) == {"CUDA_VISIBLE_DEVICES": "GPU-a"}
    assert names.instance_type(8, two.name) == "8xMI300X-OAM"
    for odd in ("", "[]", "no JSON", "{"):
        with pytest.raises(drivers.NoGpus):
            drivers.parsed_rocm(odd) or drivers.found()


def tool(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_the_tool_that_is_there_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(drivers.NoGpus, match="neither nvidia-smi nor rocm-smi"):
        drivers.found()
    tool(tmp_path, "nvidia-smi", "echo 'driver/library version mismatch'; exit 18")
    with pytest.raises(drivers.NoGpus, match="version mismatch"):
        drivers.found()
    (tmp_path / "rocm.json").write_text(ROCM)
    tool(tmp_path, "rocm-smi", f"cat {tmp_path}/rocm.json")
    assert [each.vendor for each in drivers.found()] == ["amd", "amd"]


def test_a_job_sees_its_gpus_and_nothing_of_the_connection(tmp_path: Path) -> None:
    before = {"SSH_AUTH_SOCK": "/tmp/x", "PATH": "/bin", "DBUS_SESSION": "y"}
    record = {"env": {"TRADEWIND_HOST": "10.0.0.1"}}
    made = keeper.environment(before, tmp_path, record, {"ROCR_VISIBLE_DEVICES": "1"})
    assert made["ROCR_VISIBLE_DEVICES"] == "1"
    assert made["TRADEWIND_HOST"] == "10.0.0.1"
    assert not {"SSH_AUTH_SOCK", "DBUS_SESSION"} & set(made)


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            "@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
            "Host key verification failed.\n",
            NoAccess,
            "its host key is not the one that is known here",
        ),
        ("Host key verification failed.", NoAccess, "its host key is not known here"),
        (
            "me@box: Permission denied (publickey,password).",
            NoAccess,
            "it lets nobody in without a question",
        ),
        (
            "ssh: Could not resolve hostname box: Name or service not known",
            NoAccess,
            "its name is unknown",
        ),
        ("ssh: connect to host box port 22: No route to host", Unreachable, "cannot be reached"),
        ("ssh: connect to host box port 22: Connection timed out", Unreachable, "be reached"),
        ("kex_exchange_identification: Connection closed by remote host", Unreachable, "hangs up"),
        ("client_loop: send disconnect: Broken pipe", OutcomeUnknown, "was lost"),
        ("Connection to box closed by remote host.", OutcomeUnknown, "was lost"),
        ("Timeout, server box not responding.", OutcomeUnknown, "was lost"),
        ("", OutcomeUnknown, "it said nothing"),
    ],
)
def test_what_ssh_says_is_known_or_leaves_it_open(
    said: str, kind: type[TradewindError], words: str
) -> None:
    error = troubles.error("box", "me@box", said, "launching")
    assert type(error) is kind
    assert words in error.message
    assert "{" not in (error.hint or "")


def test_hosts_are_what_ssh_takes_and_no_options() -> None:
    assert names.arguments("me@box:2222") == ["-p", "2222", "--", "me@box"]
    assert names.arguments("box") == ["--", "box"]
    assert names.arguments("me@[fe80::1]:22") == ["-p", "22", "--", "me@fe80::1"]
    for bad in (
        "",
        "-oProxyCommand=x",
        "me@-x",
        "a b",
        "box:0",
        "box:99999",
        "box;reboot",
        "a@b@c",
    ):
        with pytest.raises(InvalidValue):
            names.checked(bad)


def test_names_of_machines_lead_back_to_their_hosts() -> None:
    one = names.short("me@gpu-1.lab.example.org")
    two = names.short("you@gpu-1.lab.example.org", [one])
    assert (one, two) == ("gpu-1-lab-example-org", "gpu-1-lab-example-org-2")
    assert names.host_of(names.machine_id(one, "run.a-1", 0)) == one
    for odd in ("", "-", "ssh-", "aws-x.y", "ssh-none", "ü"):
        assert names.host_of(odd) == ""
    assert names.instance_type(2, "NVIDIA GeForce RTX 4090") == "2xRTX-4090"
    assert names.instance_type(1, "Tesla V100-SXM2-16GB") == "1xV100-SXM2-16GB"


def test_the_command_survives_every_shell(tmp_path: Path) -> None:
    text = program.command("/opt/conda/bin")
    assert text.startswith("sh -c '")
    assert text.count("'") == 2
    assert not set("!\n\\`") & set(text)
    question = {"do": "reach", "owner": "a", "folder": "x", "addresses": []}
    for shell in ("sh", "bash"):
        done = subprocess.run(
            [shell, "-c", program.command()], input=program.told(question), capture_output=True
        )
        assert done.stdout.decode().strip() == 'tradewind-answer {"reached": []}', done.stderr
    # A question that was cut off is none.
    cut = subprocess.run(
        ["sh", "-c", program.command()], input=program.told(question)[:-1], capture_output=True
    )
    assert cut.stdout == b""


def test_a_host_without_python_says_so(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    done = subprocess.run(
        ["/bin/sh", "-c", program.command()], env={"PATH": str(tmp_path)}, capture_output=True
    )
    assert done.stdout.decode().strip() == program.NO_PYTHON


# -- offers ----------------------------------------------------------------------------------------


def gpu(index: int, name: str = A100, state: str = "free", who: str = "") -> Gpu:
    return Gpu(index=index, uuid=f"GPU-{index}", name=name, memory_mb=81920, state=state, who=who)


def host(region: str = "hosts", **gpus: int) -> Host:
    return Host(target="me@box", region=region, gpus=gpus or {A100: 4}, cores=64, ram_gb=512)


FOOTPRINT = Footprint(
    hosts={"a": host(), "b": replace(host(), gpus={A100: 2, T4: 1}), "c": host("far")}
)


def test_hosts_are_offered_in_sizes_without_what_others_use() -> None:
    seen: dict[str, list[Gpu] | TradewindError] = {
        "a": [gpu(0), gpu(1, state="leased"), gpu(2, state="busy", who="alice"), gpu(3)],
        "b": [gpu(0), gpu(1), gpu(2, T4)],
        "c": Unreachable("host c cannot be reached"),
    }
    made = offers.offering(FOOTPRINT, seen)
    found = {each.instance_type: (each.machines, each.free) for each in made.offers}
    assert found == {
        "1xA100-SXM4-80GB": (5, 4),
        "2xA100-SXM4-80GB": (2, 2),
        "1xT4": (1, 1),
    }
    assert {each.region for each in made.offers} == {"hosts"}
    assert any("alice" in words for words in made.warnings)
    assert any("host c" in words for words in made.warnings)


def test_no_host_that_answers_is_no_offer_but_an_error() -> None:
    with pytest.raises(SourceFailed, match="no host answers"):
        offers.offering(FOOTPRINT, {"a": Unreachable("it is off")})


def test_ways_that_no_host_could_take_are_left_out() -> None:
    seen: dict[str, list[Gpu] | TradewindError] = {
        "a": [gpu(n, state="busy") for n in range(4)],
        "b": [gpu(0), gpu(1), gpu(2, T4)],
        "c": [gpu(n) for n in range(4)],
    }
    kept, spot = way(nodes=3), way(market="spot")
    many, other = way(nodes=9), way(instance_type="3xA100-SXM4-80GB")
    nowhere = way(region="moon")
    made = usable(FOOTPRINT, seen, [kept, spot, many, other, nowhere], "s3://b")
    assert made.ways == (kept,)
    kinds = [reason.kind for reason in made.rejected]
    assert kinds == ["no_spot", "quota", "not_offered", "no_setup"]
    assert "waits" in made.warnings[0]  # two are free


def test_what_is_written_down_is_read_again() -> None:
    assert decoded(FOOTPRINT.encoded()) == FOOTPRINT
    assert FOOTPRINT.places == {"hosts": ("",), "far": ("",)}


# -- setup -----------------------------------------------------------------------------------------


def test_hosts_that_do_not_reach_each_other_are_apart() -> None:
    doors = {name: Door(name, "eth0", f"10.0.0.{n}") for n, name in enumerate("abc")}
    inner = Door("a", "eth1", "192.168.0.1")
    hosts = {name: replace(host(), region="", target=name) for name in "abc"}
    seen = Seen(
        (doors["a"], inner, doors["b"], doors["c"]),
        {
            "a": frozenset({doors["b"]}),
            "b": frozenset({inner}),
            "c": frozenset({doors["a"], doors["b"]}),
        },
    )
    made = reach.placed(hosts, seen, ["a", "b", "c"], "lab")
    assert [made[name].region for name in "abc"] == ["lab", "b", "c"]
    both = Seen(seen.doors, {"a": frozenset({doors["b"]}), "b": frozenset({inner})})
    pair = reach.placed({n: hosts[n] for n in "ab"}, both, ["a", "b"], "lab")
    assert [pair[name].region for name in "ab"] == ["lab", "lab"]
    assert (pair["a"].address, pair["a"].interface) == ("192.168.0.1", "eth1")


FOUND = Found(
    user="me",
    hostname="box",
    python="3.12",
    architecture="x86_64",
    system="Linux",
    cores=8,
    memory_gb=64,
    disk_gb=100,
    folder="/home/me/.tradewind-host",
    folder_there=False,
    writable=True,
    interfaces=[["eth0", "10.0.0.1"]],
    kills_processes=False,
    gpus=[gpu(0)],
    trouble="",
)


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"gpus": []}, NotFound, "no GPU"),
        ({"gpus": [], "trouble": "nvidia-smi is not there"}, NotFound, "nvidia-smi is not there"),
        ({"gpus": [gpu(0, state="unusable", who="MIG")]}, NotFound, "MIG"),
        ({"disk_gb": 0.5}, NoAccess, "0.5 GB free"),
        ({"writable": False}, NoAccess, "may not write"),
        ({"system": "Darwin"}, InvalidValue, "Linux"),
        ({"kills_processes": True}, NoAccess, "KillUserProcesses"),
        ({"store": "/x is another folder there"}, NoAccess, "not shared"),
    ],
)
def test_a_host_that_takes_no_machine_is_refused_with_a_hint(
    changes: dict[str, object], kind: type[TradewindError], words: str
) -> None:
    found.check("box", FOUND, "file:///x")
    with pytest.raises(kind, match=words) as caught:
        found.check("box", replace(FOUND, **changes), "file:///x")
    assert caught.value.hint or kind is InvalidValue


def test_bad_wishes_are_refused(tmp_path: Path) -> None:
    listed = tmp_path / "hosts"
    listed.write_text("me@a  # the old one\n\n# nothing\nb:2222\nme@a\n")
    assert wish_of("s3://b", (), {"hosts": str(listed)}).hosts == ("me@a", "b:2222")
    listed.write_text("# none\n")
    for host, settings in (
        ("a", {"hosts": str(listed)}),
        ("a", {"hosts": str(tmp_path / "missing")}),
        ("-x", {}),
        ("a", {"network_gbps": "fast"}),
        ("a", {"python": "relative"}),
        ("a", {"python": "/x'; reboot"}),
    ):
        with pytest.raises(InvalidValue):
            wish_of("s3://b", (host,), settings)
    assert checked("/shared/x/") == "file:///shared/x"
    for bad in ("memory://x", "http://x", "file://", "s3:"):
        with pytest.raises(InvalidValue):
            checked(bad)
