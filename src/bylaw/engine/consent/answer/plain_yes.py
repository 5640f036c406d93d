"""Is a yes only a yes? What stands beside it may turn it: "yes, half of it", "yes, just kidding".

A list of all that turns a yes would never be whole. So it is the other way about: a yes is plain where every word and
number beside it is a courtesy, a word that says nothing of its own, or was told. Any other word leaves it open.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from bylaw.engine.consent.answer.stance import stance_of
from bylaw.facts.condition import without_courtesy
from bylaw.facts.phrases import Phrases
from bylaw.facts.sentence import sentences

_TOKEN = re.compile(r"[^\W_]+(?:['._:/#-]+[^\W_]+)*")
_JOINTS = "'._:/#-"
_PIECES = re.compile(r"[-._:/#]+")
_COMMA = re.compile(r",(?<=\d,)(?=\d{3})")
"""Within a sum."""
_NOT_DIGIT = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_HARMLESS = frozenset(
    """
    yes yess yesss yeah yep yup yea ya y oui si sí ja da ok okay sure alright right correct exactly absolutely
    definitely certainly
    affirmative agreed agree agreeable approve approved approval confirm confirmed confirming confirms confirmation
    confirmez understood accept accepted acceptable consent permission authorize authorise indeed
    go going ahead goes proceed proceeding process processing processed continue continuing carry move moving forward
    complete completed completing finish finalize finalise finalized finalizing submit execute do doing done does did
    make making made so it its it's this that that's those these them they they're there there's all both each every
    everything anything something else thing things one ones two three same whole way
    please pls plz plse k kk yh yah im thats
    kindly thanks thank thankful thx you you're you've you'd you'll your u very much many lot really truly
    appreciate appreciated grateful glad happy fine good great perfect perfectly excellent wonderful awesome cool nice
    lovely super fantastic amazing brilliant ideal best better helpful help helps helping helped hi hello hey oh ah
    well then now today's just also too and or for of the a an to in on at by with from as into under through
    about towards per via via i i'd i'm i'll i've me my mine myself we we'd we'll we're we've us our is am are be being
    been will would can could may shall should have has had having get gets getting got want wanted wants need needs
    needed like liked love wish ready let let's know see seems seem look looks looking sound sounds sounding work works
    working suits fits clear accurate what how
    immediately away quickly quick fast asap soon sooner straight hurry directly
    use using used apply applied charge charging charged pay paying payment book booking cancel canceling cancelling
    cancellation update updating change changes changing add adding issue issuing issued refund send sending sent
    take taking switch switching
    including include includes included outlined listed described summarized summarised mentioned stated specified
    detailed provided proposed suggested discussed shown reviewed checked breakdown summary details detail information
    info regarding based due original exact full total amount
    sir madam ma'am dear team friend man buddy mate
    sí confirmo confirmado adelante correcto perfecto proceda hágalo acuerdo bestätige bestätigt passt machen mach sie
    das stimmt allez-y allez va-y confirme confirmé procedi proceda pode pronto certamente esatto confermo
    merci s'il vous te plaît plait svp parfait bien sûr d'accord bitte danke gerne gern genau richtig einverstanden
    natürlich klar gracias por favor claro vale bueno grazie per favore certo bene va obrigado obrigada sim
    ces ce cette les des tous toutes aussi un une mon ma mes trois deux annulez procédez
    understand aware hear larger smaller largest smallest cheapest remaining remainder rest anyway still back even
    secure securing
    decided said deal course thx ta cheers
    c'est bon entendu volontiers gut ordnung prima está
    since because only file form profile balance card current new next part keep find
    out time name ending spot voucher happen least any enough order
    """.split()  # noqa: SIM905
)
_CHANGES = frozenset("but instead though rather actually just make other except".split())  # noqa: SIM905
"""Ask for something else than was told."""
_TURNS = _CHANGES - {"just", "make"} | frozenset(
    """
    although however unless except excluding minus save if once when whenever while after before until till unless
    not never cannot nor neither hardly later tomorrow tonight someday sometime eventually yesterday
    monday tuesday wednesday thursday friday saturday sunday
    half partly some most almost nearly different another
    was were idea joke joking kidding pretend simulate think thinking maybe perhaps
    declined refused rejected bad wrong
    """.split()  # noqa: SIM905
)
"""Turn a yes even where the agent used them too."""
_PLAIN = _HARMLESS - _TURNS
_ALONE = frozenset(
    "kidding joking joke later tomorrow tonight only not never half except but maybe perhaps".split()  # noqa: SIM905
)
_MILD = frozenset("but not though however was were other some most rather while cannot without".split())  # noqa: SIM905
"""In a longer sentence beside a plain yes, they speak of something else: "I'm upset, but I thank you". """
_FEW = 4
"""Words of a piece of a sentence that stands alone after a yes and belongs to it: "Yes. Tomorrow morning." """
_SHORT = 6
_BIDS = re.compile(r"\b(?:yes+|yeah|please|can|could|would|will)\b")
"""In a question they ask for the thing to be done; "Proceed?" only echoes."""
_NO_AT_END = re.compile(r"\bno\W*$")
_BESIDE = Phrases(
    ("for later", r"\b(?:keep|save)\b[^,;]*\bfor later\b"),
    ("reason", r"\breason(?:\W+is)?\W+other\b"),
    ("keep |leave ", r"(?:\bbut )?\b(?:keep|leave) #?[a-z]{1,6}-?\d[\w-]*(?: alone| as (?:it )?is)?"),
    ("otherwise|why not", r"^otherwise\b|^\W*why not\b"),
    ("no obj|no prob|no iss|no worr", r"^\W*no (?:objections?|problems?|issues?|worries)\b"),
    ("since|because", r"\b(?:since|because)\b[^,;-]*"),
    ("thank& for", r"\bthank(?:s| you)(?: so| very)?(?: much)? for\b[^,;-]*"),
)
"""Say what is kept, why, or what the thanks are for, and turn nothing."""
_ACKNOWLEDGES = Phrases(
    (
        "understand|see|know|get it|got it|hear you",
        r"\b(?:i|we) (?:(?:do|fully|completely|totally|already|can) )?"
        r"(?:understand|see|know|get it|got it|hear you)\b(?! (?:no|why you need)\b)",
    ),
    ("aware", r"\b(?:i'm|i am|we're|we are) (?:fully |well )?aware\b"),
    (
        "understood|got it|noted|i see",
        r"^\W*(?:(?:yes|yeah|yep|ok|okay|sure|right)\W+)?(?:understood|got it|noted|i see)\W*$",
    ),
)
_BIDDING = re.compile(
    r"\b(?:go|going|proceed\w*|confirm\w*|agree\w*|accept\w*|approv\w*|authori\w*|consent\w*|please|continu\w*|"
    r"do (?:it|that|this|so|both)|finali\w*|want|like|love|fine|works?|correct|right|good|happy|move|let's|need|make|"
    r"thanks?|cancel|book|change|update|process|use)\b"
)
_PARTY = re.compile(
    r"(?<!due )(?<!thanks )\b(?:to|into|from) ((?:my|his|her|our|their) (?:\w+ )?[\w'-]+|him|her|them)\b"
)
"""Whom or what something goes to or comes from, by a word of the user's own."""
_DASH = re.compile(r"(?<=\w)\s?-\s?(?!(?:but|though|not|don't) )(?=[a-z']+\s)")
_SUBJECT = re.compile(
    r"(?<=[\w!,-])[\s,-]+(?=(?:i've|i'm|i (?:was|had|have|already|hope|\w+ed)|we've|we (?:were|had|\w+ed)|your|you're|"
    r"you've|my|it's been|it was|there's|hope|hoping|sorry|had)\s)"
)
"""Where a remark with a subject of its own goes on after a yes, without a stop: "go ahead I've been here for years"."""
_WILLING = re.compile(
    r"\b(?:must|should|shall|would|will|can|could|may|might|needs?|wants?|wish|prefer|like|have to|has to|let|ask|"
    r"check|send|use|put|make|take|only|first|until|card|account|address)\b|'(?:ll|d)\b|\d"
)
"""In a remark: it may say how the thing is to be done."""
_REMARK = 3
"""Words of a remark, at least."""
_FEWEST, _AMONG = 3, 2
"""So many words that were told must stand in a sentence, and so many beside each that was not."""
_BEGIN = 5
"""Letters by which a word is known in its other forms."""


