"""Bugs in what an audit reads and counts."""

from planted.bug import Bug

BUGS = (
    Bug("refused calls count as executed", "audit/tally.py",
        "v for v in verdicts if v.made.accepted is not False and",
        "v for v in verdicts if",
        "audit/test_contract.py"),
    Bug("near-misses count in failed conversations", "audit/tally.py",
        'if "near_miss" in found and good:',
        'if "near_miss" in found:',
        "audit/test_contract.py"),
    Bug("calls of unknown tools are left out", "audit/examine.py",
        "if v.made.tool is not None or v.made.accepted is not False]",
        "if v.made.tool is not None]",
        "audit/test_contract.py"),
    Bug("a malformed record is dropped without a word", "audit/run.py",
        "                skipped.append(part)\n",
        "                pass\n",
        "audit/test_robust.py"),
)  # fmt: skip
