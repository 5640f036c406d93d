"""Facts: what shows them, what makes them stale, and their true values. Start at `entity`, then `ledger`."""

from bylaw.facts.entity import ABSENT, EXISTS, UNSEEN, Entity, Fact, FactSource, Field, Key, ReadTool

__all__ = ["ABSENT", "EXISTS", "UNSEEN", "Entity", "Fact", "FactSource", "Field", "Key", "ReadTool"]
