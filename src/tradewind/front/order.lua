-- Who waits for a replica with room, in which order. First come, first served makes everybody late
-- after one burst, until it is worked off. So whoever cannot be in time any more is given the place
-- of one who comes so much later, and those who can be go first: only what is too much is late.
-- Called where requests wait already, so it costs nothing while there is room.
--
-- HAProxy tells how many wait, and not who. It serves by the places that were given here, so when
-- fewer wait than were let in, those with the first places have gone.
--
-- HAProxy interrupts what runs for long, and lets the next request in here meanwhile, or never comes
-- back where the client has gone: so one is at work at a time, and each step leaves whole lists.
local in_time_s = tonumber(os.getenv("TRADEWIND_IN_TIME_S"))
local patient_s = tonumber(os.getenv("TRADEWIND_PATIENT_S"))
local forget_s = tonumber(os.getenv("TRADEWIND_QUEUE_WAIT_S"))
local measure_s = 0.5
local waiting = { fresh = { first = 1, last = 0 }, late = { first = 1, last = 0 } }
local begun, since, rate = 0, nil, nil
local busy, stuck_s = nil, 1 -- since when one is at work; after so long it never comes back

local function size(list) return list.last - list.first + 1 end

local function push(list, place)
  list[list.last + 1] = place
  list.last = list.last + 1
end

local function pop(list)
  if size(list) <= 0 then return end
  local first = list.first
  list.first = first + 1
  list[first] = nil
end

local function next_list()
  local fresh, late = waiting.fresh, waiting.late
  if size(late) <= 0 then return fresh end
  if size(fresh) <= 0 then return late end
  return fresh[fresh.first] <= late[late.first] and fresh or late
end

-- Of those with a place before one who comes now or soon: whether they are more than so many.
local function more_ahead(most, soon)
  local found, late = size(waiting.fresh), waiting.late
  for n = late.first, late.last do
    if found > most or late[n] > soon then break end
    found = found + 1
  end
  return found > most
end

local function placed(txn, now)
  local queued = txn.f:queue("replicas")
  while size(waiting.fresh) + size(waiting.late) > math.max(queued, 0) do
    pop(next_list())
    begun = begun + 1
  end
  if since == nil or now - since > forget_s then
    begun, since = 0, now -- nobody has waited for long
  elseif now - since >= measure_s then
    local seen = begun / (now - since)
    rate = rate and (rate + seen) / 2 or seen
    begun, since = 0, now
  end
  if rate == nil or not more_ahead(rate * in_time_s, now + in_time_s) then
    push(waiting.fresh, now)
    return
  end
  -- In turn after the others who are late, and in any case before everybody gives up.
  local late = waiting.late
  local place = now + math.min(patient_s, math.max(0.75 * forget_s - queued / rate, 0))
  if size(late) > 0 then place = math.max(place, late[late.last]) end
  push(late, place)
  txn:set_priority_offset(math.floor((place - now) * 1000))
end

core.register_action("order", { "http-req" }, function(txn)
  local clock = core.now()
  local now = clock.sec + clock.usec / 1e6
  if busy and now - busy < stuck_s then return end -- first come, first served
  busy = now
  local right, wrong = pcall(placed, txn, now)
  busy = nil
  if not right then core.Alert("order: " .. tostring(wrong)) end
end)
