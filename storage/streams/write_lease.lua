-- Whose turn it is to commit to a stream. Who waits is next: whoever just had the turn does not get it again meanwhile.
--
-- KEYS  1 turn (string: who has it)   2 next (string: who gets it then)
-- ARGV  1 command, 2 token of the caller, then
--   take lease_ms next_ms   -> 1 when it is the caller's turn now, 0 when it has to ask again within next_ms
--   release                 -> 1, or 0 when the turn was no longer the caller's
local command, token = ARGV[1], ARGV[2]

local function take(lease_ms, next_ms)
  local following = redis.call('get', KEYS[2])
  if not following or following == token then
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
