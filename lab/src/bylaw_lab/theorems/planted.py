"""Bugs planted in copies of the shield. With each bug, the search must reject a call."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import bylaw


class Bug(NamedTuple):
    """A change that puts a bug into the source."""

    name: str
    file: str
    """The file in the package `bylaw`."""
    old: str
    new: str
    story: str = "consent"
    """The kind of conversation that must find it."""


class Verdict(NamedTuple):
    """Whether the search found a bug, with the first lines of its report."""

    bug: Bug
    is_found: bool
    output: str


BUGS = (
    Bug(
        "a yes permits any number of calls",
        "consent/consents.py",
        "spent = self._writes.spending(call, answer.since)\n",
        "spent = None\n",
    ),
    Bug(
        "a call without a result does not use a yes",
        "facts/call_record.py",
        "return earlier.counts_at(step) or not earlier.is_surely_refused()",
        "return earlier.counts_at(step) and earlier.delivered is not None",
    ),
    Bug(
        "a failed call gives its yes back",
        "facts/call_record.py",
        "return earlier.counts_at(step) or not earlier.is_surely_refused()",
        "return earlier.counts_at(step) and not (earlier.result is not None and earlier.result.error)",
    ),
    Bug(
        "a later message of the user leaves a yes valid",
        "consent/cards.py",
        "if at == _LAST or self._takes_back(each, texts, put, last.step):",
        "if at == _LAST:",
    ),
    Bug(
        "a card beside misleading words counts",
        "consent/cards.py",
        "return len(beside) > _BESIDE or not _ASKS.isdisjoint(beside) or not _is_all(_EITHER, beside)",
        "return False",
    ),
    Bug(
        "a press on one card counts for every call of its tool",
        "consent/card.py",
        "parts = [tool, msgspec.to_builtins(given),",
        "parts = [tool, len(arguments),",
    ),
    Bug(
        "a yes to one fee counts for another",
        "consent/card.py",
        "*([facts.plain()] if facts.values else [])]",
        "]",
    ),
    Bug(
        "an unknown fee is not looked up",
        "consent/card.py",
        "        return not self.lacking and not self.faults\n",
        "        return True\n",
    ),
    Bug(
        "a conditional yes is a yes",
        "consent/answer.py",
        "name in each.languages and _is_echo(language, echoes, each) for each in shown",
        "True for each in shown",
    ),
    Bug(
        "a card never expires",
        "consent/cards.py",
        "return expires is not None and time is not None and time >= expires",
        "return False",
    ),
    Bug(
        "a yes to a sentence never expires",
        "consent/cards.py",
        "return now - answered <= put.lifetime and ",
        "return ",
    ),
    Bug(
        "a copy of a card extends it",
        "consent/cards.py",
        "ends = expires, told + ",
        "ends = None, told + ",
    ),
    Bug(
        "a pressed no is not heard",
        "consent/cards.py",
        "answer = CardAnswer(step, event.confirmation.yes, step)",
        "answer = CardAnswer(step, True, step)",
    ),
    Bug(
        "a message with a name is the user's",
        "trace/transcript.py",
        "has_words = bool(text) and not text.isspace() and is_users(name)",
        "has_words = bool(text) and not text.isspace()",
    ),
    Bug(
        "a message told again is a new one",
        "engine/told_again.py",
        "        if not self._known:\n            return KnownMessages(0)\n",
        "        return KnownMessages(0)\n",
        "requests",
    ),
    Bug(
        "another principal inherits every yes",
        "engine/session.py",
        "            self._hand_over(event.handover)\n",
        "            pass\n",
    ),
    Bug(
        "a paused call resumes whatever has happened since",
        "shield/repeating.py",
        "    events = conversation.events\n    call = events[step]\n",
        "    return True\n",
    ),
    Bug(
        "a paused call resumes twice",
        "shield/history.py",
        "                    self.interrupted.pop(value.call, None)\n",
        "                    pass\n",
    ),
    Bug(
        "a model's answer counts for every later call",
        "engine/predicate_values.py",
        "        known = self.answered.get((predicate.name, act.step))\n",
        "        known = next((each for each in self.answered.values() if each.value), None)\n",
    ),
    Bug(
        "a request permits any number of calls",
        "engine/request/spending.py",
        "if since < made.step < at.step and may_have_run(made, at.step):",
        "if False:",
        "requests",
    ),
    Bug(
        "two calls take the last place under a limit at once",
        "record/use.py",
        "        if cursor.fetchone()[0] >= use.most:\n",
        "        if False:\n",
        "limits",
    ),
    Bug(
        "a failed call gives its place under a limit back",
        "shield/history.py",
        "is_refused = made is not None and made.result is event and made.is_surely_refused()",
        "is_refused = made is not None",
        "limits",
    ),
    Bug(
        "an approval can be used again",
        "shield/approving.py",
        'used = [Change(found.approval, "used"), *self._ended_with(found)] if is_used else []',
        "used = []",
        "shop",
    ),
    Bug(
        "an approval permits other arguments",
        "shield/approving.py",
        "call = fingerprint([made.tool, made.arguments, *([read] if read else [])])",
        "call = fingerprint([made.tool])",
        "shop",
    ),
    Bug(
        "an approval counts in every chat of the principal",
        "shield/decision_service.py",
        "return step is not None and is_of_one_chat(home.events[:step], before)",
        "return True",
        "shop",
    ),
    Bug(
        "an approval outlives its facts",
        "shield/approving.py",
        'changes.append(Change(found.approval, "expired", CHANGED, "the facts behind it have changed"))',
        "facts = found.facts",
        "shop",
    ),
    Bug(
        "an approval never expires",
        "shield/approving.py",
        "return approval in self._requests and now >= self._requests[approval].ends",
        "return False",
        "shop",
    ),
    Bug(
        "a paused call resumes after a person's no",
        "shield/repeating.py",
        "if any(map(is_rejected, did)):",
        "if False:",
        "shop",
    ),
    Bug(
        "a paused call resumes on other facts than were approved",
        "shield/repeating.py",
        "    if is_approved and rested_on != rests_on:\n",
        "    if False:\n",
        "shop",
    ),
    Bug(
        "a stop holds for the tool as it is written only",
        "shield/stopping.py",
        "return stop.name in names or (bool(wanted := loose(stop.name)) and wanted in map(loose, names))",
        "return stop.name in names",
        "shop",
    ),
    Bug(
        "only the first of several stops holds",
        "shield/stopping.py",
        "(stop for stop in stops.standing if",
        "(stop for stop in stops.standing[:1] if",
        "shop",
    ),
    Bug(
        "a write leaves facts fresh",
        "facts/changes.py",
        "                if touch.counts(key, known_at):\n",
        "                if False:\n",
        "shop",
    ),
)


def plant(conversations: int, seed: int, folder: Path, names: tuple[str, ...] = ()) -> Iterator[Verdict]:
    """Search for each bug in a copy of the package, and stop at its first rejection.

    Without a bug, the same search must reject nothing. If it does, that rejection is also returned as a verdict.
    """
    source = Path(bylaw.__file__).parent
    copy = folder / "bylaw"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    bugs = [bug for bug in BUGS if not names or bug.name in names]
    for story in dict.fromkeys(bug.story for bug in bugs):
        sound = _search(Bug(f"no bug, {story}", "", "", "", story), conversations, seed, folder)
        if sound.output:
            yield sound._replace(is_found=False)
    for bug in bugs:
        file = copy / bug.file
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if text.count(bug.old) != 1:
            yield Verdict(bug, False, f"its text is found {text.count(bug.old)} times in {bug.file}, not once")
            continue
        file.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        yield _search(bug, conversations, seed, folder)
        file.write_text(text, encoding="utf-8")


def _search(bug: Bug, conversations: int, seed: int, folder: Path) -> Verdict:
    options = ["--conversations", str(conversations), "--seed", str(seed), "--stop-after", "1", "--story", bug.story]
    done = subprocess.run(
        [sys.executable, "-c", "from bylaw_lab.cli import main; main()", "theorems", *options],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("REJECTED")][:1]
    return Verdict(bug, done.returncode == 1 and bool(found), "\n".join(found) or done.stderr[-500:])
