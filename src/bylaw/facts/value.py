"""Converts raw values from tools and databases to the types of fields.

Amounts of money can be written in any usual form: `£96.00`, `96,00 €`, `USD 1,234.56`, `kr 40`. An amount keeps its
currency. An amount without a currency matches amounts in any currency.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, cast

from bylaw.facts.entity import UNSEEN, Field, FieldType, Key, OneOf
from bylaw.trace.recorded_value import Contradicted, holds_contradiction

_ISO = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY
COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR
IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR
MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD
SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF
XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_ISO.split())
_SYMBOLS = """
£=GBP €=EUR ₹=INR ₩=KRW ₽=RUB ₺=TRY ₴=UAH ₦=NGN ₫=VND ₱=PHP ₪=ILS ฿=THB ₸=KZT ₾=GEL ₼=AZN ₲=PYG ₵=GHS ₡=CRC US$=USD
A$=AUD C$=CAD CA$=CAD NZ$=NZD HK$=HKD S$=SGD R$=BRL MX$=MXN NT$=TWD R=ZAR SFr=CHF SFr.=CHF zł=PLN Kč=CZK Ft=HUF
"""
_SIGNS = {
    **{sign: code for sign, _, code in (pair.partition("=") for pair in _SYMBOLS.split())},
    # Signs that several currencies share. Each sign counts as a currency of its own that matches no currency code.
    **{sign: sign.rstrip(".") for sign in ("$", "¥", "kr", "kr.", "Rs", "Rs.", "Fr", "Fr.")},
}
_WRITTEN = CURRENCIES | {sign for sign in _SIGNS if len(sign) > 1}
"""Currencies as written in text. Single characters are not included."""
_THOUSANDTHS = frozenset(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"))
"""Currencies with three decimal places, so that `1,234` is ambiguous: it may be over a thousand or just over one."""
_BLANK = " \u00a0\u202f"
_INNER = rf"\d.,'\u2019{_BLANK}"
_SIGN = "|".join(map(re.escape, sorted({*_SIGNS, *CURRENCIES}, key=len, reverse=True)))
_FRONT = re.compile(rf"([+-]?)({_SIGN})[{_BLANK}]?([+-]?)([\d.][{_INNER}]*)", re.ASCII)
_BACK = re.compile(rf"([+-]?)([\d.][{_INNER}]*?)[{_BLANK}]?({_SIGN})", re.ASCII)
_GROUPS = rf"\d{{1,3}}(?:[{_BLANK}'\u2019]\d{{3}})+"
_WITH_POINT = re.compile(
    rf"(?:\d+|\d{{1,3}}(?:,\d{{3}})+|\d{{1,2}}(?:,\d\d)+,\d{{3}}|{_GROUPS})(?:\.\d*)?|\.\d+", re.ASCII
)
_WITH_COMMA = re.compile(rf"(?:\d+|\d{{1,3}}(?:\.\d{{3}})+|{_GROUPS}),\d\d|\d{{1,3}}(?:\.\d{{3}}){{2,}}", re.ASCII)
_UNCLEAR = re.compile(r"[1-9]\d{0,2}([.,])\d{3}", re.ASCII)
_CENTS = re.compile(r"\d[.,]\d\d(?!\d)", re.ASCII)
_LONGEST = 40
_GAPS = dict.fromkeys(map(ord, f"'\u2019{_BLANK}"))
_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_GROUPED_SUM = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", re.ASCII)


class Amount(Decimal):
    __slots__ = ("currency",)
    currency: str

    def __eq__(self, other: object) -> bool:
        apart = other.__class__ is Amount and currency_of(other) != self.currency
        return not apart and Decimal.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = Decimal.__hash__

    def __repr__(self) -> str:
        return f"Amount('{self}', '{self.currency}')"

    def __reduce__(self) -> tuple[Any, ...]:
        return amount_in, (Decimal(self), self.currency)


def amount_in(figures: Decimal, currency: str | None) -> Decimal:
    if currency is None:
        return figures
    amount = Amount(figures)
    amount.currency = currency
    return amount


def currency_of(value: Any) -> str | None:
    return value.currency if value.__class__ is Amount else None


def shared_currency(one: Any, other: Any) -> str | None:
    """Return the currency of two amounts. Raises ValueError if they have different currencies."""
    mine, theirs = currency_of(one), currency_of(other)
    if mine is not None and theirs is not None and mine != theirs:
        raise ValueError(f"cannot combine amounts in {mine} and {theirs}; convert one of them first")
    return mine if theirs is None else theirs


@lru_cache(maxsize=4096)
def read_amount(text: str) -> Decimal:
    """Read an amount of money. Raises ValueError if the text is ambiguous or anything else."""
    text = text.strip()
    if front := _FRONT.fullmatch(text):
        minus, sign, inner, figures = front.groups()
    elif back := _BACK.fullmatch(text):
        minus, figures, sign = back.groups()
        inner = ""
    else:
        return Decimal(written_number(text, "an amount"))
    currency = _SIGNS.get(sign, sign)
    plain = _plain(figures, currency)
    if plain is None or (minus and inner):
        raise ValueError(f"`{text[:40]}` is not an amount, or is ambiguous")
    return amount_in(Decimal(minus + inner + plain), currency)


@lru_cache(maxsize=4096)
def amount_of(text: str) -> Amount | None:
    """Return the amount if the text is certainly one. Letters before digits may also form an id (`R2`, `TOP 5`)."""
    if len(text) > _LONGEST or text[:1].isdigit() == text[-1:].isdigit():
        return None
    try:
        amount = read_amount(text)
    except (ValueError, ArithmeticError):
        return None
    is_sure = _CENTS.search(text) is not None or any(unicodedata.category(each) == "Sc" for each in text)
    return amount if is_sure and isinstance(amount, Amount) else None


def _plain(figures: str, currency: str) -> str | None:
    unclear = _UNCLEAR.fullmatch(figures)
    if unclear and (unclear[1] == "." or currency in _THOUSANDTHS):
        return None
    if _WITH_COMMA.fullmatch(figures):
        return figures.translate({**_GAPS, ord("."): None, ord(","): "."})
    return figures.translate({**_GAPS, ord(","): None}) if _WITH_POINT.fullmatch(figures) else None


def written_number(text: str, what: str = "a number") -> str:
    """Return a number without thousands separators. Raises ValueError if the number is ambiguous, such as `20,00`."""
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return text
    if _GROUPED_SUM.fullmatch(text):
        return text.replace(",", "")
    raise ValueError(f"`{text[:40]}` is not {what}, or is ambiguous")


_TRUE = frozenset({"true", "yes", "y", "1"})
_FALSE = frozenset({"false", "no", "n", "0"})
_DIGITS = 100
"""The maximum number of digits before and after the decimal point. Without it, exact arithmetic on `1e-999999999` would
never finish.
"""
_NO_AMOUNT = Decimal("NaN")
_WHOLE = 10**_DIGITS
_SHORT = 64
"""The maximum length of strings that are cached and that `alike` reads as numbers."""
_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.(\d*))?")
INVISIBLE = dict.fromkeys(map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"))
INVISIBLE.update(dict.fromkeys([*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
"""Characters that are invisible, although Unicode classifies them as letters or marks."""


def coerce(field: Field, raw: Any) -> Any:
    """Convert `raw` to the type of the field, or raise ValueError. `null` becomes None if the field is nullable, else
    UNSEEN.
    """
    if raw is None:
        return None if field.nullable else UNSEEN
    if raw.__class__ is Contradicted:
        return one_of(field, raw.values)
    if field.type == "enum":
        word = _text(raw)
        if word in field.values or not field.values:
            return word
        raise ValueError(f"`{word}` is not one of {', '.join(field.values)}")
    read, fault = _READ[field.type]
    value = read(raw)
    if value is None:
        raise ValueError(f"`{_text(raw)[:40]}` {fault}")
    return amount_in(value, field.currency) if field.currency and value.__class__ is Decimal else value


def one_of(field: Field, raw: Iterable[Any]) -> Any:
    """Return the value if all are equal, otherwise a `OneOf`. UNSEEN if one of them is unknown."""
    values: list[Any] = []
    for each in raw:
        value = coerce(field, each)
        if value is UNSEEN:
            return UNSEEN
        values += [told for told in (value.values if isinstance(value, OneOf) else (value,)) if told not in values]
    return values[0] if len(values) == 1 else OneOf(tuple(values))


def key_of(parts: Sequence[Any]) -> Key:
    """Return a key as strings, so that it does not matter which types a guard or log uses."""
    for part in parts:
        if type(part) is not str:
            return tuple(part if type(part) is str else _text(part) for part in parts)
    return tuple(parts)


@lru_cache(maxsize=65_536)
def loose_key(key: Key) -> Key:
    """Return a key without unimportant differences. If the results for two keys differ, they certainly name different
    entities.
    """
    return tuple(map(loose, key))


@lru_cache(maxsize=65_536)
def alike_key(key: Key) -> Key:
    """Return a key normalised with `alike`. A change to `AC-22` or `1e1` may then be a change to `AC22` or `10`."""
    return tuple(map(alike, key))


def is_same(one: Any, other: Any) -> bool | None:
    """Whether two arguments are the same in the way in which keys are compared. None if this depends on the tool."""
    ours, theirs = key_of((one,)), key_of((other,))
    if ours == theirs or (_is_number(one) and _is_number(other) and one == other):
        return True
    if names_several(one) or names_several(other) or alike_key(ours) == alike_key(theirs):
        return None
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def names_several(part: Any) -> bool:
    """Whether a value may name several entities, because it is a list or an object, or text that contains one."""
    return isinstance(part, (list, dict)) or (type(part) is str and part.lstrip()[:1] in ("[", "{"))


def loose(text: str) -> str:
    """Return a string without differences that tools usually ignore and people do not notice.

    These are differences in case, Unicode forms, spaces, invisible characters and surrounding quotes. `7.0` and `7`
    become equal.
    """
    return _loose(text) if len(text) <= _SHORT else _loose.__wrapped__(text)


@lru_cache(maxsize=65_536)
def _loose(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(INVISIBLE)
    text = "".join(text.split())
    if not text.isprintable():
        text = "".join(filter(str.isprintable, text))
    text = text.strip("\"'`#").casefold()
    if text[-1:].isdigit() and len(text) <= _DIGITS and (number := _NUMBER.fullmatch(text)):
        sign, whole, part = number.groups()
        fraction = (part or "").rstrip("0")
        text = ("-" if sign == "-" else "") + whole + (f".{fraction}" if fraction else "")
    return text


_MARKS = " $\u20ac\u00a3\u00a5\u20b9.,;:!?'\"+"
_MIDNIGHT = re.compile(r"(?<=\d)[t ]00:00(?::00(?:\.0+)?)?(?:z|[+-]00:?00)?$")


def alike(value: Any) -> Any:
    """Return a form that is equal for all values that a tool may treat as the same.

    It ignores case, spaces, punctuation, currency signs and missing values. Numbers are compared by value, even if they
    are strings with thousands separators. More values are equal here than for keys: `1e2` is 100, for example. Use this
    only to refuse a call, and never to allow one.
    """
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return sorted([str(name), alike(part)] for name, part in fields.items() if part is not None)
    if isinstance(value, list | tuple):
        return [alike(part) for part in cast("Sequence[Any]", value)]
    text = str(value)
    return _alike(text) if len(text) <= _SHORT else _alike.__wrapped__(text)


_GROUPED = re.compile(r"([+-]?\d{1,3}(?:([.,'])\d{3})(?:\2\d{3})*)(?:[.,](\d{1,2}))?")
_COMMA = re.compile(r"([+-]?\d+),(\d{1,2})")
_PARTS = str.maketrans("", "", ".,'")
_CURRENCY = "|".join(map(re.escape, sorted(map(str.casefold, _WRITTEN), key=len, reverse=True)))
_IN_CURRENCY = re.compile(rf"(?:{_CURRENCY})(?=[\d.])|(?<=[\d.])(?:{_CURRENCY})")
"""Matches a number with a currency before or after it."""


@lru_cache(maxsize=16_384)
def _alike(written: str) -> str:
    """Normalise one string for `alike`. Cached, because a conversation has few different values."""
    text = _MIDNIGHT.sub("", loose(written).replace("\u2212", "-").strip(_MARKS))
    if len(text) > _SHORT or not any(map(str.isdigit, text)):
        return "".join(filter(str.isalnum, text)) or text
    plain_text = "".join(filter(str.isalnum, text)) or text
    amount = _IN_CURRENCY.sub("", text, count=1)
    for figures in (text, amount, _figures(amount), plain_text):
        try:
            number = Decimal(figures)
            return str(number.normalize()) if number else "0"
        except ArithmeticError:
            continue
    return plain_text


def _figures(text: str) -> str:
    """Return the digits of a number with any kind of separator as a plain number. Return any other text unchanged."""
    if (comma := _COMMA.fullmatch(text)) is not None:
        return f"{comma[1]}.{comma[2]}"
    if (grouped := _GROUPED.fullmatch(text)) is not None and (grouped[2] != "." or grouped[3] or text.count(".") > 1):
        return f"{grouped[1].translate(_PARTS)}.{grouped[3] or 0}"
    return text


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from leaves(part)
    else:
        yield value


def plain(value: Any) -> Any:
    """Convert a value to types that JSON and YAML can represent."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _integer(raw: Any) -> int | None:
    if isinstance(raw, str):
        return int(written_number(raw))
    if isinstance(raw, float | Decimal) and (not math.isfinite(raw) or abs(raw) >= _WHOLE or raw != int(raw)):
        return None
    return int(raw) if isinstance(raw, int | float | Decimal) and not isinstance(raw, bool) else None


