"""Plants deliberate bugs in the rule engine, one at a time, and checks that the tests catch each.

    python scripts/mutate_rules.py [NUMBER ...]

Works on a copy of `src` in a temporary folder; the sources themselves are never touched. The exit status is 1 if a bug
survives or no longer applies.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULE = "bylaw/rule"

BUGS: tuple[tuple[str, str, str, str], ...] = (
    (
        "strong next counts as met at the end",
        "progression.py",
        "moved = frozenset([2 << 2 * left])",
        "moved = frozenset([1 << 2 * left])",
    ),
    (
        "weak next must have a next step",
        "progression.py",
        "moved = frozenset([1 << 2 * left])",
        "moved = frozenset([2 << 2 * left])",
    ),
    (
        "eventually may be put off past the end",
        "progression.py",
        "moved = _either(self._move(left, now), strong)",
        "moved = _either(self._move(left, now), weak)",
    ),
    (
        "until forgets its left side",
        "progression.py",
        "moved = _either(self._move(right, now), _both(self._move(left, now), strong))",
        "moved = _either(self._move(right, now), strong)",
    ),
    (
        "release lets go one step early",
        "progression.py",
        "moved = _both(self._move(right, now), _either(self._move(left, now), weak))",
        "moved = _either(self._move(left, now), _both(self._move(right, now), weak))",
    ),
    (
        "weak until must come",
        "progression.py",
        'return self._node("release" if wanted else "until", build(right, wanted), either)',
        'return self._node("until", build(left, wanted), build(right, wanted))',
    ),
    (
        "xor is or",
        "progression.py",
        'first = self._node("and", build(left, True), build(right, not wanted))',
        'first = self._node("and", build(left, True), build(right, True))',
    ),
    (
        "implies does not negate its left side",
        "progression.py",
        "return self._node(one, build(left, not wanted), build(right, wanted))",
        "return self._node(one, build(left, wanted), build(right, wanted))",
    ),
    (
        "yesterday holds at the first step",
        "progression.py",
        'return "yesterday", self._place(operand), 0, self._bit(0)',
        'return "yesterday", self._place(operand), 0, self._bit(1)',
    ),
    (
        "historically starts false",
        "progression.py",
        'return "historically", self._place(operand), 0, self._bit(1)',
        'return "historically", self._place(operand), 0, self._bit(0)',
    ),
    (
        "once forgets",
        "progression.py",
        "value = values[left] | bits >> bit & 1\n                    after |= value << bit",
        "value = values[left] | bits >> bit & 1\n                    after |= values[left] << bit",
    ),
    (
        "since does not need its left side",
        "progression.py",
        "value = values[right] | values[left] & bits >> bit & 1",
        "value = values[right] | bits >> bit & 1",
    ),
    (
        "alternatives that ask for more are kept instead",
        "progression.py",
        "fewer & alternative == fewer",
        "fewer & alternative == alternative",
    ),
    (
        "every letter is taken for possible",
        "letters.py",
        "if without := left & ~table:",
        "if (without := left & ~table) or True:",
    ),
    (
        "minimisation stops after one round",
        "automaton.py",
        "if len(signs) == len(numbers):\n            return classes",
        "if True:\n            return finer",
    ),
    (
        "a state is permanent if one letter leads back",
        "automaton.py",
        "permanent = all(self._classes[there] == number for there in row)",
        "permanent = any(self._classes[there] == number for there in row)",
    ),
    (
        "re-arming forgets the past",
        "progression.py",
        "return state[0], self._fresh",
        "return self.start[0], self._fresh",
    ),
    ("rules do not re-arm", "automaton.py", "if verdicts[classes[there]] == BROKEN else there", "if False else there"),
    ("an unknown predicate counts as false", "program.py", "unknown |= place", "bits |= 0"),
    (
        "completions that disagree count as broken",
        "monitor.py",
        "return found.pop() if len(found) == 1 else None",
        "return found.pop()",
    ),
    (
        "a set moves a rule by its first completion only",
        "monitors.py",
        "words += [word | 1 << place for word in words]",
        "words = [word | 1 << place for word in words]",
    ),
    (
        "a set leaves the broken flag in the state",
        "rulebook.py",
        "return after ^ broken, RuleStep(broken, self.quick)",
        "return after, RuleStep(broken, self.quick)",
    ),
    (
        "a table holds what is without the action where it is taken",
        "table.py",
        "rows += [keeps({**values, **self.left}), keeps(values)]",
        "rows += [keeps(values), keeps({**values, **self.left})]",
    ),
    (
        "a new binding starts without the past",
        "monitor.py",
        "self._monitors[binding] = self._others.fork()",
        "self._monitors[binding] = Monitor(self.rule)",
    ),
)
"""What is wrong, the file, the text to replace (found exactly once), and the bug."""


def main() -> int:
    chosen = {int(number) for number in sys.argv[1:]}
    survivors: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        if caught(copy):
            print("the tests fail without any bug")
            return 1
        for number, (wrong, file, old, new) in enumerate(BUGS, 1):
            if chosen and number not in chosen:
                continue
            path = copy / RULE / file
            source = path.read_text()
            if source.count(old) != 1:
                outcome = "does not apply"
                survivors.append(wrong)
            else:
                path.write_text(source.replace(old, new))
                outcome = "caught" if caught(copy) else "SURVIVES"
                path.write_text(source)
                if outcome != "caught":
                    survivors.append(wrong)
            print(f"{number:3} {outcome:15} {wrong}", flush=True)
    print(f"{len(survivors)} of {len(chosen) or len(BUGS)} bugs not caught")
    return 1 if survivors else 0


def caught(source: Path) -> bool:
    """Whether the temporal tests fail on this copy of the sources."""
    tests = ROOT / "tests" / "rule" / "temporal"
    quick = ["test_automaton.py", "test_lines.py", "test_monitors.py", "test_lint.py", "test_agreement.py"]
    quick.append("../circuits/test_monitored.py")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *(tests / name for name in quick),
    ]
    # Kept apart for each bug: two of the same length within a second would pass for one.
    bytecode = tempfile.mkdtemp(dir=source.parent)
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONPYCACHEPREFIX": bytecode}
    check = "import bylaw, sys; sys.exit(not bylaw.__file__.startswith(sys.argv[1]))"
    subprocess.run([sys.executable, "-B", "-c", check, str(source)], env=environment, cwd=ROOT, check=True)
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=False).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
