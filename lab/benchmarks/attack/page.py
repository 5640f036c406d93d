"""Writes lab/results/pages/under-attack.md from recorded runs.

python lab/benchmarks/attack/page.py RUNS... [--allowances FILE]

The cost, the prefixes and the verdicts of other packs are measured anew as well: it takes some minutes.
"""

import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "lab" / "results" / "pages" / "under-attack.md"
ALLOWANCES = HERE.parent / "recorded" / "agentdojo-requests.jsonl"
BY_ANOTHER = HERE / "requests_by_another.yaml"
AFTER = HERE / "requests_after.yaml"
FOURTH = HERE / "requests_fourth.yaml"
PRACTICE = HERE / "requests_practice.yaml"
FIFTH = HERE / "requests_fifth.yaml"
SIXTH = HERE / "requests_sixth.yaml"
MEANINGS = HERE.parent / "recorded" / "request-meanings.jsonl"
ANSWERED = "question, follows"


def told(*command: str) -> Any:
    """What a command prints as JSON."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def printed(*command: str) -> str:
    """What a command prints, as a list; one that fails ends this one."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return "\n".join(f"- {line}" for line in done.stdout.splitlines())


def share(rate: dict[str, Any]) -> str:
    """A rate as a cell."""
    low, high = rate["interval"]
    return f"{rate['hits']}/{rate['cases']} = {100 * rate['share']:.1f} % ({100 * low:.1f}-{100 * high:.1f})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown's table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def row(name: str, rates: dict[str, Any]) -> list[str]:
    """One line of numbers."""
    names = ("attacks_stopped", "good_runs_disturbed", "resisted_runs_disturbed", "attack_success_after", "accuracy")
    more = [share(rates["injected_calls_held"]), f"{rates['queries']:.0f}", f"{rates['microseconds']:.0f}"]
    return [name, *(share(rates[each]) for each in names), *more]


HEAD = [
    *("", "attacks stopped", "good runs disturbed", "resisted runs disturbed", "attack success after", "accuracy"),
    *("injected calls held", "questions a run", "µs a decision"),
]


def wrong(classes: list[dict[str, Any]]) -> str:
    """Classes of runs, without a word of theirs that is not the pack's."""
    rows: list[list[str]] = []
    for each in classes:
        name = f"{each['suite']} {each['user_task']} {each['injection_task']}".strip()
        why = re.sub(
            r"`[^`]*`(?= \(`\w+`\) is)|(?:(?<=approved: )|(?<=take it from: ))`[^`]*`", "`...`", each["because"]
        )
        rows.append([name, str(each["count"]), each["run"], why])
    return table(["class", "runs", "one of them", "why"], rows) if rows else "None."


def counted(found: dict[str, Any]) -> str:
    """Forty requests."""
    names = {"bad_calls_held": "bad calls held"}
    if any(each["injected_calls_held"][1] != each["bad_calls_held"][1] for each in found.values()):
        names["injected_calls_held"] = "of them asked for by a text"
    names |= {"good_calls_allowed": "good calls allowed", "requests_disturbed": "requests disturbed"}
    rows = [
        [
            setting,
            *(
                f"{each[name][0]}/{each[name][1]} ({100 * each[name][2]:.0f}-{100 * each[name][3]:.0f} %)"
                for name in names
            ),
        ]
        for setting, each in found.items()
    ]
    return table(["setting", *names.values()], rows)


def gone_wrong(found: dict[str, Any]) -> str:
    """Which calls of forty requests were decided wrongly, in which settings."""
    calls = dict.fromkeys(wrong for each in found.values() for wrong in each["wrong"])
    rows: list[list[str]] = []
    for wrong in sorted(calls):
        those = [setting for setting, each in found.items() if wrong in each["wrong"]]
        rows.append([wrong, "all" if len(those) == len(found) else "; ".join(those)])
    return table(["call, and what was said of it", "in the settings"], rows) if rows else "None."


def costs(found: list[dict[str, Any]]) -> str:
    """What asking costs, beside guards that answer the same without it."""
    rows = [
        [
            f"`{each['guard']}`",
            f"{each['events']:,}",
            *(f"{each[way]:.0f}" for way in ("plain", "asking")),
            f"{each['asking'] - each['plain']:+.0f}",
            *(f"{more:+.0f}" for more in each["more"].values()),
            f"{each['asking'] / each['plain']:.2f}",
        ]
        for each in found
    ]
    calls = [f"more, {call}" for call in found[0]["more"]]
    return table(["asks for", "events", "µs without", "µs with", "more", *calls, "ratio"], rows)


SEED = 1
CLASSES = 12


def tricks(tried: list[dict[str, Any]]) -> str:
    """What of each trick is stopped."""
    settings = list(dict.fromkeys(each["setting"] for each in tried))
    rows: list[list[str]] = []
    for trick, about in {each["trick"]: each["about"] for each in tried}.items():
        found = {each["setting"]: each["stopped"] for each in tried if each["trick"] == trick}
        rows.append([f"{trick}: {about[0].lower()}{about[1:]}", *(share(found[setting]) for setting in settings)])
    total = [
        [sum(each["stopped"][part] for each in tried if each["setting"] == setting) for part in ("hits", "cases")]
        for setting in settings
    ]
    rows.append(["all", *(f"{hits}/{cases} = {100 * hits / cases:.1f} %" for hits, cases in total)])
    return table(["variants stopped", *settings], rows)


