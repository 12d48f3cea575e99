-- Asks the prediction service of Crosscast about a job. Lua 5.1 to 5.4 with lua-socket and lua-cjson.
-- All of it takes at most LIMIT seconds; after a failure nothing is asked for PAUSE seconds.
local LIMIT, PAUSE, MOST = 0.1, 10, 262144
local have_socket, socket = pcall(require, "socket")
local have_unix, unix = pcall(require, "socket.unix")
local have_json, json = pcall(require, "cjson.safe")
local paused_until = 0
local config = dofile("@DIR@/crosscast/config.lua")

-- HTTP/1.0: the service closes when it has answered. Status and value, or nil and why.
local function exchange(path, body, deadline)
  local client = (type(unix) == "table" and unix.stream or unix)()
  local function left()
    -- A clock that was set back must not make it longer.
    client:settimeout(math.max(0.001, math.min(LIMIT, deadline - socket.gettime())), "t")
  end
  left()
  local ok, why = client:connect(config.socket)
  if ok then
    left()
    ok, why = client:send("POST " .. path .. " HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      .. "Content-Length: " .. #body .. "\r\n\r\n" .. body)
  end
  local whole, part
  if ok then
    left()
    whole, why, part = client:receive(MOST)
  end
  client:close()
  if not ok then return nil, why end
  if whole then return nil, "a longer answer than any" end
  if why ~= "closed" then return nil, why end
  local head, content = part:match("^(.-\r\n)\r\n(.*)$")
  local status = head and tonumber(head:match("^HTTP/1%.%d (%d%d%d)"))
  local length = head and tonumber(head:lower():match("\r\ncontent%-length: *(%d+)\r\n"))
  if not status or length ~= #content then return nil, "an answer that was cut off" end
  local value = json.decode(content)
  if type(value) ~= "table" then return nil, "an answer that is no JSON" end
  return status, value
end

-- The value of an answer; nil and why, where the service does not know (which is no failure) or failed.
local function ask(path, question, deadline)
  if not (have_socket and have_unix and have_json) then return nil, "lua-socket or lua-cjson is not installed" end
  local now = socket.gettime()
  if now < paused_until and paused_until - now <= PAUSE then return nil, "paused after a failure" end
  local fine, status, value = pcall(exchange, path, json.encode(question), deadline)
  if not fine then status, value = nil, status end
  if status == 200 then return value end
  if status == 404 or status == 422 then return nil, "unknown to the service" end
  paused_until = socket.gettime() + PAUSE
  return nil, status and "status " .. status or tostring(value)
end

local function number(value, least, most)
  return type(value) == "number" and value >= least and value <= most
end

-- What a comment says that a job runs: crosscast:NAME or crosscast:NAME*COUNT
local function said(comment)
  local name, count = tostring(comment or ""):match("crosscast:([%w_.+/-]+)%*?(%d*)")
  if not name or #name > 200 or #count > 12 then return nil end
  return { name = name, count = math.max(1, tonumber(count) or 1) }
end

-- The device with the least time, of an answer in which each is as it should be.
local function fastest(answer, known)
  local devices = type(answer.job) == "table" and answer.job.devices
  if type(devices) ~= "table" or #devices == 0 then return nil end
  local best
  for _, each in ipairs(devices) do
    local sound = type(each) == "table" and type(each.device) == "string" and number(each.time_s, 0, 1e12)
      and number(each.low_s, 0, each.time_s) and number(each.high_s, each.time_s, 1e15)
      and (not known or known[each.device]) and each.device:match("^[%w_.+-]+$")
    if not sound then return nil end
    if not best or each.time_s < best.time_s then best = each end
  end
  return best
end

-- The caps that are chosen, as text; nil where none is.
local function caps(name, deadline)
  local answer = ask("/v1/choose", { profile = name, power_cap_w = config.power_cap_w }, deadline)
  local at = answer and type(answer.configuration) == "table" and answer.configuration.settings
  if type(at) ~= "table" or not number(answer.power_w, 0, 1e6) then return nil end
  local words = {}
  for _, key in ipairs({ "cpu_cap_w", "gpu_cap_w" }) do
    if number(at[key], 1, 99999) then table.insert(words, string.format("%s=%d", key, math.floor(at[key]))) end
  end
  return table.concat(words, " "), answer.power_w
end

-- What is to be set for a job that may run in partitions (name to most minutes; nil: any that is configured).
-- nil and why, where nothing is.
local function decided(what, partitions)
  local deadline = have_socket and socket.gettime() + LIMIT or 0
  local question, known = { profile = what.name, ["repeat"] = what.count }, nil
  if next(config.devices) ~= nil then
    known, question.devices = {}, {}
    for device, partition in pairs(config.devices) do
      if not partitions or partitions[partition] then
        known[device] = partition
        table.insert(question.devices, device)
      end
    end
    if #question.devices == 0 then return nil, "no partition whose device the configuration names" end
    table.sort(question.devices) -- The same question has the same bytes, whose answer the service has kept.
  end
  local answer, why = ask("/v1/predict", question, deadline)
  if not answer then return nil, why end
  local best = fastest(answer, known)
  if not best then
    paused_until = socket.gettime() + PAUSE
    return nil, "a wrong answer"
  end
  local partition = known and known[best.device]
  local minutes = math.max(1, math.ceil(config.factor * best.high_s / 60))
  minutes = math.min(minutes, partition and partitions and partitions[partition] or 525600, 525600)
  local found = { partition = partition, minutes = partition and minutes, seconds = best.time_s }
  found.note = string.format("crosscast: time_s=%.4g low_s=%.4g high_s=%.4g device=%s", best.time_s, best.low_s,
    best.high_s, best.device)
  if config.power_cap_w then
    local power
    found.caps, power = caps(what.name, deadline)
    if found.caps then found.note = found.note .. string.format(" power_w=%.4g %s", power, found.caps) end
  end
  return found
end

return { config = config, said = said, decided = decided }
