"""Bugs in how a guard is run."""

from planted.bug import Bug

BUGS = (
    Bug("only the first path is looked at", "guard/evaluate.py",
        "not (other or _turn(run.decisions, run.position)):",
        "True:",
        "guard/test_completion.py"),
    Bug("what may not exist is taken to exist", "guard/evaluate.py",
        "for fact, thing in run.doubtful.items():",
        "for fact, thing in list(run.doubtful.items())[:0]:",
        "guard/test_completion.py"),
    Bug("an absent thing ends in permit", "guard/evaluate.py",
        'return "deny", str(absent)',
        'return "permit", str(absent)',
        "guard/test_completion.py"),
    Bug("a fact that another guard asked for is no read", "guard/run.py",
        "            value = self.ask(spec, key, fact)\n",
        "            value = self.ask(spec, key, fact)\n"
        "        elif value.__class__ not in NOT_KNOWN:\n"
        "            return value\n",
        "guard/test_completion.py"),
    Bug("what a denial only tells is a read", "guard/run.py",
        "self.hushed, self.is_noting, self.is_open = fallback, False, True",
        "self.hushed, self.is_open = fallback, True",
        "guard/test_completion.py"),
    Bug("a member that may say yes is taken for a no", "guard/member.py",
        "        trial.answer = None\n",
        "        trial.answer = False\n",
        "guard/test_completion.py"),
    Bug("members decided on one path are decided on all", "guard/member.py",
        "if trial is None or not run.path.keys().isdisjoint(trial.open):\n            run.spend(weight)\n"
        "            trial = Trial(key)\n            _try_member(run, trial, specs, body)\n"
        "            if run.path.keys().isdisjoint(trial.open):\n",
        "if trial is None:\n            run.spend(weight)\n"
        "            trial = Trial(key)\n            _try_member(run, trial, specs, body)\n"
        "            if True:\n",
        "guard/test_completion.py"),
    Bug("the other way of a last fork is neither run nor noted", "guard/run.py",
        "self.decisions[-1], self.other = False, other",
        "self.decisions[-1], self.other = False, None",
        "guard/test_twin.py"),
    Bug("the other way of a test that is denied is taken for this one", "guard/last_fork.py",
        "_noting(operand, no, yes, constants)",
        "_noting(operand, yes, no, constants)",
        "guard/test_twin.py"),
    Bug("what may not exist ends like any other way of a last fork", "guard/run.py",
        "test.__class__ is UnknownBool and test.variable.thing is None:",
        "test.__class__ is UnknownBool:",
        "guard/test_completion.py"),
)  # fmt: skip
