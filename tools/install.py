"""Installs what it is told into the environment of the Python that runs it, for the Makefile.

uv does in seconds what takes pip minutes, and is itself installed by pip. It reads settings of its
own, so pip's (its files and PIP_…: indexes, links, certificates, proxy) are carried over. Where uv
cannot be had, or cannot do it, pip does it, and that is said.

On Linux without an NVIDIA GPU, PyTorch is its build for CPUs: the other one brings gigabytes of
CUDA. Where only that one can be had this fails and says so; TORCH=any takes whichever there is.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
PIP = [sys.executable, "-m", "pip"]

# pip's name of a setting, and uv's variable with what separates several.
CARRIED = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "retries": ("UV_HTTP_RETRIES", " "),
    "proxy": ("ALL_PROXY", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "client-cert": ("SSL_CLIENT_CERT", " "),
}


def pip_settings(listed: str) -> dict[str, str]:
    """What `pip config list` printed, by name: variables go before the section for installing, and
    that before the one for everything."""
    found: dict[str, tuple[int, str]] = {}
    for line in listed.splitlines():
        match = re.fullmatch(r"(global|install|:env:)\.([\w-]+)=(.*)", line)
        if match:
            weight = ("global", "install", ":env:").index(match[1])
            if weight >= found.get(match[2], (0, ""))[0]:
                found[match[2]] = weight, str(ast.literal_eval(match[3]))
    return {name: value for name, (_, value) in found.items()}


def uv_variables(settings: dict[str, str]) -> dict[str, str]:
    variables = {
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip: the best version of all indexes
        "UV_SYSTEM_CERTS": "true",  # as pip: the certificates that the computer trusts
        "UV_PYTHON_DOWNLOADS": "never",
    }
    for name, value in settings.items():
        if name in CARRIED and value.split():
            variable, between = CARRIED[name]
            variables[variable] = between.join(value.split())
    return variables


def uv_options(settings: dict[str, str]) -> list[str]:
    """What it has no variable for."""
    said = settings.get("no-index", "").lower()
    return ["--no-index"] if said in ("1", "y", "yes", "t", "true", "on") else []


def is_reachable(url: str) -> bool:
    """Asked first: pip would wait for minutes."""
    try:
        with urllib.request.urlopen(f"{url}/torch/", timeout=3):
            return True
    except (OSError, ValueError):
        return False


def wants_cpu_builds() -> bool:
    """Elsewhere the ordinary build is the right one."""
    return (
        sys.platform == "linux"
        and not Path("/proc/driver/nvidia").exists()
        and os.environ.get("TORCH") != "any"
    )


def has_uv() -> bool:
    if find_spec("uv") is None:
        found = subprocess.run([*PIP, "install", "-qq", "-c", str(ROOT / "constraints.txt"), "uv"])
        if found.returncode:
            print(
                "uv cannot be had from here: pip installs everything instead, which takes minutes"
            )
            return False
    return True


def main(wanted: list[str]) -> int:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    constraints = ROOT / "constraints.txt"
    options = ["-c", str(constraints)]
    reachable = True
    with tempfile.TemporaryDirectory() as folder:
        if wants_cpu_builds():
            torch = next(
                line for line in constraints.read_text().splitlines() if line.startswith("torch==")
            )
            cpu = Path(folder) / "cpu.txt"
            cpu.write_text(f"{torch}+cpu\n")
            options += ["-c", str(cpu)]
            reachable = is_reachable(CPU_BUILDS)
            if reachable:
                options += ["--extra-index-url", CPU_BUILDS]
        if has_uv():
            listed = subprocess.run([*PIP, "config", "list"], stdout=subprocess.PIPE, text=True)
            settings = pip_settings(listed.stdout)
            uv = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable]
            options += uv_options(settings)
            variables = {**uv_variables(settings), **os.environ}
            if subprocess.run([*uv, *options, *wanted], env=variables).returncode == 0:
                return 0
            print("uv could not install it: pip tries, which takes minutes")
        code = subprocess.run([*PIP, "install", *options, *wanted]).returncode
    if code and not reachable:
        print(
            f"PyTorch's build for CPUs was asked for, and {CPU_BUILDS} does not answer. hint: where"
            " the other build is all there is (with CUDA, gigabytes): TORCH=any make …; for a wheel"
            " of your own: PIP_FIND_LINKS=its folder"
        )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
