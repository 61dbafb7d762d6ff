"""Who waits is put in order by HAProxy's own Lua, which interrupts what runs for long."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

# Tasks run as requests do: interrupted after so many instructions, one beside the other.
WORLD = """
local action
local register = core.register_action
core.register_action = function(_, _, given) action = given end
dofile("{order}")
local function upvalue(given, wanted)
  for n = 1, 60 do
    local name, value = debug.getupvalue(given, n)
    if name == wanted then return value end
    if type(value) == "function" and name ~= nil and value ~= given then
      local found = upvalue(value, wanted)
      if found ~= nil then return found end
    end
  end
end
local queued, left, wrong = 0, 20, 0
local txn = {{ f = {{}}, set_priority_offset = function() end }}
function txn.f:queue() return queued end
local function ended()
  local waiting = upvalue(action, "waiting")
  local fresh, late = waiting.fresh, waiting.late
  local out = io.open("{out}", "w")
  out:write(fresh.last - fresh.first + 1, " ", late.last - late.first + 1, " ", wrong, "\\n")
  out:close()
  os.exit(0)
end
core.register_task(function()
  for n = 1, 3000 do queued = n; action(txn) end
  queued = 1
  for _ = 1, 20 do
    core.register_task(function()
      if not pcall(action, txn) then wrong = wrong + 1 end
      left = left - 1
      if left == 0 then ended() end
    end)
  end
end)
"""


@pytest.mark.system
def test_requests_that_come_while_one_is_put_in_order_leave_the_lists_whole(tmp_path: Path) -> None:
    haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    assert haproxy, "haproxy is not installed"
    order, out = tmp_path / "order.lua", tmp_path / "out"
    order.write_bytes(resources.files("tradewind.front").joinpath("order.lua").read_bytes())
    (tmp_path / "world.lua").write_text(WORLD.format(order=order, out=out))
    (tmp_path / "haproxy.cfg").write_text(
        f"global\n    tune.lua.forced-yield 100\n    nbthread 1\n"
        f"    lua-load {tmp_path}/world.lua\n"
        "defaults\n    timeout client 1s\n    timeout server 1s\n    timeout connect 1s\n"
        f"listen here\n    bind unix@{tmp_path}/a.sock\n"
    )
    times = {"IN_TIME_S": "1", "PATIENT_S": "10", "QUEUE_WAIT_S": "30"}
    subprocess.run(
        [haproxy, "-db", "-f", tmp_path / "haproxy.cfg"], check=False, timeout=30,
        env={f"TRADEWIND_{name}": value for name, value in times.items()},
    )  # fmt: skip
    fresh, late, wrong = map(int, out.read_text().split())
    assert wrong == 0
    # One waited, and one of those that came was put in its place.
    assert fresh >= 0
    assert late >= 0
    assert 1 <= fresh + late <= 3
