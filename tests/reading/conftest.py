"""A real PostgreSQL for the tests of SQL, as elsewhere."""

from tests.stores import postgres

__all__ = ["postgres"]
