CREATE OR REPLACE FUNCTION billing.settlement_differences(
    p_report billing.settlement_report
)
RETURNS SETOF billing.settlement_difference
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- What they have is looked for in all that we have, by their id, else by our reference; what bears the reference of
    -- another database (a shard that shares the account, the original of a clone) is none of ours. What we have is looked
    -- for where it ended within the time of the report and began within it or within that of the report right before it,
    -- and in both: the gateway's own instant lies between the two, on either side of midnight.
    SELECT c.* FROM billing.charge_differences(p_report) AS c
    UNION ALL
    SELECT f.* FROM billing.refund_differences(p_report) AS f;
$function$;

COMMENT ON FUNCTION billing.settlement_differences IS
'What a settlement report and this database do not agree on, in both directions.';
