-- The pool of a hot topic: its newest messages, served without MongoDB. One script with several commands, so that what
-- they share stands once. Everything is one atomic step.
--
-- KEYS  1 meta (hash: run, n, known, floor, count, lease_ms, builder)   2 items (sorted set, score = timestamp)
--       3 pending (hash: first n -> JSON of an extension that came too early)
-- ARGV  1 command, then
--   clock                               -> Redis' time in ms
--   begin builder                       -> 1 when the caller is to build the pool, 0 when somebody does or it is there
--   install builder n floor t0 size json... -> 1, or 0 when another one builds; t0 is Redis' time before MongoDB was read
--   extend first last size json...      -> 1 the pool has it, 0 waits for its predecessor or the building, -1 no pool
--   reach n                             -> 1: from now on the pool answers only when it holds everything up to n
--   renew n t0                          -> 1 when the pool has at least n and its lease now runs from t0
--   read low high ascending limit       -> {floor, json...}, or {} when the pool can't answer
--   drop
-- A pool of another run of Redis is dropped: it may be older than what was acknowledged. So is one that is not whole,
-- or that these commands can't work with: Redis may have evicted a part of it, and others write to Redis too.

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

local function drop()
  redis.call('DEL', meta, items, pending)
end

-- A lease that ends later than one can that begins now was given before the clock was set back.
local function is_sound(pool)
  return pool.run == run_id() and pool.lease_ms <= now_ms() + LEASE_MS and redis.call('ZCARD', items) == pool.count
end

-- The pool, or nil where there is none that can be used. `known` is the highest n that anybody was told of.
local function current()
  local fields = redis.call('HMGET', meta, 'run', 'n', 'known', 'floor', 'count', 'lease_ms', 'builder')
  if not fields[1] then return nil end
  local pool = { run = fields[1], builder = fields[7] }
  for i, name in ipairs({ 'n', 'known', 'floor', 'count', 'lease_ms' }) do pool[name] = tonumber(fields[i + 1]) end
  if is_sound(pool) then return pool end
  drop()
  return nil
end

local function keep_for(ms)
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ms) end
end

-- Posting alone does not keep a pool that nobody reads.
local function save(pool)
  pool.count = redis.call('ZCARD', items)
  local numbers = {}
  for _, name in ipairs({ 'n', 'known', 'floor', 'count', 'lease_ms' }) do
    numbers[#numbers + 1] = name
    numbers[#numbers + 1] = integer(pool[name])
  end
  local left_ms = redis.call('PTTL', meta)
  redis.call('HSET', meta, 'run', pool.run, 'builder', pool.builder, unpack(numbers))
  keep_for(left_ms > 0 and left_ms or IDLE_MS)
end

local function put(floor, documents, first)
  for i = first, #documents do
    -- A string keeps all sixteen digits.
    local timestamp = string.match(documents[i], '^%["(%d+)"')
    redis.call('ZREMRANGEBYSCORE', items, timestamp, timestamp)
    if tonumber(timestamp) >= floor then redis.call('ZADD', items, timestamp, documents[i]) end
  end
end

local function trim(pool, size)
  local extra = redis.call('ZCARD', items) - size
  if extra <= 0 then return end
  redis.call('ZREMRANGEBYRANK', items, 0, extra - 1)
  pool.floor = tonumber(redis.call('ZRANGE', items, 0, 0, 'WITHSCORES')[2])
end

-- Takes what is at hand, then what waits and follows without gap.
local function move_to(pool, n, size)
  pool.n = n
  while true do
    local waiting = redis.call('HGET', pending, pool.n + 1)
    if not waiting then break end
    local extension = cjson.decode(waiting)
    redis.call('HDEL', pending, pool.n + 1)
    put(pool.floor, extension.documents, 1)
    pool.n = extension.last
  end
  trim(pool, size)
  pool.known = math.max(pool.known, pool.n)
  save(pool)
end

local function wait_in_line(pool, first, last)
  if redis.call('HLEN', pending) >= MAX_PENDING then return drop() end
  local documents = {}
  for i = 5, #ARGV do documents[#documents + 1] = ARGV[i] end
  redis.call('HSET', pending, first, cjson.encode({ last = last, documents = documents }))
  pool.known = math.max(pool.known, last)
  save(pool)
end

local commands = {}

function commands.clock()
  return integer(now_ms())
end

function commands.begin()
  local pool = current()
  -- Whoever asks found the pool missing or behind. Within its lease it may still be brought up to date.
  if pool and pool.lease_ms > now_ms() then return 0 end
  drop()
  save({ run = run_id(), builder = ARGV[2], n = 0, known = 0, floor = 0, lease_ms = now_ms() + BUILDING_MS })
  return 1
end

function commands.install()
  local pool = current()
  -- While another one builds, what came between its beginning and this one's is not waiting any more.
  if not pool or pool.builder ~= ARGV[2] then return 0 end
  local n = tonumber(ARGV[3])
  pool.builder, pool.floor, pool.lease_ms = '', tonumber(ARGV[4]), tonumber(ARGV[5]) + LEASE_MS
  put(pool.floor, ARGV, 7)
  -- What came while MongoDB was read, and is in what was read, is of no use any more.
  for _, first in ipairs(redis.call('HKEYS', pending)) do
    if tonumber(first) <= n then redis.call('HDEL', pending, first) end
  end
  move_to(pool, n, tonumber(ARGV[6]))
  return 1
end

function commands.extend()
  local first, last, size = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local pool = current()
  if not pool then return -1 end
  if pool.builder ~= '' or first > pool.n + 1 then
    wait_in_line(pool, first, last)
    return 0
  end
  -- Whoever built the pool saw it committed.
  if last <= pool.n then return 1 end
  if first ~= pool.n + 1 then
    drop()
    return -1
  end
  put(pool.floor, ARGV, 5)
  move_to(pool, last, size)
  return 1
end

function commands.reach()
  local pool = current()
  if not pool then return 1 end
  pool.known = math.max(pool.known, tonumber(ARGV[2]))
  save(pool)
  return 1
end

function commands.renew()
  local pool = current()
  if not pool or pool.builder ~= '' or pool.n < math.max(pool.known, tonumber(ARGV[2])) then return 0 end
  pool.lease_ms = tonumber(ARGV[3]) + LEASE_MS
  save(pool)
  keep_for(IDLE_MS)
  return 1
end

function commands.read()
  local pool = current()
  if not pool or pool.builder ~= '' or pool.lease_ms <= now_ms() or pool.n < pool.known then return {} end
  local low, high, ascending, limit = ARGV[2], ARGV[3], ARGV[4] == '1', ARGV[5]
  local found
  if ascending then
    found = redis.call('ZRANGEBYSCORE', items, low, high, 'LIMIT', 0, limit)
  else
    found = redis.call('ZREVRANGEBYSCORE', items, high, low, 'LIMIT', 0, limit)
  end
  table.insert(found, 1, integer(pool.floor))
  return found
end

function commands.drop()
  drop()
  return 1
end

local done, answer = pcall(commands[ARGV[1]])
if done then return answer end
-- Without a pool nobody reads anything stale.
drop()
return {}
