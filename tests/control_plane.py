"""What `make test-kubernetes` starts from: the programs of a control plane, in the folder that
`KUBEBUILDER_ASSETS` names (envtest's convention), and a program that starts a cluster from them:
the one of `TRADEWIND_TEST_CLUSTER`, else `shared/kubernetes/up` beside this checkout, if there is
one. tests/clusters.py says how it is called.

    python -m tests.control_plane    prints that program; or says what is missing, and fails
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

ASSETS, PROGRAM = "KUBEBUILDER_ASSETS", "TRADEWIND_TEST_CLUSTER"
KUBE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""etcd is left to the program: a package of Python may bring it."""
BESIDE = Path(__file__).parents[2] / "shared/kubernetes/up"


def program(env: Mapping[str, str], beside: Path = BESIDE) -> tuple[str, str]:
    """That starts a cluster, and ""; or "", and what is missing for it."""
    folder = env.get(ASSETS, "")
    if not folder:
        return "", (
            f"{ASSETS} is not set\nhint: it names a folder with etcd, {', '.join(KUBE)}:"
            f" {ASSETS}=/path/to/bin make test-kubernetes"
        )
    if not Path(folder).is_dir():
        return "", f"{ASSETS} is {folder}, which is not a folder"
    lacking = [name for name in KUBE if not _found(name, folder, env)]
    if lacking:
        return "", (
            f"{folder} (of {ASSETS}) has no {', '.join(lacking)}\nhint: setup-envtest brings"
            " only etcd and kube-apiserver; dl.k8s.io/VERSION/bin/linux/amd64/NAME has the others"
        )
    named = env.get(PROGRAM, "")
    if named and not os.access(named, os.X_OK):
        return "", f"{PROGRAM} is {named}, which cannot be run"
    if not named and not os.access(beside, os.X_OK):
        return "", (
            f"{PROGRAM} is not set, and {beside} is not there\nhint: it names a program that starts"
            " a cluster from these; tests/clusters.py says how it is called"
        )
    return named or str(beside), ""


def _found(name: str, folder: str, env: Mapping[str, str]) -> bool:
    places = os.pathsep.join((folder, env.get("PATH", "")))
    return shutil.which(name, path=places) is not None


def main() -> None:
    found, missing = program(os.environ)
    if missing:
        sys.exit(f"error: there is no control plane to test in: {missing}")
    sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main()
