"""What runs the SQL tests: pgTAP from its package, databases to clone, the isolation tester."""
