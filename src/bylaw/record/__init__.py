"""The decision log. Requests and decisions are on disk before the caller receives them. Start at `log`."""

from bylaw.record.entry import Conflict, Draft, Entry
from bylaw.record.journal import Journal
from bylaw.record.log import Log
from bylaw.record.store import Store, open_store

__all__ = ["Conflict", "Draft", "Entry", "Journal", "Log", "Store", "open_store"]
