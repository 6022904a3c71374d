"""Tests written in SQL: pgTAP files, isolation specs, and the little Python that runs them."""
