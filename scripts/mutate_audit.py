"""Plants deliberate bugs in the auditor, one at a time, and checks that a test or the clinic's truth catches each.

    python scripts/mutate_audit.py [NUMBER ...]

Works on copies of `src` in a temporary folder; the sources themselves are never touched. The sound source is tried
first, and must pass. Two bugs are tried at a time. The exit status is 1 if a bug survives or no longer applies.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/facts/test_staleness.py",
    "tests/facts/test_observation.py",
    "tests/facts/test_testimony.py",
    "tests/facts/test_worlds.py",
    "tests/engine/test_verdict.py",
    "tests/engine/test_claim.py",
    "tests/engine/test_cases.py",
    "tests/audit/test_contract.py",
    "tests/audit/test_robust.py",
    "tests/policy/test_document.py",
    "tests/guard/test_language.py",
    "tests/guard/test_completion.py",
    "tests/guard/test_twin.py",
    "tests/facts/test_twin.py",
    "tests/engine/test_laws.py",
    "tests/engine/test_attacks.py",
    "tests/engine/test_context.py",
    "tests/audit/test_rule_facts.py",
    "tests/engine/test_quick_ways.py",
    "tests/engine/test_rules.py",
)
TRUTH = ("benchmarks/clinic_truth.py", "--seeds", "1", "--count", "120", "--show", "1")
LIMIT = 900
SURVIVES = "NOT CAUGHT"


class Bug(NamedTuple):
    """One line of the source, made wrong."""

    name: str
    file: str
    old: str
    new: str


BUGS: tuple[Bug, ...] = (
    # What was seen.
    Bug("calls of one turn see each other's results", "facts/source.py",
        "        thing = self._ledger.thing(entity.name, key)\n",
        "        self._at.start = self._at.step; thing = self._ledger.thing(entity.name, key)\n"),
    Bug("sub-agents see what others were shown", "facts/ledger.py",
        "            if entry.agent != who:\n                continue\n", ""),
    Bug("a refused write makes stale", "facts/call_record.py",
        "return self.accepted is not False or self.delivered is None or self.delivered >= step", "return True"),
    Bug("a write without a result makes nothing stale", "facts/call_record.py",
        "return self.accepted is not False or self.delivered is None or self.delivered >= step",
        "return self.accepted is True"),
    Bug("the judged call makes its own facts stale", "facts/ledger.py",
        "if step < before and (touch.fields", "if step <= before and (touch.fields"),
    Bug("a write does not show anew what it changed", "facts/ledger.py",
        "                if step <= after:\n", "                if step < after:\n"),
    Bug("any write makes every field of its thing stale", "facts/ledger.py",
        "if step < before and (touch.fields is None or field in touch.fields) and", "if step < before and"),
    Bug("a write of unknown key makes nothing stale", "facts/ledger.py",
        "for index in ((entity, loose_key(key)), (entity, None)):", "for index in ((entity, loose_key(key)),):"),
    Bug("facts never expire", "facts/ledger.py",
        "return now - since > seconds or now < max(latest, since) - SKEW", "return False"),
    Bug("a second result for a call is believed", "facts/ledger.py",
        "if made is None or made.result is not None or made.call.refused:", "if made is None or made.call.refused:"),
    Bug("a later look does not undo absence", "facts/source.py",
        "existence.value is False and (found is None or found.as_of < existence.as_of)", "existence.value is False"),
    Bug("absence is not noticed", "facts/observation.py",
        "scope, exists=False)", "scope, exists=True)"),
    Bug("a failed look shows what it holds", "facts/observation.py",
        "    elif accepted:\n", "    else:\n"),
    Bug("the newest words of the user do not count", "facts/source.py",
        "for place in reversed(self._ledger.stating([pattern for _, pattern in sayings])) if sayings",
        "for place in self._ledger.stating([pattern for _, pattern in sayings]) if sayings"),
    Bug("an argument named like a user fact is not read", "facts/source.py",
        "value = self._at.call.arguments.get(saying.argument) if saying.argument else None", "value = None"),
    # What is true.
    Bug("hindsight trusts what a later write changed", "facts/source.py",
        "min(soonest.as_of, at) - 1, FOREVER) is None", "min(soonest.as_of, at) - 1, at) is None"),
    Bug("hindsight trusts what an earlier write changed", "facts/source.py",
        "if ledger.changed(entity.name, key, field, newest.as_of, at) is None:", "if True:"),
    Bug("the world does not move with the writes", "engine/session.py",
        "            if world is not None and made is not None and made.counts():\n", "            if False:\n"),
    Bug("the world moves with refused writes", "engine/session.py",
        "made is not None and made.counts():", "made is not None:"),
    Bug("what moves a number is forgotten", "facts/world_change.py",
        "return coerce(field, before or 0) + coerce(field, value)", "return coerce(field, value)"),
    Bug("a world keeps what a write without effects declares changed", "facts/world.py",
        "                self._forget(change.entity, key, change.fields)\n", "                pass\n"),
    Bug("the host's word is withheld from the world", "engine/session.py",
        "return WorldFacts(world, self.ledger, made, self._context)",
        "return WorldFacts(world, self.ledger, made, {})"),
    Bug("the host's word is withheld from hindsight", "engine/session.py",
        "return HindsightFacts(self.ledger, made, self._context)", "return HindsightFacts(self.ledger, made, {})"),
    # The rules.
    Bug("a call that is only judged moves the rules", "engine/session.py",
        "conduct = self._conduct.fork()\n", "conduct = self._conduct\n"),
    Bug("a call refused before it ran may have been done", "facts/ledger.py",
        "made.accepted, made.delivered = False, step", "pass"),
    Bug("a message waits for the user also where a call of its turn follows", "engine/conduct.py",
        "replace(act, without_call=True) if without_call else act", "replace(act, without_call=True)"),
    Bug("words that were not recorded count as unsaid", "engine/rules.py",
        "return False if all(source.captured for source in sources) else None", "return False"),
    Bug("every call of a turn is a finding of its own", "engine/session.py",
        "found.setdefault((each.turn,", "found.setdefault((each.step,"),
    Bug("what does not matter is taken for all that does", "rule/rulebook.py",
        "if any(table[each] != table[each ^ place] for each in places):",
        "if all(table[each] != table[each ^ place] for each in places):"),
    # The verdict.
    Bug("blind and lucky is compliant", "engine/verdict.py",
        '"near_miss" if lucky else "uninformed"', '"compliant" if lucky else "uninformed"'),
    Bug("a violation on outdated evidence is compliant", "engine/verdict.py",
        '("permit", "deny"): "violation"', '("permit", "deny"): "compliant"'),
    Bug("a failed guard is compliant", "engine/verdict.py", '"inconclusive")\n', '"compliant")\n'),
    Bug("a near-miss outweighs a violation", "engine/verdict.py",
        '("violation", "near_miss", "uninformed"', '("near_miss", "violation", "uninformed"'),
    Bug("strict looks only at what decides", "engine/settlement.py",
        "missing = tuple(fact for fact in reads if self._is_missing(fact))\n        asked",
        "missing = tuple(fact for fact in evidence.lacking if self._is_missing(fact))\n        asked"),
    Bug("every missing fact is decisive", "engine/settlement.py",
        "tuple(self._missing(fact, fact in lacking) for fact in missing)",
        "tuple(self._missing(fact, True) for fact in missing)"),
    Bug("a stale fact counts as never seen", "engine/settlement.py",
        'return MissingFact(fact, lookup, "pending" if is_pending else "stale"',
        'return MissingFact(fact, lookup, "pending" if is_pending else "never_seen"'),
    Bug("claims are looked for after the call too", "engine/claim.py", "if step >= before or (text", "if (text"),
    Bug("an amount is claimed by part of a larger one", "engine/claim.py",
        r"(?<![\w.,]){grouped}{cents}(?!\w|[.,]\d)", r"{grouped}{cents}"),
    # The guard's evaluation.
    Bug("only the first path is looked at", "guard/evaluate.py",
        "not _turn(run.decisions, run.position):", "True:"),
    Bug("what may not exist is taken to exist", "guard/evaluate.py",
        "for fact, thing in run.doubtful.items():", "for fact, thing in list(run.doubtful.items())[:0]:"),
    Bug("an absent thing ends in permit", "guard/evaluate.py",
        'return "deny", str(absent)', 'return "permit", str(absent)'),
    # The report.
    Bug("refused calls count as executed", "audit/tally.py",
        "v for v in verdicts if v.made.accepted is not False and", "v for v in verdicts if"),
    Bug("near-misses count in failed conversations", "audit/tally.py",
        'if "near_miss" in found and good:', 'if "near_miss" in found:'),
    Bug("calls of unknown tools are left out", "audit/examine.py",
        "if v.made.tool is not None or v.made.accepted is not False]", "if v.made.tool is not None]"),
    Bug("a malformed record is dropped without a word", "audit/run.py",
        "                skipped.append(part)\n", "                pass\n"),
    Bug("a changed sentence does not make a policy stale", "engine/statements.py",
        "stale |= citation is None", "stale |= False"),
    # The quick ways.
    Bug("a fact that another guard asked for is no read", "guard/run.py",
        "            value = self.ask(spec, key, fact)\n",
        "            value = self.ask(spec, key, fact)\n        elif value.__class__ not in NOT_KNOWN:\n"
        "            return value\n"),
    Bug("what a denial only tells is a read", "guard/run.py",
        "self.hushed, self.is_noting, self.is_open = fallback, False, True",
        "self.hushed, self.is_open = fallback, True"),
    Bug("what was seen is taken for true", "engine/settlement.py",
        "is_equal(self._seen.read(entity, key, field), self._truth.read(entity, key, field))",
        "is_known(self._seen.read(entity, key, field))"),
    Bug("a member that may say yes is taken for a no", "guard/run.py",
        "            trial.answer = None\n", "            trial.answer = False\n"),
    Bug("members decided on one path are decided on all", "guard/run.py",
        "if tried is None or self.has_decided_existence or not self.path.keys().isdisjoint(tried.open):",
        "if tried is None:"),
)  # fmt: skip


def main() -> int:
    """Try the bugs asked for, or all; print a table."""
    chosen = [int(number) for number in sys.argv[1:]] or list(range(1, len(BUGS) + 1))
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        # One copy for all, so that they differ in nothing but their bug.
        sound = Path(folder) / "sound"
        shutil.copytree(ROOT / "src", sound, ignore=shutil.ignore_patterns("__pycache__"))
        if (caught := _caught(sound, Path(folder))) != SURVIVES:
            print(f"the sound source fails: {caught}")
            return 2
        width = max(len(BUGS[number - 1].name) for number in chosen)
        survived = 0
        print(f"{'':3} {'bug':{width}}  {'seconds':>7}  caught by", flush=True)
        with ThreadPoolExecutor(2) as pool:
            found = pool.map(lambda number: _try(BUGS[number - 1], sound), chosen)
            for number, (caught, seconds) in zip(chosen, found, strict=True):
                survived += caught.startswith("NOT")
                print(f"{number:3} {BUGS[number - 1].name:{width}}  {seconds:7.1f}  {caught}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} bugs caught in {perf_counter() - started:.0f} s")
    return 1 if survived else 0


def _try(bug: Bug, sound: Path) -> tuple[str, float]:
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(sound, source)
        target = source / "bylaw" / bug.file
        text = target.read_text(encoding="utf-8")
        if text.count(bug.old) == 0:
            return f"NOT PLANTED: `{bug.file}` no longer has that line", 0.0
        target.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        caught = _caught(source, Path(folder))
    return caught, perf_counter() - started


def _caught(source: Path, folder: Path) -> str:
    """What catches the bug: the first failing test, else a difference from the truth."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{ROOT}",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT
        )

    try:
        tested = run("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *TESTS)
        if tested.returncode:
            failed = [line for line in tested.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            return failed[0].removeprefix("FAILED ").partition(" - ")[0] if failed else tested.stdout[-200:].strip()
        compared = run(*TRUTH)
    except subprocess.TimeoutExpired:
        return f"it runs for more than {LIMIT} s"
    if compared.returncode:
        lines = [line for line in compared.stdout.splitlines() if line.startswith("differences")]
        return f"the clinic's truth, {lines[0]}" if lines else f"the clinic's truth: {compared.stderr[-100:].strip()}"
    return SURVIVES


if __name__ == "__main__":
    sys.exit(main())
