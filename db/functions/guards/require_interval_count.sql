CREATE OR REPLACE FUNCTION billing.require_interval_count(
    p_interval_unit text,
    p_interval_count integer
)
RETURNS integer
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 unknown unit, or a period of more than ten years
-- Idempotent: yes
BEGIN
    PERFORM billing.require_choice(p_interval_unit, 'p_interval_unit', '{DAY,WEEK,MONTH,YEAR}');
    RETURN billing.require_integer(
        p_interval_count, 'p_interval_count', 1,
        CASE p_interval_unit WHEN 'DAY' THEN 3650 WHEN 'WEEK' THEN 520 WHEN 'MONTH' THEN 120 ELSE 10 END
    );
END;
$function$;

COMMENT ON FUNCTION billing.require_interval_count IS
'Returns how many units make one period, at most ten years, or raises SB101.';
