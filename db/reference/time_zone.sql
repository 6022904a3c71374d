-- Zones that this server knows, without the copies under posix/ and right/ and the local ones.
INSERT INTO billing.time_zone (name)
SELECT z.name
FROM pg_catalog.pg_timezone_names AS z
WHERE z.name !~ '^(posix|right)/' AND z.name NOT IN ('Factory', 'localtime', 'posixrules')
ON CONFLICT (name) DO NOTHING;
