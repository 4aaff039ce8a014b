/** What has to happen in one step in Redis. Each script first sees whether the caller's generation is still the newest. */

const fence = `
local newest = tonumber(redis.call('HGET', KEYS[1], 'generation') or '0')
if newest > tonumber(ARGV[1]) then return redis.error_reply('FENCED ' .. newest .. ' is newer than ' .. ARGV[1]) end
`;

/** Makes a generation the newest and counts the opens. Key: the table. Arguments: generation. Returns the number of this open. */
export const claimScript = `${fence}
redis.call('HSET', KEYS[1], 'generation', ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'opens', 1)`;

/**
 * Applies writes to one shard, in order, and removes some entries that have expired. Keys: table, values, order, expiry. Arguments:
 * generation, time now, then for each write its key, 'p' or 'd', its expiry, its value.
 */
export const writeScript = `${fence}
local ended = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', ARGV[2], 'LIMIT', 0, 50)
for _, key in ipairs(ended) do
  redis.call('HDEL', KEYS[2], key)
  redis.call('ZREM', KEYS[3], key)
  redis.call('ZREM', KEYS[4], key)
end
for i = 3, #ARGV, 4 do
  local key = ARGV[i]
  if ARGV[i + 1] == 'p' then
    redis.call('HSET', KEYS[2], key, ARGV[i + 3])
    redis.call('ZADD', KEYS[3], 0, key)
    if ARGV[i + 2] == '0' then redis.call('ZREM', KEYS[4], key) else redis.call('ZADD', KEYS[4], ARGV[i + 2], key) end
  else
    redis.call('HDEL', KEYS[2], key)
    redis.call('ZREM', KEYS[3], key)
    redis.call('ZREM', KEYS[4], key)
  end
end
return #ended`;

/** Keys and values of a range of one shard, at one instant. Keys: values, order. Arguments: from and to, as of ZRANGE BYLEX. */
export const scanScript = `
local keys = redis.call('ZRANGE', KEYS[2], ARGV[1], ARGV[2], 'BYLEX')
local found = {}
for _, key in ipairs(keys) do
  found[#found + 1] = key
  found[#found + 1] = redis.call('HGET', KEYS[1], key)
end
return found`;

/** Keeps a snapshot. Keys: table, the job's snapshots, jobs. Arguments: generation, id, what it is, job. */
export const keepScript = `${fence}
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('SADD', KEYS[3], ARGV[4])
return 1`;
