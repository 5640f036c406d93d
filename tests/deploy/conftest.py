"""A PostgreSQL server for those that need one."""

from tests.stores import postgres

__all__ = ["postgres"]
