"""Who we are to a cluster: by a context of the user's kubeconfig, as kubectl would be.

The official library reads it: certificates, tokens and their files, exec plugins, OIDC, proxies,
and the service account of a pod. What it hides is found out here: of an exec plugin that fails it
only writes to the log, and then asks as nobody.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tradewind.base import endpoints
from tradewind.base.errors import MissingExtra, NoAccess, NotFound

KUBECONFIG = "KUBECONFIG"
_USUAL = "~/.kube/config"
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
IN_CLUSTER = "in-cluster"
"""What the cluster that we are in ourselves is called, for people."""


class Login:
    """Safe from several threads."""

    def __init__(self, context: str) -> None:
        """`context`: of the kubeconfig; "": the cluster that we are in ourselves."""
        self.context = context
        self._config = loaded(context)
        self.server: str = self._config.host.rstrip("/")
        self.pool = _pool(self._config)
        self._lock = threading.Lock()

    def headers(self) -> dict[str, str]:
        """A token that has expired is renewed here, by the library."""
        with self._lock:
            token = self._config.get_api_key_with_prefix("BearerToken", "authorization")
        return {"authorization": token} if token else {}


def path(env: Mapping[str, str] = os.environ) -> str:
    """Of the kubeconfig, or several with a colon between them, as kubectl has it."""
    return env.get(KUBECONFIG) or _USUAL


def contexts() -> tuple[list[str], str]:
    """Of the kubeconfig, and which of them is the present one ("": none). Empty where there is no
    kubeconfig."""
    config = _library()
    if not _files():
        return [], ""
    with _understood("the kubeconfig"):
        merged = config.kube_config.KubeConfigMerger(path()).config
        found = merged.safe_get("contexts") or () if merged else ()
        names = [str(each.value.get("name", "")) for each in found]
        return names, str((merged and merged.safe_get("current-context")) or "")
    raise AssertionError("unreachable")


def shown(context: str) -> str:
    return f"context {context}" if context else "the cluster that this is run in"


def loaded(context: str) -> Any:
    """The library's Configuration."""
    config = _library()
    from kubernetes.client.configuration import Configuration

    found = Configuration()
    found.retries = None
    if not context:
        with _understood("the cluster that this is run in"):
            config.load_incluster_config(client_configuration=found)
        return found
    _check(context)
    heard: list[str] = []
    try:
        with _understood(f"context {context}"), _overheard(heard):
            config.load_kube_config(path(), context=context, client_configuration=found)
    except _not_renewed() as error:
        raise _no_login(context, " ".join(str(error).split())) from None
    endpoints.check(found.host, os.environ)  # a token in clear
    if heard and not found.api_key and not found.cert_file:
        raise _no_login(context, heard[-1])
    return found


def _not_renewed() -> tuple[type[Exception], ...]:
    """What the library lets through when a token of OIDC has expired: its issuer does not answer,
    or says no."""
    import urllib3
    from kubernetes.client.exceptions import OpenApiException

    found: list[type[Exception]] = [urllib3.exceptions.HTTPError, OpenApiException]
    with suppress(ImportError):  # what the library itself renews by, as long as it does
        from oauthlib.oauth2 import OAuth2Error

        found.append(OAuth2Error)
    return tuple(found)


def _no_login(context: str, why: str) -> NoAccess:
    return NoAccess(
        f"context {context} has no login: {why}",
        hint=f"log in again; `kubectl --context {context} get jobs` must work",
    )


def _check(context: str) -> None:
    names, _ = contexts()
    if context in names:
        return
    where = path()
    if not _files():
        raise NotFound(
            f"there is no kubeconfig at {where}, and so no context {context}",
            hint=f"name it: export {KUBECONFIG}=…, or let your cloud write one (gcloud container"
            " clusters get-credentials, aws eks update-kubeconfig, az aks get-credentials)",
        )
    raise NotFound(
        f"the kubeconfig {where} has no context {context}",
        hint="kubectl config get-contexts lists them; " + (", ".join(names[:8]) or "it has none"),
        choices=names,
    )


def _files() -> list[Path]:
    paths = [Path(each).expanduser() for each in path().split(os.pathsep) if each]
    return [each for each in paths if each.is_file()]


def in_cluster(env: Mapping[str, str] = os.environ) -> bool:
    return _IN_CLUSTER in env


def _library() -> Any:
    try:
        from kubernetes import config
    except ImportError:
        raise MissingExtra(
            "clusters are asked by the package kubernetes, which is not installed",
            hint="pip install 'tradewind[kubernetes]'",
        ) from None
    return config


def _pool(config: Any) -> Any:
    from kubernetes.client.rest import RESTClientObject

    return RESTClientObject(config).pool_manager


@contextmanager
def _understood(what: str) -> Iterator[None]:
    """A kubeconfig may hold anything at all."""
    import yaml
    from kubernetes.config.config_exception import ConfigException

    try:
        yield
    except ConfigException as error:
        raise NoAccess(f"{what} cannot be used: {error}", hint=_HINT) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError) as error:
        words = " ".join(str(error).split())
        raise NoAccess(f"{what} cannot be understood: {words}", hint=_HINT) from None


_HINT = "kubectl config view shows what is in it"


@contextmanager
def _overheard(heard: list[str]) -> Iterator[None]:
    """What the library writes to the log, instead of an error, in this thread."""
    mine = threading.get_ident()

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if threading.get_ident() == mine and record.levelno >= logging.ERROR:
                heard.append(" ".join(record.getMessage().split())[:400])

    ear = Ear()
    logging.getLogger().addHandler(ear)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(ear)
