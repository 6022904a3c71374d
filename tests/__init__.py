"""The tests: SQL in `sql`, Python in `py`."""
