"""Kubeconfigs of every kind, without a cluster: what is sent as whom, and by which way."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from kubernetes.config import incluster_config, kube_config
from oauthlib.oauth2 import InvalidGrantError

from tradewind.base import clock
from tradewind.base.errors import NoAccess
from tradewind.providers.kubernetes import login


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def write(path: Path, user: dict[str, Any], **cluster: str) -> None:
    there = {"server": "https://127.0.0.1:9", **cluster}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": there}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "work", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(config))


def oidc(lives_s: int) -> dict[str, Any]:
    """A login by OIDC whose id token ends so long from now, and whose issuer does not answer."""
    claims = json.dumps({"sub": "ann", "exp": int(clock.now().timestamp()) + lives_s})
    parts = [base64.urlsafe_b64encode(each.encode()).decode() for each in ("{}", claims, "sign")]
    made = {
        "id-token": ".".join(part.rstrip("=") for part in parts),
        "refresh-token": "r",
        "client-id": "i",
        "client-secret": "s",
        "idp-issuer-url": "https://127.0.0.1:9",
    }
    return {"auth-provider": {"name": "oidc", "config": made}}


def test_an_id_token_of_oidc(kubeconfig: Path) -> None:
    user = oidc(3600)
    write(kubeconfig, user)
    token = user["auth-provider"]["config"]["id-token"]
    assert login.Login("work").headers() == {"authorization": f"Bearer {token}"}


def test_one_that_has_expired_and_cannot_be_renewed(kubeconfig: Path) -> None:
    write(kubeconfig, oidc(-3600))
    with pytest.raises(NoAccess, match="context work has no login") as caught:
        login.Login("work")
    assert "kubectl --context work get jobs" in str(caught.value.hint)


def test_one_that_its_issuer_does_not_renew(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: object, provider: object) -> None:
        raise InvalidGrantError("the session has ended")

    monkeypatch.setattr(kube_config.KubeConfigLoader, "_refresh_oidc", refused)
    write(kubeconfig, oidc(-3600))
    with pytest.raises(NoAccess, match=r"has no login: .*the session has ended"):
        login.Login("work")


def test_a_file_that_has_the_token(kubeconfig: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-a-file")
    write(kubeconfig, {"tokenFile": str(tmp_path / "token")})
    assert login.Login("work").headers() == {"authorization": "Bearer of-a-file"}


def test_a_proxy_before_the_server(kubeconfig: Path) -> None:
    write(kubeconfig, {"token": "t"}, **{"proxy-url": "http://proxy.example.com:3128"})
    proxy = login.Login("work").pool.proxy
    assert (proxy.host, proxy.port) == ("proxy.example.com", 3128)


def test_the_cluster_that_we_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("of-the-pod")
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = login.Login("")
    assert found.server == "https://10.0.0.1:443"
    assert found.headers()["authorization"].lower() == "bearer of-the-pod"
