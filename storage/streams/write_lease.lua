-- The lease to commit to a stream. A waiting process reserves the next lease, so that the last holder does not get it.
--
-- KEYS  1 lease (string: token of the holder)   2 next (string: token of the next holder)
-- ARGV  1 command, 2 token of the caller, then
--   take lease_ms next_ms   -> 1 if the caller holds the lease now, 0 if the caller has to try again within next_ms
--   release                 -> 1, or 0 if the caller no longer held the lease
local command, token = ARGV[1], ARGV[2]

local function take(lease_ms, next_ms)
  local next_token = redis.call('get', KEYS[2])
  if not next_token or next_token == token then
    if redis.call('set', KEYS[1], token, 'nx', 'px', lease_ms) then
      redis.call('del', KEYS[2])
      return 1
    end
    redis.call('set', KEYS[2], token, 'px', next_ms)
  end
  return 0
end

if command == 'take' then
  return take(ARGV[3], ARGV[4])
end
if redis.call('get', KEYS[1]) == token then
  return redis.call('del', KEYS[1])
end
return 0
