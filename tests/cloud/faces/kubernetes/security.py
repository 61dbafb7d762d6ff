"""The pod security levels "baseline" and "restricted", and the words of whoever is refused by them.

Known lies: of "baseline" only what pods of this project could trip over: host namespaces, host
paths, host ports, privilege, added capabilities, unconfined profiles. Exemptions and levels of
older versions are not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.cloud.faces.kubernetes.store import Obj

_VOLUMES = (
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
    *("persistentVolumeClaim", "projected", "secret"),
)
_BASELINE_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)


def violations(spec: Obj, level: str) -> list[str]:
    if level not in ("baseline", "restricted"):
        return []
    found = list(_baseline(spec))
    return found + (list(_restricted(spec)) if level == "restricted" else [])


def _containers(spec: Obj) -> list[Obj]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _named(found: list[Obj]) -> str:
    names = ", ".join(f'"{each["name"]}"' for each in found)
    return f"container{'s' if len(found) > 1 else ''} {names}"


def _context(value: Obj) -> Obj:
    return dict(value.get("securityContext") or {})


def _baseline(spec: Obj) -> Iterator[str]:
    hosts = [each for each in ("hostNetwork", "hostPID", "hostIPC") if spec.get(each)]
    if hosts:
        yield f"host namespaces ({', '.join(f'{each}=true' for each in hosts)})"
    bad = [each for each in _containers(spec) if _context(each).get("privileged")]
    if bad:
        yield f"privileged ({_named(bad)} must not set securityContext.privileged=true)"
    bad = [
        each
        for each in _containers(spec)
        if set((_context(each).get("capabilities") or {}).get("add") or ())
        - set(_BASELINE_CAPABILITIES)
    ]
    if bad:
        added = sorted({one for each in bad for one in _context(each)["capabilities"]["add"]})
        words = ", ".join(f'"{each}"' for each in added)
        yield (
            f"non-default capabilities ({_named(bad)} must not include {words} in "
            "securityContext.capabilities.add)"
        )
    paths = [each["name"] for each in spec.get("volumes") or () if "hostPath" in each]
    if paths:
        words = ", ".join(f'"{each}"' for each in paths)
        yield f"hostPath volumes (volume{'s' if len(paths) > 1 else ''} {words})"
    ports = [
        each
        for each in _containers(spec)
        if any(one.get("hostPort") for one in each.get("ports") or ())
    ]
    if ports:
        yield f"hostPort ({_named(ports)} uses hostPort)"


def _restricted(spec: Obj) -> Iterator[str]:
    bad = [
        each
        for each in _containers(spec)
        if _context(each).get("allowPrivilegeEscalation") is not False
    ]
    if bad:
        yield (
            f"allowPrivilegeEscalation != false ({_named(bad)} must set "
            "securityContext.allowPrivilegeEscalation=false)"
        )
    bad = [
        each
        for each in _containers(spec)
        if "ALL" not in ((_context(each).get("capabilities") or {}).get("drop") or ())
    ]
    if bad:
        yield (
            f"unrestricted capabilities ({_named(bad)} must set "
            'securityContext.capabilities.drop=["ALL"])'
        )
    volumes = [
        each for each in spec.get("volumes") or () if not any(sort in each for sort in _VOLUMES)
    ]
    if volumes:
        words = ", ".join(f'"{each["name"]}"' for each in volumes)
        sort = next(name for name in volumes[0] if name != "name")
        yield f'restricted volume types (volume {words} uses restricted volume type "{sort}")'
    pod = _context(spec)
    bad = [
        each
        for each in _containers(spec)
        if _context(each).get("runAsNonRoot", pod.get("runAsNonRoot")) is not True
    ]
    if bad:
        yield (
            f"runAsNonRoot != true (pod or {_named(bad)} must set "
            "securityContext.runAsNonRoot=true)"
        )
    bad = [each for each in _containers(spec) if _context(each).get("runAsUser") == 0]
    if pod.get("runAsUser") == 0:
        yield "runAsUser=0 (pod must not set runAsUser=0)"
    elif bad:
        yield f"runAsUser=0 ({_named(bad)} must not set runAsUser=0)"
    outer = (pod.get("seccompProfile") or {}).get("type")
    good = ("RuntimeDefault", "Localhost")
    bad = [
        each
        for each in _containers(spec)
        if (_context(each).get("seccompProfile") or {}).get("type", outer) not in good
    ]
    if bad:
        yield (
            f"seccompProfile (pod or {_named(bad)} must set securityContext.seccompProfile.type to "
            '"RuntimeDefault" or "Localhost")'
        )