@lru_cache(maxsize=2048)
def is_bare_yes(text: str) -> bool:
    """Whether a message says so little beside its yes that nothing there can turn it, whatever was told."""
    for sentence in sentences(text):
        words = _words(sentence)
        if stance_of(sentence) in ("yes", "weak"):
            if not _PLAIN.issuperset(words) or sentence.endswith("?") or _only_acknowledges(sentence):
                return False
        elif _stands_alone(sentence, words):
            return False
    return True


def is_plain_yes(text: str, told: str, values: Iterable[str] = (), *, follows: bool = False) -> bool:
    """Whether nothing beside the yes of a message may turn it.

    `told` is what the agent said, `values` are what else may be named; with `follows` the call does what the answer
    asks for otherwise than told: "Yes, but only 40.00".
    """
    known, named = _Told(f"{told} \n {(given := ' '.join(values))}".lower()), _Told(given.lower())
    is_said, odd, turning = False, False, False
    for sentence in sentences(text):
        stance, words = stance_of(sentence), _words(sentence)
        if stance in ("yes", "weak"):
            here = _oddities(sentence, known, named, follows=follows)
            is_said = is_said or (stance == "yes" and not here)
            odd = odd or bool(here)
            turning = turning or any(_turns(word) and not (len(words) > _SHORT and _is_mild(word)) for word in here)
        elif not follows and _stands_alone(sentence, words):
            return False
    # Beside a plain yes in a sentence of its own, others may say more, but not turn it.
    return not (turning if is_said else odd)


def _stands_alone(sentence: str, words: Sequence[str]) -> bool:
    """Whether a few words after a yes belong to it: "Yes. Tomorrow morning." """
    return len(words) <= _FEW and not sentence.endswith("?") and not _ALONE.isdisjoint(words)


