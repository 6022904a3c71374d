"""Three books about the same business, each read by code that knows nothing of the other two.

What the database says by SQL, what the gateway's ledger file says by SQLite, what the topic says to
a consumer that starts at the first message. Only `billing_shell.report` sees all three.
"""
