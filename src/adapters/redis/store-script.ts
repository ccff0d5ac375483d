/** When entries expire is known to a minute, of those that live for long to ten: a ledger has 210 fields at most. */
const sliceSeconds = 60;
const longSliceSeconds = 600;
const shortLifeSeconds = 3600;
/** What an entry takes beside its value: its name, and what Redis keeps of it. */
const overheadBytes = 200;

/**
 * Stores an answer if its user has room for it: 1, else 0.
 *
 * KEYS: the entry; its user's ledger, a hash of bytes by the second (of Redis' clock, rounded up) at which they expire.
 * ARGV: the value, how long it lives in seconds, the bytes that the user may have. What is no longer there, thrown
 * out for want of memory, removed or stored anew, counts until it would have expired.
 */
export const storeScript = `
local now = tonumber(redis.call('TIME')[1])
local size = #ARGV[1] + ${overheadBytes}
local ttl = tonumber(ARGV[2])
local held = 0
local slices = redis.call('HGETALL', KEYS[2])
for index = 1, #slices, 2 do
  if tonumber(slices[index]) <= now then redis.call('HDEL', KEYS[2], slices[index])
  else held = held + tonumber(slices[index + 1]) end
end
if held + size > tonumber(ARGV[3]) then return 0 end
local slice = ttl > ${shortLifeSeconds} and ${longSliceSeconds} or ${sliceSeconds}
local ends = math.ceil((now + ttl) / slice) * slice
redis.call('SET', KEYS[1], ARGV[1], 'EX', ttl)
redis.call('HINCRBY', KEYS[2], ends, size)
if redis.call('PTTL', KEYS[2]) < (ends - now) * 1000 then redis.call('PEXPIRE', KEYS[2], (ends - now) * 1000) end
return 1`;
