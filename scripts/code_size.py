"""Says how long the code is, area by area, and how much of it the other issues brought.

`python scripts/code_size.py` counts the lines of Python in src/bylaw without its packs, now and at the commit where the
house was measured first (6d98378, 26,588 lines). Two tables take away what came in for other reasons: files that
belong wholly to another piece of work, and commits made for one that also touched what was there. What is left is
held against the goal. A commit of another piece of work that is not listed counts as ours: the figure errs upwards.
"""

import subprocess
from collections import Counter
from pathlib import Path

START, START_LINES, GOAL = "6d98378", 26_588, 24_588
SOURCE = "src/bylaw"

OTHERS = {
    "logs, facts, consent and packs": """
        audit/coverage.py audit/unmapped.py cli/visible.py engine/consent/ facts/condition.py facts/evidence.py
        facts/mapped.py facts/passage.py facts/pending.py facts/phrases.py facts/sentence.py facts/stored.py
        facts/world_change.py facts/implied.py engine/case_subject.py policy/stated.py facts/assent.py
        facts/plain_yes.py
        guard/computed.py guard/helper.py policy/catalogue.py trace/python_text.py trace/readers/frameworks.py
        trace/readers/recorded.py trace/readers/transcripts.py trace/shape.py""",
    "shield": """
        shield/ record/ service/ integrations/ answering/ cli/answers.py cli/backtest.py cli/log.py cli/proxy.py
        cli/serve.py policy/posture.py
        trace/chat_record.py""",
    "compile": "compile/ llm/ cli/compile.py cli/review.py engine/review.py",
    "align": "align/ cli/align/",
}
"""Files and folders that came in whole for another piece of work."""

COMMITS = {
    "logs, facts, consent and packs": """
        c3286f1 2827043 1560736 e444644 1ae0f63 df49e78 e7c136c 968454e 6e8d242 2156d10 909162b 35670db b8a156f 992c49c
        2b9c613 ca640c1 2d54ecb a4cac9d e7c7f1e a6d1d2c 6782a37 3bcb251 df4e830 a842530 5512c3c 03d1548 3342629 a820bb8
        9ff1b88 6a095ae bf83639 5db563a 4bad24b e4b8917 6713b3d
        c6f31f4 aebafb7 5604200 7df5768 8026dc6 1204579 57d7990 b00cb5d 1d9ca3f 4f98578 579b4e8 0c5f7eb e88c794 5fd9e42
        aeaffad c8d89fc 8f67ad7 7904912 845a6aa 0d0a280 8d00ddd 0e1ce77 0e3d346 f7530c9 9dca4d6 9819824 c67a7fd 15991d9
        babbc28 09c4e7d 025a75c 81b7c11 138bbe6 f5fddf0 aa4f2fb 042310b 8957763 6bf7558 190ce2c 7afc680 2c7f82f
        f90bba4 de7e5de fee18df 06802d3 acc2dc3 a88d49c 5a42986 ee1f418 4c558c6 f57479c
        6fd740e 002cd0c 7715fb0 bdba9ac cb21e2c 04c1767 cd2d254 bf99e59
        48f3db8 26d5219 8dbfe87""",
    "shield": """
        f12afcd e15e7e5 a2b37f3 bdcb2db 50fecc3 28a218e 48273e0 a2f7bd2 e8bf727 04cfbe8 f77c0aa 3379ca4
        9d8f62e 60b4617 6ce5277 b3cf783 acc7f7d a2ac859 c65528c ad940a8 bf99947 a01bb49 2f536fb e85c2ea 8b4b926
        e7bb2a1 524e6ed bf933fd ad01e3c 081429e bf9032d e32793b ae5302e 22f7d5f dd2c338 7c17085""",
    "compile": """
        3cdc772 e6a8e86 c50eec7 fc7b6f3 cdef613 08d8b97 43a490c 4bee9dc f002abf 3168cc0 7b5458a 5cc9a6a 0673d78 a5080d2
        94b2728 18a9525 7e5105c 1eebdab c91ff3a eb3d0f2 db32a38 45b7067 9e410d8""",
    "align": "f00119c 4493e15 aa6bab2 9fa37aa 117a22a ad239db 183515f accbf02 d813378",
}
"""Commits made for another piece of work: what they added to files that are not listed above is theirs."""

MOVES = "763a1db ffe3bbd 7595c93"
"""Commits that moved code of ours into files that are listed above: it stays ours."""


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def counted(path: str) -> bool:
    """Whether a file of the tree is code of Bylaw itself."""
    return path.startswith(f"{SOURCE}/") and path.endswith(".py") and not path.startswith(f"{SOURCE}/packs/")


def area(path: str) -> str:
    return path.removeprefix(f"{SOURCE}/").split("/")[0].removesuffix(".py")


def owner(path: str) -> str | None:
    """The other piece of work that a file belongs to."""
    inner = path.removeprefix(f"{SOURCE}/")
    owners = (name for name, paths in OTHERS.items() if any(inner.startswith(part) for part in paths.split()))
    return next(owners, None)


def lines_then() -> Counter[str]:
    """Lines of each area at the start."""
    sizes = Counter[str]()
    for path in git("ls-tree", "-r", "--name-only", START, SOURCE).splitlines():
        if counted(path):
            sizes[area(path)] += git("show", f"{START}:{path}").count("\n")
    return sizes


def added_by(commit: str, *, to_others: bool = False) -> Counter[str]:
    """What a commit added, less what it took away, in the files that belong to nobody else, or to others."""
    added = Counter[str]()
    for line in git("show", "--numstat", "--no-renames", "--format=", commit).splitlines():
        plus, minus, path = line.split("\t")
        if counted(path) and (owner(path) is not None) == to_others:
            added[area(path)] += int(plus) - int(minus)
    return added


def main() -> None:
    then, now, theirs = lines_then(), Counter[str](), Counter[str]()
    by_work = Counter[str]()
    for path in map(str, sorted(Path(SOURCE).rglob("*.py"))):
        if not counted(path):
            continue
        length = Path(path).read_text(encoding="utf-8").count("\n")
        now[area(path)] += length
        if name := owner(path):
            theirs[area(path)] += length
            by_work[name] += length
    for name, commits in COMMITS.items():
        for commit in commits.split():
            for where, lines in added_by(commit).items():
                theirs[where] += lines
                by_work[name] += lines
    for commit in MOVES.split():
        theirs.subtract(added_by(commit, to_others=True))
    print(f"{'area':<14}{'then':>8}{'now':>8}{'others':>8}{'ours':>8}{'change':>8}")
    for where in sorted(now | then):
        ours = now[where] - theirs[where]
        print(f"{where:<14}{then[where]:>8}{now[where]:>8}{theirs[where]:>8}{ours:>8}{ours - then[where]:>+8}")
    ours = now.total() - theirs.total()
    print(f"{'all':<14}{then.total():>8}{now.total():>8}{theirs.total():>8}{ours:>8}{ours - then.total():>+8}")
    print("\n".join(f"{name}: {lines}" for name, lines in by_work.items()))
    assert then.total() == START_LINES, then.total()
    print(f"goal {GOAL}: {'reached' if ours <= GOAL else f'{ours - GOAL} lines too many'}")


if __name__ == "__main__":
    main()
