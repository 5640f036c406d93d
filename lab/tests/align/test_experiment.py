"""The published page on alignment agrees with the stored logs of the runs."""

import align_page


def test_the_page_says_what_the_logs_say() -> None:
    assert align_page.PAGE.read_text(encoding="utf-8") == align_page.page()
