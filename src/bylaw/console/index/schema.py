"""The tables of an index. What a page shows of a line is read from the line itself, at the place kept here."""

VERSION = "6"
"""An index of another version is made anew."""

NAME = "console.db"
"""The index beside an audit's files, made from them."""

TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE conversations (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, place INTEGER, length INTEGER,
  good INTEGER, calls INTEGER NOT NULL DEFAULT 0, flagged INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE quiet (conversation INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE calls (
  conversation INTEGER NOT NULL, step INTEGER NOT NULL, tool TEXT NOT NULL, verdict TEXT NOT NULL,
  place INTEGER NOT NULL
);
CREATE TABLE reasons (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, policy TEXT NOT NULL, verdict TEXT NOT NULL,
  severity TEXT NOT NULL, gravity INTEGER NOT NULL, words TEXT NOT NULL
);
CREATE TABLE cells (
  number INTEGER PRIMARY KEY, reason INTEGER NOT NULL, kind TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,
  verdict TEXT NOT NULL, executed INTEGER, gravity INTEGER NOT NULL, findings INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE charges (cell INTEGER NOT NULL, policy TEXT NOT NULL, verdict TEXT NOT NULL, severity TEXT NOT NULL);
CREATE TABLE findings (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, cell INTEGER NOT NULL, reason INTEGER NOT NULL,
  gravity INTEGER NOT NULL, conversation INTEGER NOT NULL, file TEXT NOT NULL, place INTEGER NOT NULL,
  step INTEGER NOT NULL, because TEXT NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE cell_words USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE talk USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE quiet_talk USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
"""
"""A `cell` is all findings that no filter but a search tells apart; counts are sums over cells, of which there are few.

What the list and the detail say of a finding is searched for in three places: in `words` what is its own, in
`cell_words` what all of its cell share, in `talk` its conversation's name and what was said there. `quiet` are the
conversations that the audit found nothing in and so did not keep, out of its logs; `quiet_talk` what was said in them.
"""

INDICES = """
CREATE INDEX calls_by_conversation ON calls (conversation, step);
CREATE INDEX findings_by_gravity ON findings (gravity, number, cell);
CREATE INDEX findings_by_reason ON findings (reason, gravity, number, cell);
CREATE INDEX findings_by_cell ON findings (cell, number);
CREATE INDEX findings_by_conversation ON findings (conversation, step);
CREATE INDEX charges_by_policy ON charges (policy, cell);
CREATE INDEX charges_by_cell ON charges (cell);
CREATE INDEX conversations_by_agent ON conversations (agent, number);
"""

STANDINGS = """
CREATE TEMP TABLE known (finding INTEGER PRIMARY KEY);
CREATE TEMP TABLE waived (cell INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TEMP TABLE singled (finding INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TEMP TABLE tally (cell INTEGER NOT NULL, state TEXT NOT NULL, findings INTEGER NOT NULL);
INSERT INTO tally SELECT number,
  CASE WHEN executed IS 0 THEN 'refused' WHEN verdict = 'inconclusive' THEN 'open' ELSE 'new' END, findings FROM cells;
"""
"""How findings stand, in memory: `known` to an earlier audit; whole cells that are `waived`; what somebody has said of
single ones; and the counts of all that."""
