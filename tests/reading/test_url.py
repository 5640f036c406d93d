"""URLs lead where every client says they lead, or are unreadable."""

import json
import os
import random
import shutil
import subprocess

import pytest

from bylaw.reading import Unreadable
from bylaw.reading.url import read_url


@pytest.mark.parametrize(
    ("text", "origin", "path"),
    [
        ("https://Example.COM", "https://example.com", "/"),
        ("https://example.com.:443/a/../b/./c?d=/../e#f", "https://example.com", "/b/c"),
        ("http://example.com:8080/%61%2d%7e", "http://example.com:8080", "/a-~"),
        ("http://example.com/a/%2e%2e/b/", "http://example.com", "/b/"),
        ("http://example.com/a/..", "http://example.com", "/"),
        ("http://example.com/../../a", "http://example.com", "/a"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example", "/"),
        ("http://127.0.0.1/", "http://127.0.0.1", "/"),
        ("http://[::1]:80/", "http://[::1]", "/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]", "/"),
        ("wss://example.com/s", "wss://example.com", "/s"),
    ],
)
def test_a_url_is_read_in_its_plainest_form(text: str, origin: str, path: str) -> None:
    url = read_url(text)
    assert (url.origin, url.path) == (origin, path)


HOSTILE = r"""
https://good.com@evil.com/
https://good.com:pass@evil.com/
https://good.com\@evil.com/
https://good.com\.evil.com/
https:\\evil.com/
https:/evil.com
https:evil.com
//evil.com/
/relative
evil.com
javascript:alert(1)
data:text/html,x
file:///etc/passwd
http://0177.0.0.1/
http://0x7f.0.0.1/
http://2130706433/
http://127.1/
http://127.0.0.1.1/
http://0x7f000001/
http://017700000001/
http://256.0.0.1/
http://[::1/
http://[::1%25eth0]/
http://exa mple.com/
http://example.com:99999/
http://example.com:0/
http://example.com:80:80/
http://example.com:/../:x/
http://exam%70le.com/
http://example..com/
http://.example.com/
http://-example.com/
http:///example.com/
http://example.com/%2e%2e%2fsecret
http://example.com/..%2fsecret
http://example.com/..%5csecret
http://example.com/%252e%252e/
http://example.com/%00
http://example.com/%zz
http://example.com/<script>
http://stra\u00dfe.example/
http://\uff45xample.com/
http://example\u3002com/
http://exa\u00admple.com/
http://exa\u200dmple.com/
http://example.com/\u202e
http://example.com/a\tb
http://example.com/a\nb
""".strip().splitlines()


@pytest.mark.parametrize("text", HOSTILE)
def test_what_clients_read_differently_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_url(text.encode().decode("unicode_escape") if "\\u" in text or "\\t" in text or "\\n" in text else text)


def test_hosts_are_allowed_by_their_whole_names() -> None:
    allowed = ["example.com", "*.shop.example"]
    assert read_url("https://EXAMPLE.com./").is_on(allowed)
    assert read_url("https://a.b.shop.example/").is_on(allowed)
    for other in ("https://shop.example/", "https://evilexample.com/", "https://example.com.evil.com/",
                  "https://www.example.com/", "https://evilshop.example/"):  # fmt: skip
        assert not read_url(other).is_on(allowed)


@pytest.mark.parametrize(
    ("host", "is_private"),
    [
        ("127.0.0.1", True), ("10.1.2.3", True), ("169.254.169.254", True), ("[::1]", True), ("[fd00::1]", True),
        ("[::ffff:7f00:1]", True), ("[64:ff9b::7f00:1]", True), ("localhost", True), ("db.internal", True),
        ("intranet", True), ("8.8.8.8", False), ("example.com", False), ("[2606:4700::1111]", False),
    ],
)  # fmt: skip
def test_private_hosts_are_known(host: str, is_private: bool) -> None:
    assert read_url(f"http://{host}/").is_private == is_private


PIECES = [
    *"ab1.:/@?#%[]\\ -_~",
    "..",
    "%2e",
    "%2F",
    "%41",
    "//",
    "xn--",
    "0x7f",
    "127.0.0.1",
    ":80",
    "\u00fc",
    "\u3002",
    "\uff0e",
]


@pytest.mark.process
def test_urls_lead_where_the_standard_says() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    choose = random.Random(0)
    texts = ["http://" + "".join(choose.choice(PIECES) for _ in range(choose.randint(1, 9))) for _ in range(4000)]
    script = (
        "const t = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(t.map(x => { try { const u = new URL(x);"
        " return [u.hostname, u.port, u.pathname] } catch { return null } })))"
    )
    done = subprocess.run(
        [node, "-e", script], input=json.dumps(texts), capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    read = 0
    for text, standard in zip(texts, json.loads(done.stdout), strict=True):
        try:
            url = read_url(text)
        except Unreadable:
            continue
        if standard is None and "xn--" in text:
            continue  # a name that some clients refuse leads nowhere else
        read += 1
        assert standard is not None, text
        host, port, path = standard
        assert url.host == host.strip("[]").removesuffix("."), text
        assert url.port == int(port or 80), text
        assert path.replace("%41", "A") in (url.path, url.path.replace("%C3%BC", "\u00fc")) or "%" in path, text
    assert read > 200
