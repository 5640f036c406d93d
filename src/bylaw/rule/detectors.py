"""Detectors of personal data in an act's text. They recognise formats, but cannot tell whom the data is about.

| name | finds |
|---|---|
| `email` | an address with a dot in its domain |
| `phone` | 8 to 15 digits written as a number with `+`, or in groups with spaces, dots, hyphens or brackets |
| `card` | 13 to 19 digits, in a row or in groups, that pass Luhn's check |
| `iban` | two letters, two check digits and 11 to 30 more characters that pass the check modulo 97 |
| `ssn` | `123-45-6789` with an area, group and serial number in use |
| `pii` | any of these |

Names, postal addresses, dates of birth and numbers written as words are not found.
"""

import re
from collections.abc import Callable, Iterator

from bylaw.rule.monitor import Act

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])")
_PHONE = re.compile(r"(?<![\w.+-])(?:\+\d{1,3}[ .-]?)?(?:\(\d{1,5}\)[ .-]?)?\d{2,5}(?:[ .-]?\d{2,5}){1,5}(?![\w-])")
_CARD = re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?!\w)")
_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_DATE = re.compile(r"\d{4}[ .-]\d{2}[ .-]\d{2}|\d{2}[ .-]\d{2}[ .-]\d{4}")


def emails(text: str) -> Iterator[str]:
    return (found.group() for found in _EMAIL.finditer(text))


def phones(text: str) -> Iterator[str]:
    """Yield telephone numbers. Skip digits without `+`, groups or brackets, because they are usually ids."""
    for found in _PHONE.finditer(text):
        number = found.group()
        digits = sum(c.isdigit() for c in number)
        if 8 <= digits <= 15 and digits < len(number) and not _DATE.fullmatch(number) and not _SSN.fullmatch(number):
            yield number


def cards(text: str) -> Iterator[str]:
    return (found.group() for found in _CARD.finditer(text) if passes_luhn(found.group()))


def ibans(text: str) -> Iterator[str]:
    for found in _IBAN.finditer(text):
        number = found.group().replace(" ", "")
        if int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97 == 1:
            yield found.group()


def social_security_numbers(text: str) -> Iterator[str]:
    return (found.group() for found in _SSN.finditer(text))


def passes_luhn(number: str) -> bool:
    """Whether the last digit is the correct check digit. False for one repeated digit."""
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) for d in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


PERSONAL: dict[str, Callable[[str], Iterator[str]]] = {
    "email": emails,
    "phone": phones,
    "card": cards,
    "iban": ibans,
    "ssn": social_security_numbers,
}


def personal(text: str) -> dict[str, list[str]]:
    found = {kind: list(find(text)) for kind, find in PERSONAL.items()}
    return {kind: each for kind, each in found.items() if each}


def _finds(find: Callable[[str], Iterator[str]]) -> Callable[[Act], bool]:
    return lambda act: next(find(act.text), None) is not None


DETECTORS: dict[str, Callable[[Act], bool]] = {
    **{kind: _finds(find) for kind, find in PERSONAL.items()},
    "pii": lambda act: bool(personal(act.text)),
}
