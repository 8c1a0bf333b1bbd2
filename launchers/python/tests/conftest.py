"""Runs pytest within tests, in a process of its own."""

pytest_plugins = ["pytester"]

# It has a suite of its own, which test_application.py runs.
collect_ignore = ["application"]
