"""What of a work tree is sent with a job, compared with what git itself says of it."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.supervisor.test_bundle import fill
from tradewind.base.errors import InvalidValue
from tradewind.supervisor.bundle import pack

FILES = (
    "top.log", "a/x.py", "a/x.log", "a/keep/x.log", "a/keep/a", "a/a/x.py", "b/a/x.py",
    "b/keep/x.py", "b/c/keep/x.log", "b/c/a.py", "keep/x.py", "keep/c/a/x.log",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _own_git(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the settings of whoever runs the tests."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_DIR", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)


def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=folder, input=given, capture_output=True, check=False
    ).stdout


def tree(folder: Path, *names: str) -> Path:
    fill(folder, *(names or FILES))
    git(folder, "init", "-q")
    return folder


def sent(folder: Path) -> set[str]:
    with (
        TemporaryDirectory() as place,
        tarfile.open(pack(folder, Path(place) / "b.tar.gz").path) as tar,
    ):
        return {member.name for member in tar if member.isfile()}


def kept_by_git(folder: Path) -> set[str]:
    names = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }
    asked = "\0".join(sorted(names)).encode()
    told = git(folder, "check-ignore", "--no-index", "-z", "--stdin", given=asked)
    return names - set(told.decode().split("\0"))


_LINES = st.sampled_from(
    """a a/ /a *.log !*.log !keep !keep/ keep/ keep/* a/* a/** **/a **/keep b/c/ b/** !b/** !b/c/
    * !* !*/ /* !/b/ x.* !x.py c/a* [ab] [!a] ?.py b/*/a a/**/x.py !a/keep/ !a/keep/x.log # !"""
    .split()
)  # fmt: skip
_TEXTS = st.lists(_LINES, max_size=4).map("\n".join)


@given(
    texts=st.dictionaries(
        st.sampled_from(["", "a/", "b/", "b/c/", "a/keep/"]), _TEXTS, min_size=1, max_size=3
    ),
    exclude=_TEXTS,
    of_user=_TEXTS,
    job=st.sampled_from(["", "a", "b", "b/c"]),
)
@settings(max_examples=60, deadline=None)
def test_what_git_ignores_is_not_sent(
    texts: dict[str, str], exclude: str, of_user: str, job: str
) -> None:
    with TemporaryDirectory() as place:
        root = tree(Path(place) / "tree")
        for below, text in texts.items():
            (root / below / ".gitignore").write_text(text)
        (root / ".git" / "info" / "exclude").write_text(exclude)
        settings_of_git = Path(os.environ["HOME"]) / ".config" / "git" / "ignore"
        settings_of_git.parent.mkdir(parents=True, exist_ok=True)
        settings_of_git.write_text(of_user)
        folder = root / job
        if job and git(root, "check-ignore", "--no-index", f"{job}/"):
            return  # the user has asked for a folder that git ignores: see below
        assert sent(folder) == kept_by_git(folder), (texts, exclude, of_user, job)


def test_rules_of_the_repository_above_hold(tmp_path: Path) -> None:
    """And are anchored where they stand."""
    root = tree(
        tmp_path, "jobs/one/train.py", "jobs/one/a.bin", "jobs/one/out/x", "jobs/one/jobs/y"
    )
    (root / ".gitignore").write_text("*.bin\n/out/\n/jobs/one/out/\n/jobs/y\n")
    assert sent(root / "jobs" / "one") == {"train.py", "jobs/y"}


@pytest.mark.parametrize("named", ["core.excludesFile", "XDG_CONFIG_HOME", "default"])
def test_the_users_own_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    root = tree(tmp_path / "tree", "train.py", "a.bin")
    places = {
        "core.excludesFile": Path(os.environ["HOME"]) / "mine",
        "XDG_CONFIG_HOME": tmp_path / "xdg" / "git" / "ignore",
        "default": Path(os.environ["HOME"]) / ".config" / "git" / "ignore",
    }
    fill(places[named].parent, places[named].name, text="*.bin\n")
    if named == "core.excludesFile":
        git(root, "config", "--global", named, "~/mine")
    elif named == "XDG_CONFIG_HOME":
        monkeypatch.setenv(named, str(tmp_path / "xdg"))
    assert sent(root) == kept_by_git(root) == {"train.py"}
    monkeypatch.setenv("PATH", str(tmp_path))  # without git the default is read nevertheless
    assert sent(root) == ({"train.py", "a.bin"} if named == "core.excludesFile" else {"train.py"})