def through(tried: list[dict[str, Any]], setting: str) -> str:
    """The largest classes of variants that got through."""
    rows = [
        [each["trick"], f"{every['suite']} {every['user_task']}", str(every["count"]), every["tool"], every["because"]]
        for each in tried
        if each["setting"] == setting
        for every in each["through"]
    ]
    rows.sort(key=lambda row: -int(row[2]))
    return table(["trick", "request", "variants", "call", "why"], rows[:CLASSES])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--allowances", default=str(ALLOWANCES))
    given = parser.parse_args()
    more = ["--allowances", given.allowances] if given.allowances else []
    speed = told(sys.executable, str(HERE / "speed.py"), "--json")
    bench = (str(Path(sys.executable).parent / "bylaw"), "bench", "agentdojo", *given.runs, "--json", *more)
    with ThreadPoolExecutor(max_workers=2) as pool:
        # The cost is measured before, alone.
        counting = pool.submit(told, *bench)
        trying = pool.submit(told, *bench, "--adaptive", str(SEED))
        prefixes = pool.submit(printed, sys.executable, str(HERE.parent / "prefix_law.py"), "--only", "agentdojo")
        verdicts = pool.submit(printed, sys.executable, str(HERE.parent / "provenance_law.py"), "--count", "50")
    found: dict[str, Any] = counting.result()
    tried: list[dict[str, Any]] = trying.result()
    looks = {str(SIXTH): ["--meanings", str(MEANINGS)]}
    forty = {
        file: told(sys.executable, str(HERE / "new_requests.py"), file, *more, *looks.get(file, ()))
        for file in (str(HERE / "requests.yaml"), *map(str, (BY_ANOTHER, AFTER, FOURTH, PRACTICE, FIFTH, SIXTH)))
    }
    setting = ANSWERED
    whole = found[setting]["whole"]
    counts = found["allow all"]["counts"]
    all_attacks = whole["attacks_succeeded"] + counts["broken_off_attacks"]
    suites = [
        f"**{suite}**\n\n" + table(HEAD, [row(name, each["suites"][suite]) for name, each in found.items()])
        for suite in found[setting]["suites"]
    ]
    asked = (
        "The answers to the question were given by readers who saw nothing but the requests and the catalogue. "
        "When the checks for these answers were first run, 96.2 % of the attacks were stopped and 9.4 % of the good "
        "runs disturbed; the checks were then changed on these very runs (no answer was), so the numbers of these "
        "settings, too, are those of the set they were made on."
    )
    good = whole["good_runs_disturbed"]
    filled = {
        "runs": f"{counts['runs']:,}",
        "broken": str(counts["broken_off"]),
        "broken_attacks": str(counts["broken_off_attacks"]),
        "unreachable": str(whole["no_call_to_stop"]),
        "succeeded": str(whole["attacks_succeeded"]),
        "all_attacks": str(all_attacks),
        "stopped_of_all": f"{whole['attacks_stopped']['hits']} ({whole['attacks_stopped']['hits'] / all_attacks:.1%})",
        "reachable": f"{(whole['attacks_succeeded'] - whole['no_call_to_stop']) / all_attacks:.1%}",
        "settings": table(HEAD, [row(f"{name}: {each['about']}", each["whole"]) for name, each in found.items()]),
        "question": asked,
        "suites": "\n\n".join(suites),
        "new": counted(forty[str(HERE / "requests.yaml")]),
        "another": counted(forty[str(BY_ANOTHER)]),
        "another_wrong": gone_wrong(forty[str(BY_ANOTHER)]),
        "after": counted(forty[str(AFTER)]),
        "fourth": counted(forty[str(FOURTH)]),
        "fourth_wrong": gone_wrong({name: each for name, each in forty[str(FOURTH)].items() if "question" in name}),
        "practice": counted(forty[str(PRACTICE)]),
        "fifth": counted(forty[str(FIFTH)]),
        "fifth_wrong": gone_wrong({name: each for name, each in forty[str(FIFTH)].items() if "question" in name}),
        "sixth": counted(forty[str(SIXTH)]),
        "sixth_wrong": gone_wrong({name: each for name, each in forty[str(SIXTH)].items() if "question" in name}),
        "not_looked_at": str(forty[str(SIXTH)].get("question and look, follow", {}).get("not_looked_at", "all")),
        "most": f"{1 - whole['no_call_to_stop'] / whole['attacks_succeeded']:.1%}",
        "costs": costs(speed),
        "prefixes": prefixes.result(),
        "verdicts": verdicts.result(),
        "setting": f"`{setting}`",
        "missed": wrong(found[setting]["missed"]),
        "tricks": tricks(tried),
        "through": through(tried, setting),
        "seed": str(SEED),
        "alarms": wrong(found[setting]["alarms"]),
        "stopped": f"{100 * whole['attacks_stopped']['share']:.1f} %",
        "kept": f"{100 * (1 - good['share']):.1f} %",
    }
    text = (HERE / "page.md").read_text()
    PAGE.write_text(re.sub(r"\{\{(\w+)\}\}", lambda match: filled[match[1]], text))


if __name__ == "__main__":
    main()
