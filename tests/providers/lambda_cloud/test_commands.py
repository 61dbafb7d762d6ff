"""Setting Lambda up for a store, checking it, planning for it: what is made, shown and refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.cli.conftest import Cli, cli, home  # noqa: F401
from tests.cloud.control import Control
from tests.cloud.faces.rest.asking import ask
from tests.lifecycle.builders import SPEC
from tests.providers.conformance import Place
from tests.providers.lambda_cloud.machines import KIND, REGION, SSH_KEY, env, packed, way
from tests.store import servers
from tradewind import store as stores
from tradewind.api import clouds, rented
from tradewind.api.lending import Lending
from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.model.run import Machine, Spec
from tradewind.providers.base import Provider
from tradewind.providers.lambda_cloud import api
from tradewind.providers.lambda_cloud.cloud import CLOUD
from tradewind.providers.lambda_cloud.footprint import KEY, called, decoded
from tradewind.providers.rest import Pace
from tradewind.store.base import Store

PUBLIC = "ssh-ed25519 AAAAmine ada@laptop"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with servers.s3(tmp_path_factory.mktemp("s3")) as found:
        yield dict(found)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    return f"s3://runs/{request.node.name[:30]}"


@pytest.fixture(autouse=True)
def account(
    cloud: Control, bucket: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    for name, value in {**bucket, **env(cloud.url)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(api, "PACE", Pace({}))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text(PUBLIC + "\n")
    yield
    for key in ssh_keys(cloud):
        if key["name"] != SSH_KEY["name"]:
            ask(cloud, "DELETE", f"/api/v1/ssh-keys/{key['id']}")
    ask(cloud, "PUT", "/api/v1/firewall-rules", {"data": []})


class Lender:
    longest_s = 12 * 3600
    refuses = ""

    def lend(self, run_id: str, for_s: int) -> None:
        if self.refuses:
            raise NoAccess(self.refuses)


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> type[Lender]:
    """As if passes to the store could be lent."""
    monkeypatch.setattr(Lending, "lender", Lender())
    monkeypatch.setattr(clouds, "signing", lambda store, cloud, record: (cloud, record))
    return Lender


def ssh_keys(cloud: Control) -> list[Any]:
    return list(ask(cloud, "GET", "/api/v1/ssh-keys")[1]["data"])


def rules(cloud: Control) -> list[Any]:
    return list(ask(cloud, "GET", "/api/v1/firewall-rules")[1]["data"])


def test_set_up_again_and_removed(cli: Cli, cloud: Control, url: str) -> None:  # noqa: F811
    setup = ("setup", "lambda", "--store", url, "--region", REGION)
    asked = cli(*setup)
    assert (asked.code, "add --yes" in asked.err) == (2, True)
    assert "add ~/.ssh/id_ed25519.pub" in asked.out
    assert called(url) not in [each["name"] for each in ssh_keys(cloud)]
    done = cli(*setup, "--yes")
    assert done.code == 0, done.err
    assert "1 change made, and written down in the store" in done.out
    assert "also after they have shut down" in done.out
    (made,) = [each for each in ssh_keys(cloud) if each["name"] == called(url)]
    assert made["public_key"] == PUBLIC
    record = decoded(stores.open(url).get(KEY))
    assert (record.ssh_key, record.ssh_key_id) == (made["name"], made["id"])
    assert (record.regions, record.bucket_provider) == ((REGION,), "aws")
    assert "nothing to do" in cli(*setup).out
    more = cli("setup", "lambda", "--store", url, "--region", "us-east-1", "--yes", "--json").json
    assert (more["changes"], more["regions"]) == (0, ["us-east-1", REGION])
    assert "key-of-nobody" not in done.out + str(more) + record.encoded().decode()
    gone = cli("teardown", "lambda", "--store", url, "--yes")
    assert gone.code == 0, gone.err
    assert called(url) not in [each["name"] for each in ssh_keys(cloud)]
    assert "nothing to do" in cli("teardown", "lambda", "--store", url).out


def test_a_firewall_rule_is_added_to_those_of_others(
    cli: Cli, cloud: Control, url: str, lent: type[Lender]  # noqa: F811
) -> None:  # fmt: skip
    other = {"protocol": "tcp", "port_range": [22, 22], "source_network": "0.0.0.0/0"}
    other["description"] = "ssh"
    ask(cloud, "PUT", "/api/v1/firewall-rules", {"data": [other]})
    admits = ("setup", "lambda", "--store", url, "--admit", "10.0.0.0/8", "--yes")
    done = cli(*admits)
    assert done.code == 0, done.err
    assert "let 10.0.0.0/8 in, at every port" in done.out
    assert other in rules(cloud)
    assert {each["description"] for each in rules(cloud)} == {"ssh", called(url)}
    assert "nothing to do" in cli(*admits).out
    assert cli("doctor", "lambda", "--store", url).code == 0
    ask(cloud, "PUT", "/api/v1/firewall-rules", {"data": [other]})
    broken = cli("doctor", "lambda", "--store", url)
    assert "is not there any more" in broken.out
    cli(*admits)
    cli("teardown", "lambda", "--store", url, "--yes")
    assert rules(cloud) == [other]


def test_a_key_that_lambda_has_is_taken_and_left(
    cli: Cli, cloud: Control, url: str  # noqa: F811
) -> None:  # fmt: skip
    ask(cloud, "POST", "/api/v1/ssh-keys", {"name": "ada", "public_key": PUBLIC + " again"})
    done = cli("setup", "lambda", "--store", url, "--yes")
    assert decoded(stores.open(url).get(KEY)).ssh_key == "ada", done.err
    cli("teardown", "lambda", "--store", url, "--yes")
    assert "ada" in [each["name"] for each in ssh_keys(cloud)]


WRONG = [
    (("--store", "file:///x"), 2, "machines of Lambda cannot reach the store"),
    (("--store", "s3://runs/x", "--region", "us-wst-1"), 3, "did you mean us-west-1?"),
    (("--store", "s3://runs/x", "--ssh-key", "nobody's"), 3, "Lambda has no SSH key nobody's"),
    (("--store", "s3://runs/x", "--admit", "0.0.0.0/0"), 2, "would let the internet in"),
    (("--store", "s3://runs/x", "--admit", "ten"), 2, "--admit: "),
]


@pytest.mark.parametrize(("arguments", "code", "words"), WRONG)
def test_what_cannot_be_set_up(
    cli: Cli, cloud: Control, arguments: tuple[str, ...], code: int, words: str  # noqa: F811
) -> None:  # fmt: skip
    before = ssh_keys(cloud)
    refused = cli("setup", "lambda", *arguments, "--yes")
    assert (refused.code, words in refused.err) == (code, True), refused.err
    assert ssh_keys(cloud) == before


def test_keys_that_are_wrong_or_not_there(
    cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    setup = ("setup", "lambda", "--store", url, "--yes")
    (tmp_path / ".ssh" / "id_ed25519.pub").unlink()
    none = cli(*setup)
    assert (none.code, "ssh-keygen" in none.err) == (3, True)
    monkeypatch.setenv("LAMBDA_API_KEY", "of-another")
    for command in (setup, ("doctor", "lambda", "--store", url)):
        wrong = cli(*command)
        said = wrong.out + wrong.err
        assert "API key was invalid" in " ".join(said.split())
        assert "LAMBDA_API_KEY" in said
        assert "of-another" not in said
    monkeypatch.delenv("LAMBDA_API_KEY")
    nobody = cli(*setup)
    assert (nobody.code, "no key for Lambda here" in nobody.err) == (5, True)


def test_doctor_tells_what_there_is(
    cli: Cli, cloud: Control, url: str, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    before = cli("doctor", "lambda", "--store", url)
    assert f"tradewind setup lambda --store {url}" in " ".join(before.out.split())
    cli("setup", "lambda", "--store", url, "--yes")
    told = " ".join(cli("doctor", "lambda", "--store", url).out.split())
    assert "the key of LAMBDA_API_KEY is accepted" in told
    assert f"machines are launched with the SSH key {called(url)}" in told
    assert "3 of 3 types are available now" in told
    assert "0 of the account's 0 machines are of this store" in told
    assert f"no pass to {url} can be lent" in told
    assert "AWS_ENDPOINT_URL_STS" in told or "--lend" in told
    monkeypatch.setattr(Lending, "lender", Lender())
    told = " ".join(cli("doctor", "lambda", "--store", url).out.split())
    assert "its machines can be lent passes to the store" in told
    for key in ssh_keys(cloud):
        ask(cloud, "DELETE", f"/api/v1/ssh-keys/{key['id']}")
    broken = cli("doctor", "lambda", "--store", url)
    assert "another account, or no SSH key" in " ".join(broken.out.split())


def test_nothing_is_rented_where_no_pass_can_be_lent(
    cli: Cli, cloud: Control, url: str  # noqa: F811
) -> None:  # fmt: skip
    store = stores.open(url)
    with pytest.raises(NotFound, match="nothing is set up at Lambda") as caught:
        rented.On(store, ["lambda"])
    assert caught.value.hint == f"tradewind setup lambda --store {url}"
    cli("setup", "lambda", "--store", url, "--yes")
    with pytest.raises(InvalidValue, match="no pass can be lent"):
        rented.On(store, ["lambda"])


def planned(**more: Any) -> Spec:
    return replace(SPEC, name="short", **more)


def test_a_plan_is_priced_as_it_is_now_and_warned_of(
    cli: Cli, cloud: Control, url: str, lent: type[Lender]  # noqa: F811
) -> None:  # fmt: skip
    cli("setup", "lambda", "--store", url, "--yes", "--bucket-region", "us-west-2")
    ways = (way(price=1), way(price=1, nodes=2), way(price=1, instance_type="gpu_9x_z9"))
    on = rented.On(stores.open(url), ["lambda"])
    found = on.there(planned(ways=ways))
    (kept,) = found.ways
    assert (kept.price, kept.zone, kept.facts.ends) == (750_000, "", "never")
    assert kept.pass_s == 3600
    assert kept.rates is not None
    assert kept.rates.gb_out == 90_000  # out of S3, to the internet
    assert kept.rates.gb_in == 0  # Lambda charges nothing for it
    assert "cannot train together" in on.rejected[0]
    assert "no machines of the type gpu_9x_z9" in on.rejected[1]
    assert any("tradewind watch" in each and "Lambda" in each for each in on.warnings)
    cli("setup", "lambda", "--store", url, "--yes", "--admit", "10.0.0.0/8")
    on = rented.On(stores.open(url), ["lambda"])
    assert [each.nodes for each in on.there(planned(ways=ways)).ways] == [1, 2]
    cloud.capacity(0, kind=KIND, zone=REGION)
    on = rented.On(stores.open(url), ["lambda"])
    on.there(planned(ways=ways[:1]))
    assert any("has none of these just now" in each for each in on.warnings)


def test_a_pass_lasts_no_longer_than_it_can_be_lent(
    cli: Cli, url: str, lent: type[Lender], monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    cli("setup", "lambda", "--store", url, "--yes")
    monkeypatch.setattr(lent, "longest_s", 1800)
    on = rented.On(stores.open(url), ["lambda"])
    assert [each.pass_s for each in on.there(planned(ways=(way(),))).ways] == [1800]
    monkeypatch.setattr(lent, "refuses", "the role is not there")
    with pytest.raises(NoAccess, match="the role is not there"):  # before anything is bought
        rented.On(stores.open(url), ["lambda"]).there(planned(ways=(way(),)))


def test_what_a_run_there_cannot_have_is_said_before_it_begins(
    cli: Cli, cloud: Control, url: str, lent: type[Lender]  # noqa: F811
) -> None:  # fmt: skip
    cli("setup", "lambda", "--store", url, "--yes")
    on = rented.On(stores.open(url), ["lambda"])
    with pytest.raises(InvalidValue, match="a name of 19 characters at most"):
        on.there(replace(planned(ways=(way(),)), name="n" * 20))
    with pytest.raises(InvalidValue, match="cannot look up secrets"):
        on.there(planned(ways=(way(),), job={"secrets": {"T": "aws-ssm:/x"}}))
    for key in ssh_keys(cloud):
        ask(cloud, "DELETE", f"/api/v1/ssh-keys/{key['id']}")
    with pytest.raises(NoAccess, match="is of another account"):
        on.there(planned(ways=(way(),)))


WORK = """
name: lora
work: {on: 1xA10, step: 1s, steps: "2,000", memory: 10GB}
checkpoint: {every: 5m, size: 2GB}
limits: {deadline: 4d, budget: $40, accelerators: [A10]}
run: {command: "python train.py"}
"""


@pytest.fixture
def bought(monkeypatch: pytest.MonkeyPatch) -> list[Spec]:
    """What would have been submitted."""
    from tradewind.api import submit
    from tradewind.cli.runs import follow

    found: list[Spec] = []

    def submitted(store: Store, spec: Spec, *more: Any) -> str:
        found.append(spec)
        return "run-1"

    monkeypatch.setattr(submit, "submit", submitted)
    monkeypatch.setattr(follow, "carry_out", lambda *given, **more: None)
    return found


@pytest.fixture
def work(tmp_path: Path) -> str:
    place = tmp_path / "job" / "work.yaml"
    place.parent.mkdir()
    place.write_text(WORK)
    return str(place)


def test_a_budget_needs_somebody_who_looks(
    cli: Cli, cloud: Control, url: str, lent: type[Lender], work: str, bought: list[Spec]  # noqa: F811
) -> None:  # fmt: skip
    """Nothing but a controller ends a bill there."""
    cli("setup", "lambda", "--store", url, "--region", REGION, "--yes")
    run = ("run", work, "--on", "lambda", "--store", url, "--yes")
    refused = cli(*run, "--detach")
    assert refused.code == 2, refused.err
    said = " ".join(refused.err.split())
    assert "the budget of $40.00 cannot be kept by a detached run on Lambda" in said
    assert "--attended" in said
    assert bought == []
    for more in (("--detach", "--attended"), ()):
        told = cli(*run, *more)
        assert told.code == 0, told.err
        said = " ".join(told.out.split())
        assert "$40.00, its budget, while a controller looks: only a controller ends" in said
    assert "only a controller ends the bill of machines of Lambda" in cli(*run, "--json").err
    assert [spec.ways[0].provider for spec in bought] == ["lambda"] * 3
    Path(work).write_text(WORK.replace(" budget: $40,", ""))
    told = cli(*run, "--detach")  # there is nothing to be kept
    assert "a controller ends them after" in " ".join(told.out.split()), told.err


def test_what_keeps_a_run_from_beginning_is_said(
    cli: Cli, cloud: Control, url: str, work: str, bought: list[Spec],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """In the order in which somebody would meet it; nothing is bought meanwhile."""

    def run(where: str = url) -> tuple[int, str]:
        found = cli("run", work, "--on", "lambda", "--store", where, "--yes")
        return found.code, " ".join(found.err.split())

    def says(answer: tuple[int, str], code: int, *words: str) -> None:
        assert answer[0] == code, answer
        assert [each for each in words if each not in answer[1]] == [], answer

    lends, setup = (
        "tradewind setup aws --store s3://BUCKET --lend",
        "tradewind setup lambda --store",
    )
    says(run(f"file://{Path(work).parent}/runs"), 2, "cannot reach the store", lends, setup)
    says(run(), 3, "nothing is set up at Lambda", f"hint: {setup} {url}")
    cli("setup", "lambda", "--store", url, "--region", REGION, "--yes")
    says(run(), 2, "no pass can be lent", f"tradewind setup aws --store {url} --lend")
    monkeypatch.setattr(Lending, "lender", Lender())
    says(run(), 3, "nothing is set up at AWS", f"hint: tradewind setup aws --store {url}")
    monkeypatch.setattr(clouds, "signing", lambda store, cloud, record: (cloud, record))
    monkeypatch.setenv("LAMBDA_API_KEY", "of-another")
    says(run(), 5, "API key was invalid", "LAMBDA_API_KEY")
    monkeypatch.delenv("LAMBDA_API_KEY")
    says(run(), 5, "no key for Lambda here", "cloud.lambda.ai/api-keys")
    assert bought == []


def test_nobody_signs_links_to_buckets_of_clouds_that_are_not_rented_from() -> None:
    class There:
        url = "az://runs"

    with pytest.raises(InvalidValue, match="nobody here can sign links to az://runs") as caught:
        clouds.signing(cast(Store, There()), CLOUD, None)
    assert "--store s3://BUCKET, after tradewind setup aws" in str(caught.value.hint)


def test_a_run_that_finds_no_capacity_is_told_so_and_waits(
    cli: Cli, cloud: Control, url: str, lent: type[Lender], work: str, bought: list[Spec]  # noqa: F811
) -> None:  # fmt: skip
    cli("setup", "lambda", "--store", url, "--region", REGION, "--yes")
    cloud.capacity(0, kind=KIND, zone=REGION)
    told = cli("run", work, "--on", "lambda", "--store", url, "--yes")
    assert told.code == 0, told.err
    assert "Lambda has none of these just now" in " ".join(told.out.split())
    assert len(bought) == 1


def test_teardown_waits_for_machines_to_end(cli: Cli, cloud: Control, url: str) -> None:  # noqa: F811
    cli("setup", "lambda", "--store", url, "--yes")
    record = decoded(stores.open(url).get(KEY))
    provider: Provider = CLOUD.opened(record, url, packed)
    (machine,) = provider.launch(Place(provider, way()).request(), 1)
    refused = cli("teardown", "lambda", "--store", url, "--yes")
    assert (refused.code, machine.machine_id in refused.err) == (2, True)
    provider.terminate([machine.machine_id])
    assert cli("teardown", "lambda", "--store", url, "--yes").code == 0


def test_a_shell_is_ssh_to_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "ooooooo1-run-1-0-0z0000"
    machine = Machine(
        machine_id=f"lambda-{name}", launch_id="run-1", run_id="run", leg=1, rank=0, launched_s=0
    )
    up = [api.Instance("i", "active", f"tw-{name}", "192.0.2.7")]
    monkeypatch.setattr(api.Api, "instances", lambda self: up)
    assert CLOUD.shell(machine, "k", ["ls"]) == ["ssh", "-i", "k", "ubuntu@192.0.2.7", "ls"]
    up.clear()
    with pytest.raises(NotFound, match="tells no address"):
        CLOUD.shell(machine, "", [])
