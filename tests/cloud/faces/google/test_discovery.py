"""Requests as Google's discovery documents have them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud.faces.google.asking import instance, spot
from tests.cloud.faces.google.discovery import Invalid, check, match


@pytest.mark.parametrize(
    ("http", "path", "method"),
    [
        ("POST", "/compute/v1/projects/p/zones/z/instances", "compute.instances.insert"),
        ("POST", "/tpu/v2/projects/p/locations/z/nodes", "tpu.projects.locations.nodes.create"),
        (
            "GET",
            "/secretmanager/v1/projects/p/secrets/s/versions/latest:access",
            "secretmanager.projects.secrets.versions.access",
        ),
        ("GET", "/storage/v1/b/runs/o/a%2Fb", "storage.objects.get"),
    ],
)
def test_a_path_leads_to_its_method(http: str, path: str, method: str) -> None:
    found = match(http, path)
    assert found is not None
    assert found[0].id == method


def test_parameters_of_a_path_are_decoded() -> None:
    found = match("GET", "/storage/v1/b/runs/o/a%2Fb")
    assert found is not None
    assert found[1] == {"bucket": "runs", "object": "a/b"}
    assert match("GET", "/compute/v1/projects/p/zones/z/machines") is None
    assert match("GET", "/nothing/v1/x") is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": "red"}, "Unknown name \"colour\" at 'resource'"),
        ({"scheduling": {"provisioningModel": "CHEAP"}}, "provisioningModel': 'CHEAP'"),
        ({"disks": {}}, "Invalid value at 'resource.disks' \\(array\\)"),
        ({"canIpForward": "yes"}, "Invalid value at 'resource.canIpForward' \\(boolean\\)"),
        ({"scheduling": {"maxRunDuration": {"seconds": "a while"}}}, "int64"),
        ({"labels": {"run": 1}}, "Invalid value at 'resource.labels.run' \\(string\\)"),
    ],
)
def test_what_is_no_such_body(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        check("compute", "compute.instances.insert", {**instance("a"), **change})


def test_a_body_that_is_right() -> None:
    body = instance("a", scheduling=spot(maxRunDuration={"seconds": "3600"}))
    check("compute", "compute.instances.insert", body)
    del body["name"]
    with pytest.raises(Invalid, match=r"'resource\.name' not specified"):
        check("compute", "compute.instances.insert", body)
