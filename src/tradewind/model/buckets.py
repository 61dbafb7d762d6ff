"""The kinds of buckets there are, by the scheme of their addresses: whose they are, and by which
variables one is somebody to them. What else differs between them is in store/handles.py."""

from __future__ import annotations

from msgspec import Struct


class Bucket(Struct, frozen=True, kw_only=True):
    words: str
    home: str
    """The provider whose regions they are in, as the catalog names it."""
    credentials: tuple[str, ...]
    """Variables, any of which says who we are."""
    account: tuple[str, ...]
    """Variables, any of which says that there is an account to be somebody at."""
    address: tuple[str, ...]
    """Variables that say where it is, and nothing of who may open it."""
    kept: str
    """Where the cloud's own tools keep a login, below a user's home."""
    prefixes: tuple[str, ...]
    """Of all variables that a job needs to read and write there."""


_AZURE_ACCOUNT = ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME")
_AZURE = Bucket(
    words="an Azure Blob",
    home="azure",
    credentials=("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID"),
    account=_AZURE_ACCOUNT,
    address=(*_AZURE_ACCOUNT, "AZURE_STORAGE_ENDPOINT"),
    kept=".azure",
    prefixes=("AZURE_",),
)
_AWS = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
_GOOGLE = "GOOGLE_APPLICATION_CREDENTIALS"

STORES = {
    "s3": Bucket(
        words="an S3",
        home="aws",
        credentials=_AWS,
        account=_AWS,
        address=("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
        kept=".aws",
        prefixes=("AWS_",),
    ),
    "gs": Bucket(
        words="a Google Cloud Storage",
        home="gcp",
        credentials=("STORAGE_EMULATOR_HOST", _GOOGLE),
        account=(_GOOGLE,),
        address=("STORAGE_EMULATOR_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"),
        kept=".config/gcloud/application_default_credentials.json",
        prefixes=("GOOGLE_", "CLOUDSDK_", "STORAGE_EMULATOR_HOST"),
    ),
    "az": _AZURE,
}
"""Those that runs can be kept in."""
_READ = STORES | {"abfs": _AZURE, "abfss": _AZURE}


def home(address: str) -> str | None:
    """The provider of the bucket that data lies in; None where its address does not say."""
    found = _READ.get(address.partition("://")[0])
    return found.home if found else None
