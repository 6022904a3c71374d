"""Python tests with real servers; `test_<module>.py` mirrors the module it tests."""
