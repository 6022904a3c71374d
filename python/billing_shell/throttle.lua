-- Reserves instants at which a call may be sent, for one (gateway account, operation), on this server's own clock.
-- Slots lie at least `spacing` apart, whoever asks, so that no window of any length sees a burst.
--
-- KEYS[1]  hash with the state. It never expires: a lost key costs everybody a second.
-- ARGV     slots wanted, lane, spacing, lead, pause
-- Returns  { now, wait, paused, slot, slot, ... }: this server's time; how long to wait before asking for the slots
--          that are missing (0 = none is); how long everybody is paused; the slots in ascending order.
-- All times and durations are whole microseconds; times since 1970.

local SECOND = 1000000
local HORIZON = 250000         -- nothing is reserved further ahead, so an interactive call waits no longer
local BACKLOG_HORIZON = 200000 -- what lies beyond is left to interactive calls
local BATCH = 50000            -- who waits, waits for this much worth of slots: few round trips
local GRACE = 50000            -- how late a waiting interactive caller may come back and still go first
local BACKLOG_EVERY = 5        -- while backlog waits, one slot in five is left to it
local LONGEST_PAUSE = 3600 * SECOND

local wanted = tonumber(ARGV[1])
local interactive = ARGV[2] == 'interactive'
local spacing = tonumber(ARGV[3])
local lead = tonumber(ARGV[4])
local pause = tonumber(ARGV[5])

local time = redis.call('TIME')
local now = time[1] * SECOND + time[2]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')

local state = redis.call('HMGET', KEYS[1],
    'run', 'last', 'paused_until', 'backlog_until', 'interactive_until', 'streak', 'left_out', 'granted')
local last = tonumber(state[2])
local paused_until = tonumber(state[3]) or 0
local backlog_until = tonumber(state[4]) or 0         -- until when backlog counts as waiting
local interactive_until = tonumber(state[5]) or 0     -- until when interactive calls count as waiting
local streak = tonumber(state[6]) or 0                -- interactive slots since the last one left to backlog
local left_out = state[7] or ''                       -- slots that interactive calls left to backlog
local granted = tonumber(state[8]) or 0               -- since the state was last lost; for people to look at

-- Without a past that can be trusted, the last second counts as fully used. So it is after a lost key, after a restart
-- or fail-over (what was reserved last may not have reached the disk or the replica), and when the clock went back.
if state[1] ~= run or not last or last > now + HORIZON then
    last = now
    left_out = ''
    backlog_until = 0
    interactive_until = 0
    paused_until = math.max(paused_until, now + SECOND)
end
if pause > 0 then
    paused_until = math.max(paused_until, now + pause)
end
paused_until = math.min(paused_until, now + LONGEST_PAUSE)

local earliest = math.max(now + lead, paused_until)
local horizon = now + (interactive and HORIZON or BACKLOG_HORIZON)
local backlog_waits = backlog_until > now
local blocked = not interactive and interactive_until > now
local slots = {}

local kept = {}
for text in string.gmatch(left_out, '%d+') do
    local at = tonumber(text)
    if at >= earliest and #slots < wanted and not (interactive and backlog_waits) then
        slots[#slots + 1] = at
    elseif at > now then
        kept[#kept + 1] = text
    end
end

if not blocked then
    while #slots < wanted do
        local at = math.max(last + spacing, earliest)
        if at > horizon then
            break
        end
        last = at
        if interactive and backlog_waits and streak >= BACKLOG_EVERY - 1 then
            kept[#kept + 1] = string.format('%.0f', at)
            streak = 0
        else
            slots[#slots + 1] = at
            streak = interactive and backlog_waits and streak + 1 or 0
        end
    end
end

local wait = 0
local missing = wanted - #slots
if missing > 0 then
    local batch = math.min(missing, math.max(1, math.floor(BATCH / spacing)))
    wait = math.max(last + batch * spacing, earliest) - horizon
    wait = math.max(wait, blocked and BATCH / 2 or 1000)
    if interactive then
        interactive_until = math.max(interactive_until, now + wait + GRACE)
    else
        backlog_until = math.max(backlog_until, now + wait + 2 * HORIZON)
    end
end

redis.call('HSET', KEYS[1],
    'run', run,
    'last', string.format('%.0f', last),
    'paused_until', string.format('%.0f', paused_until),
    'backlog_until', string.format('%.0f', backlog_until),
    'interactive_until', string.format('%.0f', interactive_until),
    'streak', streak,
    'left_out', table.concat(kept, ','),
    'granted', string.format('%.0f', granted + #slots))

local reply = { now, wait, math.max(paused_until - now, 0) }
for index, at in ipairs(slots) do
    reply[index + 3] = at
end
return reply
