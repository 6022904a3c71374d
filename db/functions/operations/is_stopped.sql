CREATE OR REPLACE FUNCTION billing.is_stopped(
    p_name text
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
RETURN (SELECT w.thrown_at IS NOT NULL FROM billing.operator_switch AS w WHERE w.name = p_name);

COMMENT ON FUNCTION billing.is_stopped IS 'True while an operator has stopped RENEWING or COLLECTING.';
