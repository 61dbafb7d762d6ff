"""Each call needs the permissions that our table says, and no others; and a listing of many pages
is whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud.faces.google import discovery
from tests.cloud.faces.google.control import Control
from tests.eventually import eventually
from tests.providers.conformance import Place
from tests.providers.gcp.machines import argument, footprint, open_gcp, way
from tradewind.base.errors import NoAccess
from tradewind.providers.gcp import api
from tradewind.providers.gcp.api import PERMISSIONS, Compute, Google
from tradewind.providers.gcp.links import Links

OWNER = "gs://b/calls"


def test_every_call_of_the_table_is_one_of_google_s() -> None:
    for each in PERMISSIONS:
        assert discovery.method(each.partition(".")[0], each).id == each


def test_what_a_leg_is_allowed_is_what_the_table_says(
    cloud: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    rented = open_gcp(argument(cloud, footprint(), OWNER))
    place = Place(rented, way(instance_type="a2-highgpu-8g"))
    bought = [*rented.launch(place.request(nodes=2), 1), *rented.launch(place.request(leg=2), 1)]
    reserved = Place(rented, way(market="reserved"))
    with pytest.raises(Exception, match="no reservation"):
        rented.launch(reserved.request(leg=3), 1)
    regional = Place(rented, way(zone=""))
    bought += rented.launch(regional.request(leg=4, nodes=2), 1)
    rented.terminate([each.machine_id for each in bought])
    eventually(lambda: all(each.ended_s for each in rented.list_machines().machines))
    rented.tidy()
    google = Google()
    monkeypatch.setattr(type(google.credentials), "signer", None)
    Links(google, footprint(), OWNER).check()
    seen: dict[str, set[str]] = {}
    for each in cloud.permissions():
        if each["call"] in PERMISSIONS:
            seen.setdefault(each["call"], set()).add(each["permission"])
    assert seen.keys() == PERMISSIONS.keys()
    for call, permissions in seen.items():
        assert permissions <= set(PERMISSIONS[call]), call
    every = {name for names in PERMISSIONS.values() for name in names}
    assert {name for names in seen.values() for name in names} == every


def test_a_listing_of_several_pages_is_whole(
    cloud: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "_MOST", "2")
    rented = open_gcp(argument(cloud, footprint(), OWNER + "/pages"))
    bought = rented.launch(Place(rented, way()).request(nodes=5), 1)
    assert len(bought) == 5
    before = len(cloud.calls("compute.instances.aggregatedList"))
    assert len(rented.list_machines().machines) == 5
    assert len(cloud.calls("compute.instances.aggregatedList")) - before == 3
    rented.terminate([each.machine_id for each in bought])


def test_where_nothing_says_which_project_it_is_asked_for(
    cloud: Control, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    import json

    key = json.loads(cloud.key.read_text())
    key.pop("project_id")
    path = tmp_path / "key.json"
    path.write_text(json.dumps(key))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    for name in ("GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "GCLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")  # no gcloud
    with pytest.raises(NoAccess, match="which Google Cloud project") as caught:
        assert Google().credentials.project
    assert "GOOGLE_CLOUD_PROJECT" in str(caught.value.hint)
    monkeypatch.setenv("CLOUDSDK_CORE_PROJECT", "mine")
    assert Compute(Google(), Google().credentials.project).project == "mine"