def _number(raw: Any) -> int | float | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str | Decimal):
        return None
    number = raw if isinstance(raw, int | float) else float(written_number(raw) if isinstance(raw, str) else raw)
    return number if isinstance(number, int) or math.isfinite(number) else None


def _money(raw: Any) -> Decimal | None:
    if isinstance(raw, bool):
        return None
    if isinstance(raw, Decimal):
        amount = raw
    else:
        text = str(raw).strip()
        try:
            amount = read_amount(text) if len(text) <= _DIGITS else _NO_AMOUNT
        except InvalidOperation:
            return None
    return amount if amount.is_finite() and abs(amount.adjusted()) <= _DIGITS else None


def _boolean(raw: Any) -> bool | None:
    if isinstance(raw, int):
        return bool(raw) if raw in (0, 1) else None
    word = raw.strip().lower() if isinstance(raw, str) else ""
    return True if word in _TRUE else False if word in _FALSE else None


def _date(raw: Any) -> date | None:
    if isinstance(raw, datetime):
        return raw.date()
    if isinstance(raw, str):
        return date.fromisoformat(raw) if len(raw) == 10 else datetime.fromisoformat(raw).date()
    return raw if isinstance(raw, date) else None


def _datetime(raw: Any) -> datetime | None:
    if isinstance(raw, str):
        return datetime.fromisoformat(raw)
    if isinstance(raw, date) and not isinstance(raw, datetime):
        return datetime(raw.year, raw.month, raw.day)
    return raw if isinstance(raw, datetime) else None


def _list(raw: Any) -> Any:
    return _without_contradiction(raw) if isinstance(raw, (list, tuple)) else None


def _object(raw: Any) -> Any:
    return _without_contradiction(raw) if isinstance(raw, (dict, list, Mapping)) else None


def _without_contradiction(raw: Any) -> Any:
    return UNSEEN if holds_contradiction(raw) else raw


_READ: dict[FieldType, tuple[Callable[[Any], Any], str]] = {
    "string": (_text, ""),
    "integer": (_integer, "is not a whole number"),
    "number": (_number, "is not a number"),
    "money": (_money, "is not an amount"),
    "boolean": (_boolean, "is neither true nor false"),
    "date": (_date, "is not a date"),
    "datetime": (_datetime, "is not a time"),
    "list": (_list, "is not a list"),
    "object": (_object, "is not an object"),
}
"""For each type: a function that returns None for a value of another type, and the error message for such a value."""
