-- A hot page: the newest messages of a hot topic, served without MongoDB. One script with several commands, so that
-- they share code. Each call is one atomic step.
--
-- KEYS  1 meta (hash: run, n, known, floor, count, lease_ms, builder)   2 items (sorted set, score = timestamp)
--       3 pending (hash: first n -> JSON of an extension that arrived before its predecessor)
-- ARGV  1 command, then
--   clock                               -> Redis' time in ms
--   begin builder                       -> 1 if the caller must build the page, 0 if it exists or another process builds it
--   install builder n floor t0 size json... -> 1, or 0 if another process builds; t0 is Redis' time before MongoDB was read
--   extend first last size json...      -> 1 applied, 0 kept until it can be applied, -1 there is no page
--   require n                           -> 1: the page now answers only if it contains everything up to n
--   renew n t0                          -> 1 if the page contains at least n; its lease now runs from t0
--   read low high ascending limit       -> {floor, json...}, or {} if the page cannot answer
--   drop
-- A page of another run of Redis is dropped, since it may be older than acknowledged changes. An incomplete or malformed
-- page is dropped too: Redis may have evicted a part of it, and other programs write to Redis.

local meta, items, pending = KEYS[1], KEYS[2], KEYS[3]
local LEASE_MS, BUILDING_MS, IDLE_MS, MAX_PENDING = 2000, 1000, 60000, 100

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
end

local function integer(number)
  return string.format('%.0f', number)
end

-- Deletes the page. Fails on a server that refuses writes, even if there is no page. Sentinel may then have replaced this
-- master, so that readers use another server, and the caller must learn that its change has reached no reader.
local function drop()
  redis.call('DEL', meta, items, pending)
end

-- A lease that ends later than a lease that begins now was granted before the clock was set back.
local function is_sound(page)
  return page.run == run_id() and page.lease_ms <= now_ms() + LEASE_MS and redis.call('ZCARD', items) == page.count
end

-- Returns the page, or nil if none is usable. `known` is the highest n that was reported to any client.
local function usable_page()
  local fields = redis.call('HMGET', meta, 'run', 'n', 'known', 'floor', 'count', 'lease_ms', 'builder')
  if not fields[1] then return nil end
  local page = { run = fields[1], builder = fields[7] }
  for i, name in ipairs({ 'n', 'known', 'floor', 'count', 'lease_ms' }) do page[name] = tonumber(fields[i + 1]) end
  if is_sound(page) then return page end
  drop()
  return nil
end

local function keep_for(ms)
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ms) end
end

-- Keeps the expiry: posts alone do not prolong the life of a page without readers.
local function save(page)
  page.count = redis.call('ZCARD', items)
  local numbers = {}
  for _, name in ipairs({ 'n', 'known', 'floor', 'count', 'lease_ms' }) do
    numbers[#numbers + 1] = name
    numbers[#numbers + 1] = integer(page[name])
  end
  local left_ms = redis.call('PTTL', meta)
  redis.call('HSET', meta, 'run', page.run, 'builder', page.builder, unpack(numbers))
  keep_for(left_ms > 0 and left_ms or IDLE_MS)
end

-- Stores the messages from index `first` on, except messages older than the floor.
local function put(floor, documents, first)
  for i = first, #documents do
    -- A string, since a Lua number formatted by default loses digits.
    local timestamp = string.match(documents[i], '^%["(%d+)"')
    redis.call('ZREMRANGEBYSCORE', items, timestamp, timestamp)
    if tonumber(timestamp) >= floor then redis.call('ZADD', items, timestamp, documents[i]) end
  end
end

local function trim(page, size)
  local extra = redis.call('ZCARD', items) - size
  if extra <= 0 then return end
  redis.call('ZREMRANGEBYRANK', items, 0, extra - 1)
  page.floor = tonumber(redis.call('ZRANGE', items, 0, 0, 'WITHSCORES')[2])
end

-- Advances to n, then applies pending extensions that follow without a gap.
local function move_to(page, n, size)
  page.n = n
  while true do
    local encoded = redis.call('HGET', pending, page.n + 1)
    if not encoded then break end
    local extension = cjson.decode(encoded)
    redis.call('HDEL', pending, page.n + 1)
    put(page.floor, extension.documents, 1)
    page.n = extension.last
  end
  trim(page, size)
  page.known = math.max(page.known, page.n)
  save(page)
end

local function keep_pending(page, first, last)
  if redis.call('HLEN', pending) >= MAX_PENDING then return drop() end
  local documents = {}
  for i = 5, #ARGV do documents[#documents + 1] = ARGV[i] end
  redis.call('HSET', pending, first, cjson.encode({ last = last, documents = documents }))
  page.known = math.max(page.known, last)
  save(page)
end

local commands = {}

function commands.clock()
  return integer(now_ms())
end

function commands.begin()
  local page = usable_page()
  -- The caller found the page missing or outdated. Until its lease ends, the page may still be extended.
  if page and page.lease_ms > now_ms() then return 0 end
  drop()
  save({ run = run_id(), builder = ARGV[2], n = 0, known = 0, floor = 0, lease_ms = now_ms() + BUILDING_MS })
  return 1
end

function commands.install()
  local page = usable_page()
  -- If another process has begun to build since, the extensions that arrived before were deleted.
  if not page or page.builder ~= ARGV[2] then return 0 end
  local n = tonumber(ARGV[3])
  page.builder, page.floor, page.lease_ms = '', tonumber(ARGV[4]), tonumber(ARGV[5]) + LEASE_MS
  put(page.floor, ARGV, 7)
  -- Extensions that the read of MongoDB already contains are obsolete.
  for _, first in ipairs(redis.call('HKEYS', pending)) do
    if tonumber(first) <= n then redis.call('HDEL', pending, first) end
  end
  move_to(page, n, tonumber(ARGV[6]))
  return 1
end

function commands.extend()
  local first, last, size = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local page = usable_page()
  if not page then
    drop()
    return -1
  end
  if page.builder ~= '' or first > page.n + 1 then
    keep_pending(page, first, last)
    return 0
  end
  -- The builder has already read these changes.
  if last <= page.n then return 1 end
  if first ~= page.n + 1 then
    drop()
    return -1
  end
  put(page.floor, ARGV, 5)
  move_to(page, last, size)
  return 1
end

function commands.require()
  local page = usable_page()
  if not page then
    drop()
    return 1
  end
  page.known = math.max(page.known, tonumber(ARGV[2]))
  save(page)
  return 1
end

function commands.renew()
  local page = usable_page()
  if not page or page.builder ~= '' or page.n < math.max(page.known, tonumber(ARGV[2])) then return 0 end
  page.lease_ms = tonumber(ARGV[3]) + LEASE_MS
  save(page)
  keep_for(IDLE_MS)
  return 1
end

function commands.read()
  local page = usable_page()
  if not page or page.builder ~= '' or page.lease_ms <= now_ms() or page.n < page.known then return {} end
  local low, high, ascending, limit = ARGV[2], ARGV[3], ARGV[4] == '1', ARGV[5]
  local reply
  if ascending then
    reply = redis.call('ZRANGEBYSCORE', items, low, high, 'LIMIT', 0, limit)
  else
    reply = redis.call('ZREVRANGEBYSCORE', items, high, low, 'LIMIT', 0, limit)
  end
  table.insert(reply, 1, integer(page.floor))
  return reply
end

function commands.drop()
  drop()
  return 1
end

local succeeded, reply = pcall(commands[ARGV[1]])
if succeeded then return reply end
-- The page may be inconsistent after a failure. Without it, readers use MongoDB.
drop()
return {}
