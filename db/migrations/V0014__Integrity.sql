-- What check_integrity returns.

CREATE TYPE billing.violation AS (
    check_name text,
    severity text,
    customer_id bigint,
    object text,
    detail text
);
COMMENT ON TYPE billing.violation IS
'One broken promise. severity: BROKEN (money or service is wrong), STUCK (something waits that nothing will move) or WARNING.';
