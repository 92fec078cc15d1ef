-- The pool of a hot topic: its newest messages, served without MongoDB. One script with several commands, so that what
-- they share stands once. Everything is one atomic step.
--
-- KEYS  1 meta (hash: run, n, floor, lease_ms, building)   2 items (sorted set, score = timestamp)
--       3 pending (hash: first n -> JSON of an extension that came too early)
-- ARGV  1 command, then
--   clock                          -> Redis' time in ms and the run id of this Redis
--   begin                          -> 1 when the caller is to build the pool, 0 when somebody does or it is there
--   install n floor t0 json...     -> 1; t0 is Redis' time in ms before MongoDB was read
--   extend first last size json... -> 1 applied, 0 waits for its predecessor or for the building, -1 no pool
--   renew n t0                     -> 1 when the pool has at least n and its lease now runs from t0
--   read low high ascending limit  -> {floor, n, json...}, or {} when the pool can't answer
--   drop
-- A pool of another run of Redis is dropped: it may be older than what was acknowledged.

local meta, items, pending = KEYS[1], KEYS[2], KEYS[3]
local LEASE_MS, BUILDING_MS, IDLE_MS, MAX_PENDING = 2000, 1000, 60000, 100

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
end

local function drop()
  redis.call('DEL', meta, items, pending)
end

-- The pool's fields, or nil where there is none of this run.
local function current()
  local fields = redis.call('HMGET', meta, 'run', 'n', 'floor', 'lease_ms', 'building')
  if not fields[1] then return nil end
  if fields[1] ~= run_id() then
    drop()
    return nil
  end
  return { n = tonumber(fields[2]), floor = tonumber(fields[3]), lease_ms = tonumber(fields[4]), building = fields[5] }
end

local function put(floor, documents, first)
  for i = first, #documents do
    local timestamp = cjson.decode(documents[i])[1]
    -- A string keeps all sixteen digits.
    redis.call('ZREMRANGEBYSCORE', items, timestamp, timestamp)
    if tonumber(timestamp) >= floor then redis.call('ZADD', items, timestamp, documents[i]) end
  end
end

local function trim(floor, size)
  local extra = redis.call('ZCARD', items) - size
  if extra <= 0 then return floor end
  redis.call('ZREMRANGEBYRANK', items, 0, extra - 1)
  local oldest = redis.call('ZRANGE', items, 0, 0, 'WITHSCORES')
  return tonumber(oldest[2])
end

-- Applies what waits and follows without gap.
local function catch_up(pool, size)
  while true do
    local waiting = redis.call('HGET', pending, pool.n + 1)
    if not waiting then break end
    local extension = cjson.decode(waiting)
    redis.call('HDEL', pending, pool.n + 1)
    put(pool.floor, extension.documents, 1)
    pool.n = extension.last
  end
  pool.floor = trim(pool.floor, size)
  redis.call('HSET', meta, 'n', pool.n, 'floor', string.format('%.0f', pool.floor))
end

local function wait_in_line(first, last)
  if redis.call('HLEN', pending) >= MAX_PENDING then return drop() end
  local documents = {}
  for i = 5, #ARGV do documents[#documents + 1] = ARGV[i] end
  redis.call('HSET', pending, first, cjson.encode({ last = last, documents = documents }))
  redis.call('PEXPIRE', pending, IDLE_MS)
end

local commands = {}

function commands.clock()
  return { tostring(now_ms()), run_id() }
end

function commands.begin()
  local pool = current()
  -- Whoever asks found the pool missing or behind. Within its lease it may still be brought up to date.
  if pool and pool.lease_ms > now_ms() then return 0 end
  drop()
  redis.call('HSET', meta, 'run', run_id(), 'n', 0, 'floor', 0, 'lease_ms', now_ms() + BUILDING_MS, 'building', 1)
  redis.call('PEXPIRE', meta, IDLE_MS)
  return 1
end

function commands.install()
  local pool = current()
  if not pool or pool.building ~= '1' then return 0 end
  pool.n, pool.floor = tonumber(ARGV[2]), tonumber(ARGV[3])
  put(pool.floor, ARGV, 6)
  -- What came while MongoDB was read, and is in what was read, is of no use any more.
  for _, first in ipairs(redis.call('HKEYS', pending)) do
    if tonumber(first) <= pool.n then redis.call('HDEL', pending, first) end
  end
  redis.call('HSET', meta, 'building', 0, 'lease_ms', string.format('%.0f', tonumber(ARGV[4]) + LEASE_MS))
  catch_up(pool, tonumber(ARGV[5]))
  redis.call('PEXPIRE', items, IDLE_MS)
  return 1
end

function commands.extend()
  local first, last, size = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local pool = current()
  if not pool then return -1 end
  if pool.building == '1' or first > pool.n + 1 then
    wait_in_line(first, last)
    return 0
  end
  if first ~= pool.n + 1 then
    drop()
    return -1
  end
  put(pool.floor, ARGV, 5)
  pool.n = last
  catch_up(pool, size)
  return 1
end

function commands.renew()
  local pool = current()
  if not pool or pool.building == '1' or pool.n < tonumber(ARGV[2]) then return 0 end
  redis.call('HSET', meta, 'lease_ms', string.format('%.0f', tonumber(ARGV[3]) + LEASE_MS))
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, IDLE_MS) end
  return 1
end

function commands.read()
  local pool = current()
  if not pool or pool.building == '1' or pool.lease_ms <= now_ms() or redis.call('HLEN', pending) > 0 then return {} end
  local low, high, ascending, limit = ARGV[2], ARGV[3], ARGV[4] == '1', ARGV[5]
  local found
  if ascending then
    found = redis.call('ZRANGEBYSCORE', items, low, high, 'LIMIT', 0, limit)
  else
    found = redis.call('ZREVRANGEBYSCORE', items, high, low, 'LIMIT', 0, limit)
  end
  local answer = { string.format('%.0f', pool.floor), pool.n }
  for _, document in ipairs(found) do answer[#answer + 1] = document end
  return answer
end

function commands.drop()
  drop()
  return 1
end

return commands[ARGV[1]]()
