"""Amounts of money and quantities, written the way people write them: `$1,234.50`, `1.234,50 €`, `2.5 GB`."""

from decimal import Decimal

_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "INR": "₹", "$": "$", "¥": "¥"}
_WHOLE = frozenset(("CLP", "ISK", "JPY", "KRW", "VND"))
"""Currencies without minor units."""


def figures(number: Decimal, decimal: str = ".", *, places: int = 0, grouped: bool = True) -> str:
    """Format an exact number with at least `places` decimal places; `decimal` is the decimal mark."""
    whole, _, part = format(abs(number), "f").partition(".")
    part = part.rstrip("0").ljust(places, "0")
    if grouped:
        whole = f"{int(whole):,}".replace(",", "." if decimal == "," else ",")
    return f"{'-' if number < 0 else ''}{whole}{decimal if part else ''}{part}"


def amount_spellings(number: Decimal, currency: str, decimal: str = ".") -> list[str]:
    """The unambiguous spellings of an amount of money, the most common first."""
    sign, minus, size = _SIGNS.get(currency, ""), "-" if number < 0 else "", abs(number)
    places = 0 if currency in _WHOLE else 2
    written = [figures(size, decimal, places=least, grouped=is_grouped)
               for least in (places, 0) for is_grouped in (True, False)]  # fmt: skip
    found: list[str] = []
    for each in dict.fromkeys(written):
        before, after = f"{minus}{sign}{each}", f"{minus}{each} {sign}"
        signed = (before, after, f"{minus}{each}{sign}") if decimal == "." else (after, before, f"{minus}{each}{sign}")
        coded = (f"{minus}{each} {currency}", f"{minus}{currency} {each}")
        found += [*signed, *coded] if sign else coded
    return list(dict.fromkeys(found))


def quantity_spellings(number: Decimal, unit: str, decimal: str = ".") -> list[str]:
    """The unambiguous spellings of a number with its unit, the most common first."""
    written = [figures(number, decimal), figures(number, decimal, grouped=False)]
    return list(dict.fromkeys(f"{each} {unit}" for each in written))
