-- A database that is to be another shard than 0 says so before it holds anything.

INSERT INTO billing.error_code (sqlstate, name, http_status, meaning) VALUES
('SB371', 'database_in_use', 409, 'Only a database without customers and plans can become another shard.');
