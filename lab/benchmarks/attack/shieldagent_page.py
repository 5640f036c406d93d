"""Writes lab/results/pages/poisoned-agents.md from what `bylaw-lab bench shieldagent` counts.

python lab/benchmarks/attack/shieldagent_page.py
"""

import re
import sys
from pathlib import Path
from typing import Any

from page import share, table, told

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "lab" / "results" / "pages" / "poisoned-agents.md"
SOURCES = ("memory", "environment")
SHOWN = "weighed"


def overall(found: list[dict[str, Any]]) -> str:
    """Every guardrail under either source, and over all."""
    rows: list[list[str]] = []
    for each in found:
        for name in (*SOURCES, "all"):
            cell = each["cells"][name]
            time = "" if cell["milliseconds"] is None else f"{cell['milliseconds']:.0f}"
            rows.append(
                [
                    each["guardrail"],
                    name,
                    *(share(cell[part]) for part in ("accuracy", "false_positives", "recall")),
                    f"{100 * cell['rules']:.1f} %",
                    f"{cell['queries']:.1f}",
                    time,
                ]
            )
    head = ["", "poisoned", "accuracy", "false positives", "unsafe flagged", "rules recalled", "queries", "ms"]
    return table(head, rows)


def by_category(found: list[dict[str, Any]]) -> str:
    """Accuracy by category of risk."""
    categories = [name.partition(" ")[2] for name in found[0]["cells"] if name.startswith("memory ")]
    rows = [
        [
            each["guardrail"],
            source,
            *(f"{100 * each['cells'][f'{source} {category}']['accuracy']['share']:.1f}" for category in categories),
        ]
        for each in found
        for source in SOURCES
    ]
    return table(["accuracy in %", "poisoned", *categories], rows)


def taught(parts: dict[str, Any]) -> str:
    """What the same pack makes of the parts that it was made with."""
    rows = [
        [part, name, *(share(cell[each]) for each in ("accuracy", "false_positives", "recall"))]
        for part, cells in parts.items()
        for name, cell in cells.items()
    ]
    return table(["part", "", "accuracy", "false positives", "unsafe flagged"], rows)


def classes(those: list[dict[str, Any]]) -> str:
    """Classes that were got wrong, each with one of them."""
    rows = [
        [each["about"], each["category"], f"{each['wrong']} of {each['cases']}", each["one"], each["why"]]
        for each in those
    ]
    return table(["class", "category", "trajectories", "one of them", "why"], rows) if rows else "None."


def main() -> None:
    command = [str(Path(sys.executable).parent / "bylaw"), "bench", "shieldagent", "--json"]
    found: dict[str, Any] = told(*command)
    guardrails: dict[str, dict[str, Any]] = {each["guardrail"]: each for each in found["guardrails"]}
    curve = [
        [f"{point['eps']:.2f}", *(f"{100 * point[name]:.1f}" for name in ("accuracy", "false_positives", "recall"))]
        for point in found["curve"]
    ]
    bins = [
        [f"{each['low']:.1f}-{each['high']:.1f}", str(each["cases"]), f"{each['told']:.3f}", f"{each['safe']:.3f}"]
        for each in found["calibration"]["bins"]
    ]
    whole = guardrails[SHOWN]["cells"]["all"]
    filled = {
        "test": f"{found['test']:,}",
        "trained_on": f"{found['trained_on']:,}",
        "overall": overall(found["guardrails"]),
        "categories": by_category(found["guardrails"]),
        "taught": taught(found["taught"]),
        "eps": f"{found['eps']:.2f}",
        "light": ", ".join(f"`{name}`" for name in found["light_rules"]) or "nothing",
        "curve": table(["eps", "accuracy", "false positives", "unsafe flagged"], curve),
        "bins": table(["told", "trajectories", "mean of what was told", "share that is safe"], bins),
        "brier": f"{found['calibration']['brier']:.3f}",
        "error": f"{found['calibration']['error']:.3f}",
        "missed": classes(guardrails[SHOWN]["missed"]),
        "alarms": classes(guardrails[SHOWN]["alarms"]),
        "alarms_held": classes(guardrails["held"]["alarms"][:5]),
        "accuracy": f"{100 * whole['accuracy']['share']:.1f}",
        "false": f"{100 * whole['false_positives']['share']:.1f}",
        "rules": f"{100 * whole['rules']:.1f}",
        "ms": f"{whole['milliseconds']:.0f}",
    }
    text = (HERE / "shieldagent_page.md").read_text()
    PAGE.write_text(re.sub(r"\{\{(\w+)\}\}", lambda match: filled[match[1]], text))


if __name__ == "__main__":
    main()
