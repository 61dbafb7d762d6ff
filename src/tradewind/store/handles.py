"""Obstore's handles of buckets: where to go and as whom, from the variables that the clouds' own
tools use (docs/store.md), and its errors in one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tradewind.base import endpoints
from tradewind.base.errors import MissingExtra, NoAccess
from tradewind.model import buckets
from tradewind.store import awskeys, googlekeys, regions
from tradewind.store.lending import held

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

    Handle = S3Store | GCSStore | AzureStore

_TOOK = re.compile(r" in [\d.]+[mµn]?s\b(, after \d+ retries)?(, \w+: \w+)*")
_ANSWER = re.compile(
    r"status code: (\d{3}[\w ]*):.*?<Code>([^<]+)</Code>(?:.*?<Message>([^<]*)</Message>)?"
)
"""What a server said: its number, its code and its words, within XML."""
_STRANGERS = (
    "ExpiredToken",  # of all these S3 says 400 or 403
    "InvalidToken",
    "TokenRefreshRequired",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "SSOToken",
    "UnauthorizedSSO",
    "TokenRetrievalError",
)


def handle(
    scheme: str,
    bucket: str,
    env: Mapping[str, str],
    *,
    retries: int,
    timeout_s: float,
    part: str = "",
) -> Handle:
    """`part`: of a pass that is several (lending/held.py)."""
    try:
        from obstore import store
        from obstore.exceptions import BaseError
    except ImportError:
        raise MissingExtra(
            f"{buckets.STORES[scheme].words} store needs the cloud extra",
            hint="pip install 'tradewind[cloud]'",
        ) from None
    more: dict[str, Any] = {
        "client_options": {"timeout": timedelta(seconds=timeout_s), "connect_timeout": "5s"},
        "retry_config": {
            "max_retries": retries,
            "retry_timeout": timedelta(seconds=60),
            "backoff": {"max_backoff": timedelta(seconds=5)},
        },
    }
    lent = held.provider(scheme, bucket, env, part)
    if lent is not None:
        more["credential_provider"] = lent
    build, config = {"s3": _s3, "gs": _gs, "az": _az}[scheme](store, env, more)
    endpoint = endpoint_of(scheme, env)
    endpoints.check(endpoint, env)
    if scheme == "s3":
        config["region"] = regions.known(endpoint, bucket, env) or config["region"]
    if endpoints.is_plain(endpoint):
        more["client_options"]["allow_http"] = True
    try:
        made: Handle = build(bucket, config=config, **more)
    except (BaseError, ValueError) as error:
        raise NoAccess(
            f"{scheme}://{bucket} cannot be opened: {first_words(error)}",
            hint="see docs/store.md for the variables that say where it is and who you are",
        ) from None
    return made


def endpoint_of(scheme: str, env: Mapping[str, str]) -> str:
    """Where the variables lead instead of the cloud's own address; "" where they do not."""
    named = {
        "s3": env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL"),
        "gs": googlekeys.endpoint(env),
        "az": env.get("AZURE_STORAGE_SERVICE_ENDPOINT") or env.get("AZURE_STORAGE_ENDPOINT"),
    }.get(scheme)
    return (named or "").rstrip("/")


def _s3(store: Any, env: Mapping[str, str], more: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    config: dict[str, Any] = {"virtual_hosted_style_request": False}
    if endpoint := endpoint_of("s3", env):
        config["endpoint"] = endpoint
    config["region"] = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"
    if "credential_provider" in more:  # a pass
        return store.S3Store, config
    for name in ("access_key_id", "secret_access_key", "session_token"):
        if env.get(f"AWS_{name.upper()}"):
            config[name] = env[f"AWS_{name.upper()}"]
    own = {"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"}
    own |= {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"}
    if env.get("AWS_PROFILE") or not any(env.get(name) for name in own):
        # Profiles and single sign-on are boto3's business, if it is there.
        try:
            from obstore.auth.boto3 import Boto3CredentialProvider

            session = awskeys.session()
        except ImportError:
            return store.S3Store, config
        more["credential_provider"] = Boto3CredentialProvider(session)
        if session.region_name and not env.get("AWS_REGION"):
            config["region"] = session.region_name
    elif env.get("AWS_ACCESS_KEY_ID") and not env.get("AWS_SECRET_ACCESS_KEY"):
        raise NoAccess(
            "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not",
            hint="set both; or neither, and AWS_PROFILE",
        )
    return store.S3Store, config


def _gs(store: Any, env: Mapping[str, str], more: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    config: dict[str, Any] = {}
    if endpoint := endpoint_of("gs", env):
        config["base_url"] = endpoint
    if env.get(googlekeys.EMULATOR):
        # It asks for no name; `skip_signature` would still ask Google for one to write.
        more.setdefault("credential_provider", lambda: {"token": "emulator", "expires_at": None})
    elif "credential_provider" not in more and (keys := googlekeys.provider(env)):
        more["credential_provider"] = keys
    return store.GCSStore, config


def _az(store: Any, env: Mapping[str, str], more: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    config: dict[str, Any] = {}
    account = env.get("AZURE_STORAGE_ACCOUNT") or env.get("AZURE_STORAGE_ACCOUNT_NAME")
    if not account:
        raise NoAccess(
            "no Azure storage account is named",
            hint="set AZURE_STORAGE_ACCOUNT, and AZURE_STORAGE_KEY or a login of `az`",
        )
    config["account_name"] = account
    key = env.get("AZURE_STORAGE_KEY") or env.get("AZURE_STORAGE_ACCOUNT_KEY")
    if "credential_provider" in more:
        pass  # which is who we are
    elif key:
        config["account_key"] = key
    elif env.get("AZURE_STORAGE_SAS_TOKEN"):
        config["sas_key"] = env["AZURE_STORAGE_SAS_TOKEN"]
    elif not env.get("AZURE_CLIENT_ID"):
        config["use_azure_cli"] = True
    if endpoint := endpoint_of("az", env):
        config["endpoint"] = endpoint
    return store.AzureStore, config


def first_words(error: Exception) -> str:
    """One line: obstore appends whole chains of causes, with debugging output, and how long it
    took, which would make the same trouble look new each time."""
    text = " ".join(str(error).split("Debug source:")[0].split())
    text = _TOOK.sub("", text)
    said = _ANSWER.search(text)
    if said:  # the way there, and its address, are of no use to anybody
        text = ": ".join(part for part in said.groups() if part)
    return text if len(text) <= 300 else text[:299] + "…"


def is_stranger(error: Exception) -> bool:
    """Not allowed in because of who we are, whatever we might do there."""
    return any(sign in str(error) for sign in _STRANGERS)


def who_hint(error: Exception, url: str) -> str:
    if url.startswith("gs://"):
        bucket = "/".join(url.split("/")[:3])
        return (
            f"names of buckets are everyone's: is it yours? `gcloud storage ls {bucket}` tries it;"
            " `gcloud auth application-default login` renews who you are"
        )
    if is_stranger(error):
        return "renew them: `aws sso login`, or new keys; `aws sts get-caller-identity` tries them"
    if "RequestTimeTooSkewed" in str(error):
        return "this computer's clock is wrong: `timedatectl` tells"
    return "check the credentials in the environment, and what they permit"
