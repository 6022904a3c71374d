CREATE OR REPLACE FUNCTION billing.renew_or_divide(
    p_claimed billing.subscription_key[],
    p_as_of timestamptz,
    p_run_id bigint
)
RETURNS billing.renewal_outcome
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      as renew_claimed
-- Writes:     as renew_claimed; subscription where a renewal is parked
-- Raises:     every error that is not one of the data (lock, time-out, disk, cancel), and SB401 a partition of the outbox
--             was made meanwhile: the batch is to be tried again
-- Idempotent: no
-- One block per batch costs nothing; only a batch with a poisoned row is divided, by 16, until that row stands alone. What
-- was taken by somebody else a moment ago is seen by the next try, so a row that stands alone gets one.
DECLARE
    c_ways CONSTANT integer := 16;
    v_size integer;
    v_sqlstate text;
    v_message text;
    v_table text;
    v_constraint text;
    v_part billing.renewal_outcome;
    v_sum billing.renewal_outcome := ROW(0, 0, 0, 0);
BEGIN
    FOR v_try IN 1 .. 2 LOOP
        BEGIN
            RETURN billing.renew_claimed(p_claimed, p_as_of, p_run_id);
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS
                v_sqlstate = RETURNED_SQLSTATE, v_message = MESSAGE_TEXT, v_table = TABLE_NAME,
                v_constraint = CONSTRAINT_NAME;
            -- A day of the outbox was attached while this statement was on its way into the default partition.
            IF v_sqlstate = '23514' AND v_constraint = '' AND v_table LIKE 'outbox_event%' THEN
                RAISE EXCEPTION USING
                    ERRCODE = 'SB401',
                    MESSAGE = 'a partition of the outbox was made at this very moment';
            END IF;
            IF v_sqlstate !~ '^(22|23|SB9)' THEN
                RAISE;
            END IF;
        END;
        EXIT WHEN v_sqlstate <> '23505' OR cardinality(p_claimed) > 1;
    END LOOP;

    IF cardinality(p_claimed) = 1 THEN
        PERFORM billing.park_subscription(p_claimed[1], v_sqlstate, v_message, p_as_of);
        RETURN ROW(0, 0, 1, 0)::billing.renewal_outcome;
    END IF;

    v_size := ceil(cardinality(p_claimed)::numeric / c_ways);
    FOR v_from IN 1 .. cardinality(p_claimed) BY v_size LOOP
        v_part := billing.renew_or_divide(p_claimed[v_from : v_from + v_size - 1], p_as_of, p_run_id);
        v_sum := ROW(
            v_sum.renewed + v_part.renewed, v_sum.ended + v_part.ended,
            v_sum.parked + v_part.parked, v_sum.limit_reached + v_part.limit_reached
        );
    END LOOP;
    RETURN v_sum;
END;
$function$;

COMMENT ON FUNCTION billing.renew_or_divide IS
'Renews a batch; where a row of it cannot be renewed for its data, divides until that row stands alone, and parks it.';
