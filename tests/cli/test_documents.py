"""Documents that are too long are refused in one line, and a long one is read in good time."""

import time
from pathlib import Path

import pytest

from bylaw.policy.document import LONGEST, Document
from tests.audit.logs import Shop, record, user
from tests.docs.walkthrough import run

SENTENCE = "Only paid orders are shipped. "


@pytest.mark.parametrize("command", ["check pack", "check pack --document policy.md", "audit logs.jsonl --pack pack"])
def test_a_document_that_is_too_long_is_refused(command: str, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.logs(record(user("hello")))
    text = SENTENCE * (LONGEST // len(SENTENCE) + 1)
    (tmp_path / "pack" / "policy.md").write_text(text)
    (tmp_path / "policy.md").write_text(text)
    done = run(f"bylaw {command}", tmp_path)
    assert done.returncode == 2
    assert "longer than 2,000,000 characters" in done.stdout


def test_init_refuses_it_too(tmp_path: Path) -> None:
    Shop(tmp_path).logs(record(user("hello")))
    (tmp_path / "long.md").write_text(SENTENCE * (LONGEST // len(SENTENCE) + 1))
    done = run("bylaw init logs.jsonl --document long.md", tmp_path)
    assert done.returncode == 2
    assert "longer than 2,000,000 characters" in done.stdout


def test_the_sentences_of_a_long_document_are_found_in_linear_time() -> None:
    def taken(sentences: int) -> float:
        start = time.process_time()
        found = Document("Paid orders are sent.\n" * sentences).sentences
        assert found[-1].line == sentences
        return time.process_time() - start

    # Looking at all the rest for each sentence, a document ten times as long took seventy times as long.
    assert min(taken(40_000) for _ in range(3)) < 40 * max(taken(4_000), 0.02)


def test_check_fits_a_screen_and_counts_the_rest(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    policy = shop.pack / "policy.md"
    policy.write_text(policy.read_text() + "\n## More\n\n" + "".join(f"- Rule {n} holds.\n" for n in range(300)))
    shown = run("bylaw check pack", tmp_path).stdout
    assert len(shown.splitlines()) <= 24
    assert "301 sentences without a policy" in shown
    assert "--all shows everything" in shown
    assert "Rule 299 holds." not in shown
    assert "Rule 299 holds." in run("bylaw check pack --all", tmp_path).stdout
    assert "Rule 299 holds." in run("bylaw check pack --sentences", tmp_path).stdout
