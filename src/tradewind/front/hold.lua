-- Requests that find no replica wait here for the first one: HAProxy's own queue is for replicas
-- that are busy, and with none it answers 503 at once. The configuration says for how long, and how
-- many may wait.
local limit_s = tonumber(os.getenv("TRADEWIND_HOLD_S"))
local most = tonumber(os.getenv("TRADEWIND_HOLD_MOST"))
local step_ms = 50
local waiting = 0

core.register_action("hold", { "http-req" }, function(txn)
  if waiting >= most then
    txn:set_var("txn.full", true)
    return
  end
  waiting = waiting + 1
  local waited_ms = 0
  while txn.f:nbsrv("replicas") == 0 and waited_ms < limit_s * 1000 do
    core.msleep(step_ms)
    waited_ms = waited_ms + step_ms
  end
  waiting = waiting - 1
  txn:set_var("txn.held_ms", waited_ms)
end)

core.register_cli({ "show", "held" }, "show held : requests that wait for a first replica",
  function(applet) applet:send(waiting .. "\n") end)
