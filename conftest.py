"""Plugins for the tests of Bylaw and of its lab; all are in `tests`."""

PLUGINS = ("suite", "browser", "bytecode", "examples", "cpu_time", "stores", "lacking", "workers", "packs")
pytest_plugins = [f"tests.{name}" for name in PLUGINS]
