-- What housekeeping looks for: without it, each round would read the whole inbox. Where the inbox is large, build it by
-- hand before, with CREATE INDEX CONCURRENTLY.

-- squawk-ignore require-concurrent-index-creation
CREATE INDEX IF NOT EXISTS webhook_event_with_payload ON billing.webhook_event (received_at)
WHERE payload IS NOT NULL;
