-- The server side of the store: every change of an episode is one of these functions.
--
-- A script is not rolled back when it fails, so each function checks everything first and writes
-- only when nothing can fail any more. Core Lua only: no struct, cmsgpack, cjson or sha1hex.
-- Every key is declared by the caller. Refusals are error replies that start with WR_.
--
-- Keys of an episode:
--   w      hash    step, fence, holder, req, status, hidden, cols, and m:NAME for each metric
--   t      stream  the log: 0-1 is the start, k-0 is step k, k-2 is the close
--   c:, h: string  one column each, shown or hidden

-- Rebuilding a column costs what it is long, SETRANGE what changed: more runs than this, and more
-- than one in so many bytes, and the column is rebuilt. (Measured: 1.5 us a KiB, 0.9 us a run.)
local SPLICE_ABOVE = 150
local SPLICE_BYTES_PER_RUN = 600
-- unpack() puts its values on the C stack, which holds a few thousand.
local FIELDS_PER_CALL = 1000
local LIVE_KEPT = 2000

local function text(number)
  return string.format('%.0f', number)
end

-- A whole number from 0 to 2^53 - 1, or nil.
local function whole(value)
  if not value or not string.find(value, '^%d+$') then
    return nil
  end
  local number = tonumber(value)
  if number > 9007199254740991 then
    return nil
  end
  return number
end

-- Packed metrics as {'m:name', bytes, ...}, or nil where they are malformed.
local function read_metrics(packed)
  local fields, count, at, size = {}, 0, 1, #packed
  while at <= size do
    local length = string.byte(packed, at)
    local last = at + length
    if length == 0 or last + 8 > size then
      return nil
    end
    fields[count + 1] = 'm:' .. string.sub(packed, at + 1, last)
    fields[count + 2] = string.sub(packed, last + 1, last + 8)
    count = count + 2
    at = last + 9
  end
  return fields
end

-- Packed cells as one list per column of {offset, bytes, offset, bytes, ...}. `lengths[i]` is the
-- length of column i. Returns nil and a reason where a cell is malformed or out of bounds.
local function read_cells(packed, lengths)
  local columns, at, size = {}, 1, #packed
  for number = 1, #lengths do
    columns[number] = {}
  end
  while at <= size do
    if at + 9 > size then
      return nil, 'torn cells'
    end
    local n0, n1, o0, o1, o2, o3, l0, l1, l2, l3 = string.byte(packed, at, at + 9)
    local column = columns[n0 + n1 * 256 + 1]
    local offset = o0 + o1 * 256 + o2 * 65536 + o3 * 16777216
    local length = l0 + l1 * 256 + l2 * 65536 + l3 * 16777216
    if not column or at + 9 + length > size then
      return nil, 'torn cells'
    end
    if offset + length > lengths[n0 + n1 * 256 + 1] then
      return nil, 'cells outside their column'
    end
    if length > 0 then
      local count = #column
      column[count + 1] = offset
      column[count + 2] = string.sub(packed, at + 10, at + 9 + length)
    end
    at = at + 10 + length
  end
  return columns
end

-- The column with all runs put in, or nil where runs are not in ascending order.
local function splice(old, runs)
  local parts, count, at = {}, 0, 0
  for i = 1, #runs, 2 do
    local offset = runs[i]
    if offset < at then
      return nil
    end
    parts[count + 1] = string.sub(old, at + 1, offset)
    parts[count + 2] = runs[i + 1]
    count = count + 2
    at = offset + #runs[i + 1]
  end
  parts[count + 1] = string.sub(old, at + 1)
  return table.concat(parts)
end

local function write_column(key, length, runs)
  if #runs == 2 and runs[1] == 0 and #runs[2] == length then
    redis.call('SET', key, runs[2], 'KEEPTTL')
    return
  end
  if #runs > 2 * math.max(SPLICE_ABOVE, length / SPLICE_BYTES_PER_RUN) then
    local whole_column = splice(redis.call('GET', key), runs)
    if whole_column then
      redis.call('SET', key, whole_column, 'KEEPTTL')
      return
    end
  end
  for i = 1, #runs, 2 do
    redis.call('SETRANGE', key, runs[i], runs[i + 1])
  end
end

