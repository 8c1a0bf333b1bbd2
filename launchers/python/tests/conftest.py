"""Runs pytest within tests, in a process of its own."""

pytest_plugins = ["pytester"]