def test_a_linked_work_tree_has_the_exclusions_of_its_repository(tmp_path: Path) -> None:
    root = tree(tmp_path / "tree", "train.py", "a.bin")
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    git(root, "add", "-A")
    git(root, *identity, "commit", "-qm", "x")
    git(root, "worktree", "add", "-q", "../linked")
    (root / ".git" / "info" / "exclude").write_text("*.bin\n")
    assert sent(tmp_path / "linked") == kept_by_git(tmp_path / "linked") == {"train.py"}


def test_a_folder_that_is_ignored_as_a_whole_is_sent_if_it_is_asked_for(tmp_path: Path) -> None:
    root = tree(tmp_path, "runs/one/train.py", "runs/one/x.log", "runs/two/train.py")
    (root / ".gitignore").write_text("runs/\n*.log\n")
    assert sent(root) == {".gitignore"}
    assert sent(root / "runs" / "one") == {"train.py"}


def test_our_own_file_has_the_last_word_above_too(tmp_path: Path) -> None:
    root = tree(tmp_path, "jobs/one/train.py", "jobs/one/big.bin", "jobs/one/small.bin")
    (root / ".gitignore").write_text("*.bin\n")
    (root / ".tradewindignore").write_text("!small.bin\n")
    assert sent(root / "jobs" / "one") == {"train.py", "small.bin"}


# -- files that hold secrets -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        ".env", ".env.production", "deep/.env.local", ".aws/credentials", "deep/.ssh/config",
        ".ssh/anything", "id_ed25519", "my.pem", "server.key", ".netrc", ".pypirc",
        ".git-credentials", "service-account-prod.json", "kubeconfig", ".kube/config",
        ".docker/config.json", "conf/.config/gcloud/credentials.db", "x.p12", "state.tfstate",
    ],
)  # fmt: skip
def test_a_file_that_holds_a_secret_is_refused_unless_it_is_named(
    tmp_path: Path, name: str
) -> None:
    user = fill(tmp_path / "user", "train.py", name)
    with pytest.raises(InvalidValue, match="hold secrets") as caught:
        sent(user)
    assert name in str(caught.value)
    (user / ".tradewindignore").write_text("!.*/\n!deep/\n!conf/\n!*\n!**\n")
    with pytest.raises(InvalidValue, match="hold secrets"):
        sent(user)  # a folder, or everything, is not a name
    (user / ".gitignore").write_text(f"!{name}\n")
    with pytest.raises(InvalidValue, match="hold secrets"):
        sent(user)  # git's file is not about sending
    (user / ".tradewindignore").write_text(f"!{name.rpartition('/')[2]}\n")
    assert name in sent(user)
    (user / ".tradewindignore").write_text(f"/{name}\n")
    assert name not in sent(user)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".env.example", "TOKEN="),
        ("environment.yaml", "x"),
        ("env.py", "x"),
        ("keys.py", "x"),
        ("service.json", "{}"),
        ("config.json", "{}"),
        ("ca.pem", "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"),
        (".npmrc", "registry=https://registry.example.org\n"),
    ],
)
def test_what_only_looks_like_it_is_sent(tmp_path: Path, name: str, text: str) -> None:
    assert sent(fill(tmp_path / "user", name, text=text)) == {name}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".npmrc", "//registry.npmjs.org/:_authToken=x\n"),
        ("both.pem", "-----BEGIN CERTIFICATE-----\n-----BEGIN RSA " + "PRIVATE KEY-----\n"),
    ],
)
def test_what_is_looked_into(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidValue, match="hold secrets"):
        sent(fill(tmp_path / "user", name, text=text))