local function write_fields(key, fields)
  for first = 1, #fields, FIELDS_PER_CALL do
    redis.call('HSET', key, unpack(fields, first, math.min(first + FIELDS_PER_CALL - 1, #fields)))
  end
end

-- Lengths of the columns keys[first..last]; nil where one does not exist.
local function column_lengths(keys, first, last)
  local lengths = {}
  for i = first, last do
    local length = redis.call('STRLEN', keys[i])
    if length == 0 and redis.call('EXISTS', keys[i]) == 0 then
      return nil
    end
    lengths[i - first + 1] = length
  end
  return lengths
end

-- Copy keys[first] to keys[first + 1], and so on in pairs.
local function copy_pairs(keys, first)
  for i = first, #keys, 2 do
    redis.call('COPY', keys[i], keys[i + 1], 'REPLACE')
  end
end

-- Whether a write goes through: nil, or the reply to give instead.
local function gate(w, t, fence, holder, expected, request)
  local held = redis.call('HMGET', w, 'step', 'fence', 'holder', 'req', 'status')
  if not held[1] or held[5] == 'forking' then
    return redis.error_reply('WR_NOEPISODE')
  end
  local step = tonumber(held[1])
  if held[4] == request then
    return {'DUP', step}
  end
  if expected < step then
    local id = text(expected + 1) .. '-0'
    local entry = redis.call('XRANGE', t, id, id)[1]
    if entry and entry[2][1] == 'r' and entry[2][2] == request then
      return {'DUP', step}
    end
  end
  if held[5] ~= 'open' then
    return redis.error_reply('WR_CLOSED ' .. held[5])
  end
  if held[2] ~= fence or held[3] ~= holder then
    return redis.error_reply('WR_FENCED ' .. held[2])
  end
  if expected < step then
    return redis.error_reply('WR_STALE ' .. held[1])
  end
  if expected > step then
    return redis.error_reply('WR_BEHIND ' .. held[1])
  end
  return nil
end

-- KEYS meta, ids, w, t, keys, branches, images, image w, columns.., image columns..
-- ARGV token, frame, payload, metrics, hidden, branch entry, column names, number of meta fields,
--      (meta field, value).., column bytes..
local function wr_create(keys, args)
  local meta, ids, w, t, known = keys[1], keys[2], keys[3], keys[4], keys[5]
  local fields = read_metrics(args[4])
  local pairs_of_meta = whole(args[8])
  local columns = (#keys - 8) / 2
  if not fields or not pairs_of_meta or columns ~= math.floor(columns)
      or #args ~= 8 + 2 * pairs_of_meta + columns then
    return redis.error_reply('WR_BADARG create')
  end
  if redis.call('EXISTS', meta, w) > 0 then
    return redis.call('HGET', meta, 'token') == args[1] and 1 or 0
  end
  redis.call('XADD', t, '0-1', 'r', 'start', 'd', args[3])
  redis.call('HSET', meta, 'token', args[1], unpack(args, 9, 8 + 2 * pairs_of_meta))
  redis.call('SET', ids, args[2])
  redis.call('HSET', w, 'step', 0, 'fence', 0, 'holder', '', 'req', 'start', 'status', 'open',
    'hidden', args[5], 'cols', args[7])
  write_fields(w, fields)
  for i = 1, columns do
    redis.call('SET', keys[8 + i], args[8 + 2 * pairs_of_meta + i])
    redis.call('COPY', keys[8 + i], keys[8 + columns + i], 'REPLACE')
  end
  redis.call('COPY', w, keys[8], 'REPLACE')
  redis.call('ZADD', keys[7], 0, '0')
  redis.call('HSET', keys[6], '0', args[6])
  for i = 1, #keys do
    redis.call('SADD', known, keys[i])
  end
  return 1
end

-- KEYS w, lease   ARGV holder, milliseconds, holder known to be dead (may be taken over)
local function wr_lease(keys, args)
  local w, lease = keys[1], keys[2]
  local holder, ttl = args[1], whole(args[2])
  if holder == '' or not ttl or ttl == 0 then
    return redis.error_reply('WR_BADARG lease')
  end
  local held = redis.call('HMGET', w, 'fence', 'holder', 'status', 'cols')
  if not held[1] or held[3] == 'forking' then
    return redis.error_reply('WR_NOEPISODE')
  end
  local current = redis.call('GET', lease)
  if current and current ~= holder and current ~= args[3] then
    return {0, held[1], current}
  end
  local fence = held[1]
  if held[2] ~= holder then
    fence = text(tonumber(fence) + 1)
    redis.call('HSET', w, 'fence', fence, 'holder', holder)
  end
  -- Where everything is done there is nothing to drive: a renewal that comes after the close must
  -- not keep the episode from being given its end.
  if held[3] == 'open' then
    redis.call('SET', lease, holder, 'PX', args[2])
  end
  return {1, fence, held[4]}
end

-- KEYS w, lease   ARGV holder, fence
local function wr_release(keys, args)
  if redis.call('GET', keys[2]) == args[1] and redis.call('HGET', keys[1], 'fence') == args[2] then
    return redis.call('DEL', keys[2])
  end
  return 0
end

-- KEYS w, t, lease, touched columns.., [images, keys, image w, (column, image column)..]
-- ARGV fence, holder, expected step, request, payload, metrics, hidden, names of the touched
--      columns, cells, number of touched columns, milliseconds of the lease
local function wr_apply(keys, args)
  local w, t = keys[1], keys[2]
  local expected, touched, ttl = whole(args[3]), whole(args[10]), whole(args[11])
  if #args ~= 11 or not expected or not touched or not ttl or args[4] == '' then
    return redis.error_reply('WR_BADARG apply')
  end
  local refused = gate(w, t, args[1], args[2], expected, args[4])
  if refused then
    return refused
  end
  local fields = read_metrics(args[6])
  if not fields then
    return redis.error_reply('WR_BADARG torn metrics')
  end
  local columns, lengths
  if touched > 0 then
    lengths = column_lengths(keys, 4, 3 + touched)
    if not lengths then
      return redis.error_reply('WR_BADARG there is no such column')
    end
    local why
    columns, why = read_cells(args[9], lengths)
    if not columns then
      return redis.error_reply('WR_BADARG ' .. why)
    end
  end

  local step = text(expected + 1)
  redis.call('XADD', t, step .. '-0', 'r', args[4], 'd', args[5], 'f', args[1],
    'm', args[6], 'h', args[7], 'n', args[8], 'c', args[9])
  local count = #fields
  fields[count + 1], fields[count + 2] = 'step', step
  fields[count + 3], fields[count + 4] = 'req', args[4]
  if args[7] ~= '' then
    fields[count + 5], fields[count + 6] = 'hidden', args[7]
  end
  write_fields(w, fields)
  for i = 1, touched do
    write_column(keys[3 + i], lengths[i], columns[i])
  end
  -- Reading the time left is cheaper than a write that replicas and the file must follow.
  local left = redis.call('PTTL', keys[3])
  if left >= 0 and left * 2 < ttl then
    redis.call('PEXPIRE', keys[3], args[11])
  end
  local images = 4 + touched
  if keys[images] then
    redis.call('COPY', w, keys[images + 2], 'REPLACE')
    copy_pairs(keys, images + 3)
    redis.call('ZADD', keys[images], step, step)
    redis.call('SADD', keys[images + 1], keys[images + 2])
    for i = images + 4, #keys, 2 do
      redis.call('SADD', keys[images + 1], keys[i])
    end
  end
  return {'OK', expected + 1}
end

-- KEYS w, t, lease   ARGV fence, holder, expected step, request, payload, status
local function wr_close(keys, args)
  local w, t = keys[1], keys[2]
  local expected = whole(args[3])
  if #args ~= 6 or not expected or args[4] == '' or args[6] == '' or args[6] == 'open'
      or args[6] == 'forking' then
    return redis.error_reply('WR_BADARG close')
  end
  local refused = gate(w, t, args[1], args[2], expected, args[4])
  if refused then
    return refused
  end
  redis.call('XADD', t, text(expected) .. '-2', 'r', args[4], 'd', args[5], 'f', args[1])
  redis.call('HSET', w, 'status', args[6], 'req', args[4])
  redis.call('DEL', keys[3])
  return {'OK', expected}
end

-- KEYS w, ids, columns..   Everything of one moment.
local function wr_world(keys, args)
  local held = redis.call('HGETALL', keys[1])
  if #held == 0 then
    return redis.error_reply('WR_NOEPISODE')
  end
  local reply = {held, redis.call('GET', keys[2])}
  for i = 3, #keys do
    reply[i] = redis.call('GET', keys[i])
  end
  return reply
end

-- KEYS w, images, keys, image w, (column, image column)..   ARGV step that the names are made for
-- Returns the step of the world; nothing was copied where it is another one.
local function wr_snapshot(keys, args)
  local step = redis.call('HGET', keys[1], 'step')
  if not step then
    return redis.error_reply('WR_NOEPISODE')
  end
  if step ~= args[1] then
    return tonumber(step)
  end
  redis.call('COPY', keys[1], keys[4], 'REPLACE')
  copy_pairs(keys, 5)
  redis.call('ZADD', keys[2], step, step)
  redis.call('SADD', keys[3], keys[4])
  for i = 6, #keys, 2 do
    redis.call('SADD', keys[3], keys[i])
  end
  return tonumber(step)
end

-- KEYS branches, keys, source w, new w, (source column, new column)..
-- ARGV new branch, token, step of the source
-- Starts a branch from a world that is there: 1 is started, 2 is done already by this very
-- caller, 0 is that the source is not at this step any more.
local function wr_fork(keys, args)
  local branches, known, source, w = keys[1], keys[2], keys[3], keys[4]
  local token = redis.call('HGET', w, 'token')
  if redis.call('HEXISTS', branches, args[1]) == 1 then
    return token == args[2] and 2 or redis.error_reply('WR_EXISTS')
  end
  if redis.call('HGET', source, 'step') ~= args[3] then
    return 0
  end
  redis.call('COPY', source, w, 'REPLACE')
  redis.call('HSET', w, 'status', 'forking', 'token', args[2], 'fence', 0, 'holder', '', 'req', '')
  copy_pairs(keys, 5)
  redis.call('SADD', known, w)
  for i = 6, #keys, 2 do
    redis.call('SADD', known, keys[i])
  end
  return 1
end

local function field_of(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then
      return fields[i + 1]
    end
  end
  return ''
end

-- KEYS source t, new w, new columns..   ARGV token, most steps, last step, column names..
-- Replays logged steps onto a branch that is being made. Returns the step that it is at.
local function wr_replay(keys, args)
  local t, w = keys[1], keys[2]
  local held = redis.call('HMGET', w, 'status', 'token', 'step')
  local most, last = whole(args[2]), whole(args[3])
  if not most or not last then
    return redis.error_reply('WR_BADARG replay')
  end
  if held[1] ~= 'forking' or held[2] ~= args[1] then
    return redis.error_reply('WR_EXISTS')
  end
  local number_of, lengths = {}, {}
  for i = 4, #args do
    number_of[args[i]] = i - 3
    lengths[i - 3] = redis.call('STRLEN', keys[i - 1])
  end
  local step = tonumber(held[3])
  local until_step = math.min(step + most, last)
  local entries = redis.call('XRANGE', t, text(step + 1) .. '-0', text(until_step) .. '-0')
  if #entries ~= until_step - step then
    return redis.error_reply('WR_BADARG the log has a hole')
  end
  for _, entry in ipairs(entries) do
    local fields = read_metrics(field_of(entry[2], 'm'))
    local names, sizes = {}, {}
    for name in string.gmatch(field_of(entry[2], 'n'), '%S+') do
      if not number_of[name] then
        return redis.error_reply('WR_BADARG there is no such column')
      end
      names[#names + 1] = name
      sizes[#sizes + 1] = lengths[number_of[name]]
    end
    local columns = read_cells(field_of(entry[2], 'c'), sizes)
    if not fields or not columns then
      return redis.error_reply('WR_BADARG torn log entry')
    end
    local hidden = field_of(entry[2], 'h')
    if hidden ~= '' then
      fields[#fields + 1] = 'hidden'
      fields[#fields + 1] = hidden
    end
    write_fields(w, fields)
    for i, name in ipairs(names) do
      write_column(keys[2 + number_of[name]], sizes[i], columns[i])
    end
  end
  redis.call('HSET', w, 'step', text(until_step))
  return until_step
end

-- KEYS meta, branches, keys, new w, images, image w, new t, (column, image column)..
-- ARGV new branch, token, step, branch entry
-- Opens a branch that has reached its step. Returns the milliseconds after which the episode
-- would have expired, which the caller must then undo; -1 is never.
local function wr_open_branch(keys, args)
  local branches, known, w = keys[2], keys[3], keys[4]
  local held = redis.call('HMGET', w, 'status', 'token', 'step')
  if held[2] ~= args[2] or held[3] ~= args[3] then
    return redis.error_reply('WR_EXISTS')
  end
  if held[1] == 'forking' then
    redis.call('HSET', w, 'status', 'open')
    redis.call('COPY', w, keys[6], 'REPLACE')
    copy_pairs(keys, 8)
    redis.call('ZADD', keys[5], args[3], args[3])
    redis.call('SADD', known, keys[5], keys[6], keys[7])
    for i = 9, #keys, 2 do
      redis.call('SADD', known, keys[i])
    end
    redis.call('HSET', branches, args[1], args[4])
  end
  return redis.call('PTTL', keys[1])
end

-- KEYS w, journal, keys   ARGV field, value   The first value of a field stands.
local function wr_journal(keys, args)
  local status = redis.call('HGET', keys[1], 'status')
  if not status or status == 'forking' then
    return redis.error_reply('WR_NOEPISODE')
  end
  local first = redis.call('HGET', keys[2], args[1])
  if first then
    return first
  end
  if status ~= 'open' then
    return redis.error_reply('WR_CLOSED ' .. status)
  end
  redis.call('HSET', keys[2], args[1], args[2])
  redis.call('SADD', keys[3], keys[2])
  return args[2]
end

-- KEYS w, watched, live, keys   ARGV fence, events..   Returns 0 where nobody watches.
local function wr_live(keys, args)
  if redis.call('EXISTS', keys[2]) == 0 then
    return 0
  end
  local held = redis.call('HMGET', keys[1], 'fence', 'status')
  if held[1] ~= args[1] or held[2] ~= 'open' then
    return 0
  end
  for i = 2, #args do
    redis.call('XADD', keys[3], 'MAXLEN', '~', LIVE_KEPT, '*', 'f', args[1], 'e', args[i])
  end
  redis.call('SADD', keys[4], keys[3])
  return 1
end
