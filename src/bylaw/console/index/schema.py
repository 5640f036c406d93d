"""The tables of an index. What a page shows of a line is read from the line itself, at the place kept here."""

VERSION = "1"
"""An index of another version is made anew."""

NAME = "console.db"
"""The index beside an audit's files, made from them."""

TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE conversations (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, place INTEGER, length INTEGER,
  good INTEGER, calls INTEGER NOT NULL DEFAULT 0, flagged INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE calls (
  conversation INTEGER NOT NULL, step INTEGER NOT NULL, tool TEXT NOT NULL, verdict TEXT NOT NULL,
  place INTEGER NOT NULL
);
CREATE TABLE reasons (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, policy TEXT NOT NULL, verdict TEXT NOT NULL,
  severity TEXT NOT NULL, gravity INTEGER NOT NULL, words TEXT NOT NULL
);
CREATE TABLE findings (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, reason INTEGER NOT NULL, conversation INTEGER NOT NULL,
  file TEXT NOT NULL, place INTEGER NOT NULL, step INTEGER NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,
  verdict TEXT NOT NULL, executed INTEGER, gravity INTEGER NOT NULL, because TEXT NOT NULL
);
CREATE TABLE charges (finding INTEGER NOT NULL, policy TEXT NOT NULL, verdict TEXT NOT NULL, severity TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE talk USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
"""
"""`words` is what the list and the detail of a finding say, `talk` what was said in its conversation."""

INDICES = """
CREATE INDEX calls_by_conversation ON calls (conversation, step);
CREATE INDEX findings_by_reason ON findings (reason, gravity, number);
CREATE INDEX findings_by_conversation ON findings (conversation, step);
CREATE INDEX charges_by_policy ON charges (policy, finding);
CREATE INDEX charges_by_finding ON charges (finding);
CREATE INDEX conversations_by_agent ON conversations (agent, number);
"""
