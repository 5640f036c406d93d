"""Bugs in training data and rewards."""

from planted.bug import Bug

BUGS = (
    Bug("a turn that needs no policy is worth nothing for recalling none", "align/reward.py",
        "if together else Fraction(1)", "if together else Fraction(0)",
        "align/test_reward.py"),
    Bug("the argument true equals the argument 1", "align/reward.py",
        "        return one is other\n", "        return one == other\n",
        "align/test_reward.py"),
    Bug("a very long thought costs more than everything", "align/reward.py",
        "length = min(Fraction(1), max(Fraction(0), Fraction(turn.thought_words - SOFT, HARD - SOFT)))",
        "length = max(Fraction(0), Fraction(turn.thought_words - SOFT, HARD - SOFT))",
        "align/test_reward.py"),
    Bug("a near-miss costs as much as an undecided call", "align/reward.py",
        '"near_miss": Fraction(1),', '"near_miss": Fraction(1, 2),',
        "align/test_reward.py"),
    Bug("a second think block is part of the answer", "align/output.py",
        'if "<think>" in rest or "</think>" in rest or', "if",
        "align/test_output.py"),
    Bug("a call may have fields that no call has", "align/output.py",
        ' or set(call) - {"name", "arguments"}', "",
        "align/test_output.py"),
    Bug("a look-up with an unknown argument is preferred", "align/dataset.py",
        ' and None not in look_up["args"].values()', "",
        "align/test_pairs.py"),
    Bug("a call that a rule leaves undecided is an example of a right one", "align/dataset.py",
        ' and not call["open_rules"]', "",
        "align/test_pairs.py"),
    Bug("a flagged call is an example of a right one", "align/dataset.py",
        "(audited.made, not audited.is_flagged)", "(audited.made, True)",
        "align/test_pairs.py"),
)  # fmt: skip
