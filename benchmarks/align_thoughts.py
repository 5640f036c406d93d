"""How often training thoughts state the policies that the knowledge test asks about, and in what form turns answer.

    python benchmarks/align_thoughts.py data/stage2.jsonl.gz > docs/results/align/thoughts.json

Reads every sixth conversation.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from bylaw.align.knowledge import questions
from bylaw.align.matcher import Matcher
from bylaw.align.output import read_output
from bylaw.align.prompt import pack_named
from bylaw.align.training.data import training_rows

EVERY = 6
ANSWER = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


def main(path: Path) -> None:
    matcher = Matcher(pack_named("clinic"))
    rows = training_rows(path, 2)[::EVERY]
    outputs = [
        read_output(message["content"]) for row in rows for message in row["messages"] if message["role"] == "assistant"
    ]
    stated: Counter[str] = Counter()
    for one in outputs:
        stated.update(matcher.mentions(one.thought or "").recalled)
    asked = Counter(question.policy for question in questions("clinic"))
    said = [one.text for one in outputs if one.text]
    found = {
        "conversations": len(rows),
        "thoughts": len(outputs),
        "thoughts_that_state_a_policy": sum(bool(matcher.mentions(one.thought or "").recalled) for one in outputs),
        "texts": len(said),
        "texts_that_begin_with_yes_or_no": sum(bool(ANSWER.match(text)) for text in said),
        "policies_asked": len(asked),
        "questions": sum(asked.values()),
        "policies": {policy: {"asked": count, "stated": stated[policy]} for policy, count in sorted(asked.items())},
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
