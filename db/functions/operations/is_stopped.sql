CREATE OR REPLACE FUNCTION billing.is_stopped(
    p_name text
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
RETURN (SELECT w.thrown_at IS NOT NULL FROM billing.operator_switch AS w WHERE w.name = p_name)
OR billing.is_foreign_database();

COMMENT ON FUNCTION billing.is_stopped IS 'True while an operator has stopped RENEWING or COLLECTING, and in a copy of a database of which nobody has said what it is.';
