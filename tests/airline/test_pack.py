"""The airline's pack: its cases, and that it brings no text of the document."""

import pytest

from bylaw.pack import load_pack
from bylaw.review.case import CaseResult, run_cases, untested

VARIANTS = ("tau1", "tau2")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_case_comes_out_as_wanted(variant: str) -> None:
    pack = load_pack(f"tau-airline/{variant}")
    results = list(run_cases(pack, {}))
    outcomes = [result for result in results if isinstance(result, CaseResult)]
    assert len(outcomes) == len(results)
    assert [outcome for outcome in outcomes if not outcome.passed] == []
    assert untested(outcomes, pack) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_text_of_the_document_stays_outside(variant: str) -> None:
    pack = load_pack(f"tau-airline/{variant}")
    assert pack.document is None
    assert all(citation.text is None and citation.line for p in pack.policies.values() for citation in p.citations)