def _is_mild(word: str) -> bool:
    return word in _MILD or word.endswith("n't")


def _oddities(sentence: str, known: "_Told", named: "_Told", *, follows: bool) -> list[str]:
    """The odd words of a yes, but for those of a remark that only goes on after it."""
    odd = _odd_words(sentence, known, named, follows=follows)
    head = _without_remark(sentence) if odd else sentence
    return odd if head == sentence else _odd_words(head, known, named, follows=follows)


def _odd_words(sentence: str, known: "_Told", named: "_Told", *, follows: bool) -> list[str]:
    """The words of a yes that are neither harmless nor told, unless they are few in a long account of what was told."""
    plain = _BESIDE.without(without_courtesy(sentence))
    if _only_acknowledges(sentence):
        return ["understood"]
    head, rest = plain, ""
    if (dash := _DASH.search(plain)) and len(_words(plain[dash.end() :])) > _FEW:
        head, rest = plain[: dash.start()], plain[dash.end() :]
    odd = [word for word in _words(plain) if _is_odd(word, known, named, follows=follows)]
    if plain.endswith("?") and not _BIDS.search(plain):
        return [*odd, "?"]
    if _NO_AT_END.search(plain):
        odd.append("not")
    if not odd:
        return odd
    if any(_turns(word) or _has_digit(word) for word in odd if not (_is_mild(word) and word in rest)):
        return odd
    if any(word in odd for party in _PARTY.findall(plain) for word in _words(party)):
        # "Yes, 50.00 from A1 to my wife": whatever else was told, it goes to another.
        return odd
    told = {word for word in _words(head) if word not in _HARMLESS and _form(word) in known}
    if rest and len(told) > 1 and any(map(_has_digit, told)):
        # All that matters was said before the dash.
        odd = [word for word in odd if word in head]
    told = {word for word in _words(plain) if word not in _HARMLESS and _form(word) in known}
    return odd if len(told) < max(_FEWEST, _AMONG * len(odd)) else []


def _without_remark(sentence: str) -> str:
    """A yes without a remark that goes on after it as a sentence of its own would, and says nothing of the thing."""
    for found in _SUBJECT.finditer(sentence):
        head, tail = sentence[: found.start()], sentence[found.end() :]
        words = _words(tail)
        is_short = len(words) < _REMARK or tail.endswith("?")
        if is_short or _WILLING.search(tail) or stance_of(head) not in ("yes", "weak") or stance_of(tail) != "other":
            continue
        if not any(_turns(word) for word in words if word != "but" or len(words) <= _SHORT):
            return head
    return sentence


def _only_acknowledges(sentence: str) -> bool:
    """Whether it says that it was heard, and not that it is to be done: "Yes, I understand." """
    return _ACKNOWLEDGES.found_in(sentence) and _BIDDING.search(sentence) is None


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _turns(word: str) -> bool:
    return word in _TURNS or word.endswith("n't") or word == "first"


def _is_odd(word: str, known: "_Told", named: "_Told", *, follows: bool) -> bool:
    if _turns(word) and word not in (known if word in ("first", "save") else named):
        return not (follows and word in _CHANGES)
    if word in _HARMLESS or word == "no" or _form(word) in known:
        return False
    return not all(each in _HARMLESS or _form(each) in known for each in _PIECES.split(word))


class _Told:
    """The forms of a text's words and of their pieces. Few are asked about: they are looked for, not all listed."""

    def __init__(self, text: str) -> None:
        self._text = _unparted(text)

    def __contains__(self, form: str) -> bool:
        text = self._text
        here = text.find(form) if form else -1
        while here >= 0:
            if not here or not text[here - 1].isalnum():
                word = _TOKEN.match(text, here)
                if word is not None and self._begins(here, form, word[0]):
                    return True
            here = text.find(form, here + 1)
        return False

    def _begins(self, here: int, form: str, word: str) -> bool:
        """Whether a word that goes on from a place, or its piece there, has a form."""
        text, before = self._text, here - 1
        while before > 0 and text[before] in _JOINTS:
            before -= 1
        if 0 <= before < here - 1 and text[before].isalnum():
            # Only a piece of a word begins here.
            return text[here - 1] != "'" and form == _form(_PIECES.split(word, 1)[0])
        return form in (_form(word), _form(_PIECES.split(word, 1)[0]))


def _words(text: str) -> list[str]:
    return _TOKEN.findall(_unparted(text))


def _unparted(text: str) -> str:
    """A text with sums written without commas."""
    return _COMMA.sub("", text)


@lru_cache(maxsize=4096)
def _form(word: str) -> str:
    """A word by how it begins; a number as it would be written."""
    word = _NOT_DIGIT.sub("", word.removesuffix("'s"))
    if word[:1].isdigit():
        return word.rstrip("0").rstrip(".") if "." in word else word
    if any(map(str.isdigit, word)):
        return word
    return word[:_BEGIN] if len(word) > _BEGIN else word.removesuffix("s") if len(word) > 3 else word
