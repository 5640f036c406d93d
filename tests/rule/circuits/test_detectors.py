"""Detectors find what their page says."""

import pytest

from bylaw.rule.detectors import personal


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("write to jo.doe+x@mail.example.org now", ["email"]),
        ("call +49 30 1234567 or", ["phone"]),
        ("call (030) 123-4567", ["phone"]),
        ("card 4111 1111 1111 1111", ["card"]),
        ("card 4111111111111112", []),
        ("iban DE89 3704 0044 0532 0130 00", ["iban"]),
        ("iban DE89 3704 0044 0532 0130 05", []),
        ("ssn 123-45-6789", ["ssn"]),
        ("no ssn, but digits in groups: 000-45-6789", ["phone"]),
        ("on 2024-05-15 at 15:00", []),
        ("reservation 4WQ150 for 12345678", []),
        ("costs 1,200.50 dollars", []),
    ],
)
def test_detectors_find_what_their_page_says(text, kinds):
    assert list(personal(text)) == kinds
