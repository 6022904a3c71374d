-- What housekeeping looks for: without it, each round would read the whole inbox.

CREATE INDEX webhook_event_with_payload ON billing.webhook_event (received_at)
WHERE payload IS NOT NULL;
