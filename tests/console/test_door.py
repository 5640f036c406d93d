"""Who is let in: names of the server, tokens, sites; and what a browser is told of every page."""

import re

import pytest

from tests.console.conftest import Reader


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", ""])
def test_another_name_is_refused(reader: Reader, host: str) -> None:
    assert reader.client.get("/findings", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8301", "[::1]:8301", "LOCALHOST"])
def test_this_machines_names_are_answered(reader: Reader, host: str) -> None:
    assert reader.client.get("/findings", headers={"host": host}).status_code == 200


def finding(reader: Reader) -> str:
    found = re.search(r'href="/finding/([0-9a-f]+)"', reader.get("/findings"))
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_a_change_from_another_site_is_refused(reader: Reader, headers: dict[str, str]) -> None:
    form = {"token": reader.token, "by": "Mara", "reason": "r", "expires": "2999-01-01"}
    answer = reader.client.post(f"/finding/{finding(reader)}/waive", data=form, headers=headers)
    assert answer.status_code == 403
    assert not (reader.client.get("/findings?state=waived").text).count('class="reason"')


@pytest.mark.parametrize("token", ["", "0" * 64, None])
def test_a_change_without_the_sessions_token_is_refused(reader: Reader, token: str | None) -> None:
    name = finding(reader)
    form = {"by": "Mara", "reason": "r", "expires": "2999-01-01"} | ({} if token is None else {"token": token})
    assert reader.client.post(f"/finding/{name}/waive", data=form).status_code == 403


def test_a_form_from_before_a_restart_can_be_sent_again(reader: Reader) -> None:
    name = finding(reader)
    form = {"token": "0" * 64, "by": "Mara", "reason": "r", "expires": "2999-01-01"}
    part = {"hx-request": "true"}
    answer = reader.client.post(f"/finding/{name}/waive", data=form, headers=part)
    assert (answer.status_code, answer.headers["hx-retarget"]) == (403, "#told")
    assert "Send the form again" in answer.text
    fresh = re.search(r'data-token="([0-9a-f]+)"', answer.text)
    assert fresh is not None
    form |= {"token": fresh[1]}
    assert "Wrote to" in reader.client.post(f"/finding/{name}/waive", data=form, headers=part).text


def test_a_form_without_a_session_gets_no_token(reader: Reader) -> None:
    stranger = Reader(reader.app)
    answer = stranger.client.post("/finding/x/waive", data={"by": "Eve"}, headers={"hx-request": "true"})
    assert answer.status_code == 403
    assert "data-token" not in answer.text


def test_a_token_of_another_session_is_refused(reader: Reader) -> None:
    other = Reader(reader.app)
    form = {"token": other.token, "by": "Mara", "reason": "r", "expires": "2999-01-01"}
    assert reader.client.post(f"/finding/{finding(reader)}/waive", data=form).status_code == 403


def test_a_change_must_be_a_form(reader: Reader) -> None:
    answer = reader.client.post(f"/finding/{finding(reader)}/waive", json={"token": reader.token})
    assert answer.status_code == 415


def test_a_form_that_is_too_large_is_refused(reader: Reader) -> None:
    form = {"token": reader.token, "reason": "x" * 300_000}
    assert reader.client.post(f"/finding/{finding(reader)}/waive", data=form).status_code == 413


def test_no_change_is_made_by_a_link(reader: Reader) -> None:
    answer = reader.client.get(f"/finding/{finding(reader)}/waive?reason=r&expires=2999-01-01&by=Mara")
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["/findings", "/finding/none", "/nowhere", "/static/0/console.css"])
def test_every_answer_says_what_a_browser_may_load(reader: Reader, path: str) -> None:
    headers = reader.client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(reader: Reader) -> None:
    cookie = reader.client.get("/findings").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


def test_files_that_pages_load_are_there_under_the_address_of_their_content(reader: Reader) -> None:
    addresses = re.findall(r'(?:src|href)="(/static/[^"]+)"', reader.get("/findings"))
    assert len(addresses) == 4
    for address in addresses:
        answer = reader.client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_no_page_is_led_to_where_a_clients_host_points(reader: Reader) -> None:
    assert reader.client.get("/findings/", follow_redirects=False).status_code == 404


def test_a_token_that_is_not_ascii_is_malformed(reader: Reader) -> None:
    form = {"token": "é" * 64, "by": "Mara", "reason": "r", "expires": "2999-01-01"}
    assert reader.client.post(f"/finding/{finding(reader)}/waive", data=form).status_code == 400


def test_a_sign_in_cookie_that_is_not_ascii_signs_nobody_in() -> None:
    from starlette.requests import Request

    from bylaw.console.sign_in import SignIn

    header = (b"cookie", b'bylaw_key="\\351.1.\\351"')
    request = Request({"type": "http", "headers": [header]})
    assert SignIn(lambda name: None, str, secret=b"x" * 32).visitor(request) is None
