"""Values that may be passwords, keys or tokens."""

import pytest

from bylaw import Shield
from bylaw.reading.secret import secrets_in, secrets_in_command
from bylaw.reading.shell import read_shell

SECRET = r"""
echo 'sk_live_51Habcdefghijklmnopqrstuv' > a.py
echo hf_abcdefghijklmnopqrstuvwxyz1234 > a.py
echo AKIAIOSFODNN7EXAMPLE
echo wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
echo sk-proj-aBcDeFgHiJkLmNoPqRsT
echo glpat-abcdEFGH1234ijklMNOP
echo ghp_''abcdefgh12345678abc
echo d41d8cd98f00b204e9800998ecf8427e
echo 'token = "hunter2"' > a.py
printf 'password: hunter2\n' > a.yml
python a.py --password='p@ssw0rd!23'
python a.py --pass''word=hunter2
python a.py --password hunter2
python a.py --api-key=abcdef
PGPASSWORD=x psql
env DB_SECRET=x ls
git clone https://ann:pw@example.com/x
git commit -m 3f2a9b7c3f2a9b7c3f2a9b7c3f2a9b7c3f2a9b7cXYZ
""".strip().splitlines()
PLAIN = r"""
pytest -q tests/test_passwords.py
grep -rn "password" src
git show 3f2a9b7c3f2a9b7c3f2a9b7c3f2a9b7c3f2a9b7c --stat
git diff 608b757c..874b13bb
sort --key=2 a
ls 550e8400-e29b-41d4-a716-446655440000
cat src/parseHttp2Headers.py src/reading/shell_programs.py
cat src/internationalization/TestRule11TwoFacts.java
./x --token "$TOKEN"
git commit -m "Rename the token"
python a.py --max-tokens 5
echo 1234567890123456789
npm test -- --testNamePattern=secretsAreKept
""".strip().splitlines()


@pytest.mark.parametrize("command", SECRET)
def test_a_value_that_looks_random_or_is_named_a_secret_is_found(command: str) -> None:
    assert secrets_in_command(command, read_shell(command))


@pytest.mark.parametrize(
    "text",
    [
        "password: correcthorse",
        "<password>correcthorse</password>",
        "ENV DB_PASSWORD hunter2x9",
        "machine x login y password hunter2x9",
        'setPassword("hunter2x")',
        "DB_PASS=hunter2x9",
        "'token': hunter2x9, x",
    ],
)
def test_a_value_after_a_name_is_found_in_a_text(text: str) -> None:
    assert secrets_in(text)


@pytest.mark.parametrize("command", PLAIN)
def test_ordinary_words_are_no_secrets(command: str) -> None:
    assert secrets_in_command(command, read_shell(command)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "token = get_token()",
        "password: str",
        "secret = os.environ['SECRET']",
        "def reset_password(token, key=None):",
        "login(user=user, password=new_password)",
        "token: TokenType, max_tokens=8192",
        "The password field is required.",
    ],
)
def test_code_about_secrets_has_none(text: str) -> None:
    assert secrets_in(text) == ()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bash", {"command": "echo hf_abcdefghijklmnopqrstuvwxyz1234 > a.py"}),
        ("write_file", {"path": "a.py", "content": "x = 'hf_abcdefghijklmnopqrstuvwxyz1234'"}),
        ("edit_file", {"path": "a.py", "edits": [{"oldText": "x", "newText": "password = 'hunter2'"}]}),
    ],
)
def test_a_call_with_a_secret_is_shown_to_a_person(tool: str, arguments: dict[str, object]) -> None:
    with Shield("coding-agent") as shield, shield.session("x") as session:
        decision = session.decide(tool, arguments)
        assert decision.answer == "ask"
        assert "may be a password, key or token" in decision.feedback
