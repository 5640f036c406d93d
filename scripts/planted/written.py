"""Bugs in how a pack is compiled, updated and reviewed."""

from planted.bug import Bug

BUGS = (
    Bug("a review of one policy binds the whole pack", "engine/review.py",
        'unsigned: Standing = "open" if is_compiled(root) else "unreviewed"', 'unsigned: Standing = "open"',
        "shield/test_reviewed.py"),
    Bug("an acceptance holds for a check that was changed since", "engine/review.py",
        "is_same = (signature.sentence, signature.check) == (sides.sentence, sides.check)",
        "is_same = signature.sentence == sides.sentence",
        "compile/test_review.py"),
    Bug("an acceptance does not cover what a guard calls", "engine/review.py",
        "wanted += [node.id for", "wanted += [node.id[:0] for",
        "compile/test_review.py shield/test_reviewed.py"),
    Bug("an update forgets a guard that was edited by hand", "compile/update.py",
        "            check = replace(check, code=code)\n", "            pass\n",
        "compile/test_update.py"),
    Bug("an update forgets rules that were edited by hand", "compile/update.py",
        "            check = replace(check, rules=own)\n", "            pass\n",
        "compile/test_update.py"),
    Bug("an update forgets who accepted that nothing enforces a policy", "compile/update.py",
        "if name in words and name in before and before[name].sentence == after[name].sentence:", "if False:",
        "compile/test_update.py"),
    Bug("such a word outlives the sentence it was given on", "compile/update.py",
        "if name in words and name in before and before[name].sentence == after[name].sentence:", "if name in words:",
        "compile/test_update.py"),
    Bug("a rule is refined though a case then fails", "compile/ruleset.py",
        'if faults or got != case["want"]:', "if faults:",
        "compile/test_refine.py"),
    Bug("cases of one guard are those of another", "compile/bench.py",
        "key = repr(cases)", 'key = ""',
        "compile/test_pipeline.py"),
)  # fmt: skip
