"""Which values count as secrets, and what a text looks like without them."""

import json
import threading
import time
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from providers.secret_patterns import without_words
from sidecar.config import known_secrets
from sidecar.config.endpoints import EndpointConfig
from sidecar.config.known_secrets import REMOVED, Secrets, is_secret_name, secrets_in_url, secrets_of, without_user_info
from sidecar.config.model import Config, McpServerConfig


def test_a_known_value_is_removed_wherever_it_stands() -> None:
    secrets = Secrets(["hunter-two"])
    assert secrets.clean("a hunter-two, xhunter-twox") == f"a {REMOVED}, x{REMOVED}x"
    assert secrets.clean_json({"hunter-two": ["hunter-two", 1, None]}) == {REMOVED: [REMOVED, 1, None]}


def test_a_value_is_found_as_json_and_as_a_url_write_it() -> None:
    value = 'pass"word\\ &/ü'
    secrets = Secrets([value])
    assert value not in secrets.clean(f"x{value}x")
    assert secrets.clean(json.dumps(value)) == f'"{REMOVED}"'
    assert secrets.clean(f"?key={quote(value, safe='')}") == f"?key={REMOVED}"


def test_the_word_behind_the_scheme_of_a_header_counts_by_itself() -> None:
    assert Secrets(["Bearer abcdefgh1"]).clean("it is abcdefgh1") == f"it is {REMOVED}"


def test_a_value_as_short_as_a_word_is_not_looked_for() -> None:
    assert Secrets(["", "abc"]).clean("abc") == "abc"


def test_a_value_inside_another_secret_does_not_leave_the_rest_of_that() -> None:
    assert Secrets(["abcdefgh"]).clean("sk-abcdefghijklmnopqrst") == REMOVED


def test_the_mark_itself_is_never_taken_for_a_secret() -> None:
    secrets = Secrets(["secret"])
    assert secrets.clean("sk-abcdefghijklmnopqrst") == REMOVED
    assert secrets.clean(f"{REMOVED} secret") == f"{REMOVED} {REMOVED}"


def test_values_that_are_learnt_later_count_from_then_on() -> None:
    secrets = Secrets()
    assert secrets.clean("hunter-two") == "hunter-two"
    secrets.add(["hunter-two"])
    assert secrets.clean("hunter-two") == REMOVED


@pytest.mark.parametrize("distance", [0, 1, 30, 4090, 4096, 8000])
def test_a_long_text_is_looked_at_as_a_whole(distance: int) -> None:
    text = f"{'word ' * (distance // 5)}the password is hunter22, and more {'word ' * 2000}"
    assert "hunter22" not in Secrets().clean(text)
    assert Secrets().clean("word " * 2000) == "word " * 2000


@pytest.mark.parametrize("distance", [0, 3000, 4090, 7000, 7900, 8190, 20_000])
def test_a_token_in_a_text_without_blanks_is_found_wherever_it_stands(distance: int) -> None:
    token = f"eyJ{'a' * 40}.{'b' * 900}.{'c' * 300}"
    assert Secrets().clean(f"https://h/{'A' * distance}/{token}/") == f"https://h/{'A' * distance}/{REMOVED}/"


def test_a_text_full_of_secrets_loses_all_of_them() -> None:
    key = "sk-abcdefghijklmnopqrst"
    shown = Secrets().clean(f"token: hunter-two,{key} " * 2000)
    assert "hunter" not in shown
    assert key not in shown
    assert shown.count(REMOVED) == 4000


def test_a_private_key_in_a_long_text_is_found_as_a_whole() -> None:
    block = f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQIBADAN' * 1000}\n-----END PRIVATE KEY-----"
    words = "word " * 2000
    assert Secrets().clean(f"{words}{block} {words}") == f"{words}{REMOVED} {words}"


@pytest.mark.parametrize("piece", ["word token: abcdefgh and ", "abcdefghij", "a/b", "password: \n"])
def test_of_a_long_text_no_part_is_matched_again_and_again(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matched: list[int] = []

    def counted(text: str) -> str:
        matched.append(len(text))
        return without_words(text)

    monkeypatch.setattr(known_secrets, "without_words", counted)
    text = piece * (400_000 // len(piece))
    Secrets().clean(text)
    assert len(text) <= sum(matched) < 2 * len(text)
    assert max(matched) < 100_000


def test_a_known_value_is_begun_where_a_line_of_it_ends() -> None:
    secrets = Secrets(["first line\nsecond line"])
    assert secrets.is_begun("it is first line\n")
    assert not secrets.is_begun("it is second line\n")
    assert secrets.is_known_begun("it is firs")
    assert not secrets.is_known_begun("it is firx")


def test_no_text_keeps_other_threads_waiting() -> None:
    """Matching holds the interpreter's lock, for seconds on a text like this one; so it is matched in pieces."""
    text = "a-" * 30_000
    cleaning = threading.Thread(target=Secrets().clean, args=(text,))
    longest, before = 0.0, time.perf_counter()
    cleaning.start()
    while cleaning.is_alive():
        time.sleep(0.001)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    assert longest < 1.5


def test_the_secrets_of_a_configuration_are_its_keys_headers_and_what_urls_carry() -> None:
    config = Config(
        endpoints={
            "a": EndpointConfig(api_key_env="MY_ENV", headers={"X": SecretStr("header-value")}),
            "b": EndpointConfig(base_url="https://somebody:url-password@host/v1?sig=query-value"),
        },
        mcp_servers={"m": McpServerConfig(command="c", env={"Y": SecretStr("mcp-value")})},
    )
    environ = {"MY_ENV": "of-endpoint", "GITHUB_TOKEN": "of-another", "PATH": "/usr/bin", "A_KEY": "short"}

    assert set(secrets_of(config, environ)) - {""} == {
        "of-endpoint",
        "of-another",
        "header-value",
        "mcp-value",
        "somebody",
        "url-password",
        "query-value",
    }


def test_a_password_in_a_url_is_known_as_it_stands_there_and_decoded() -> None:
    secrets = Secrets(secrets_in_url("https://u:p%40ss-word@host/?key=a%2fb+cdefg"))
    for text in ("p%40ss-word", "p@ss-word", "a%2fb+cdefg", "a/b cdefg"):
        assert secrets.clean(f"it is {text}.") == f"it is {REMOVED}."


def test_a_url_without_its_user_is_the_same_url() -> None:
    assert without_user_info("redis://:pw@host:1/0?a=b@c") == f"redis://{REMOVED}@host:1/0?a=b@c"
    assert without_user_info("https://host/@user") == "https://host/@user"


def test_what_is_no_url_has_no_secrets() -> None:
    assert list(secrets_in_url("http://[half")) == []


@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "API-Key", "accessToken", "client_secret", "password", "Authorization", "dbPwd", "pass"],
)
def test_members_that_are_called_secrets_are_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["api_key_env", "api_key_secret", "apiKeySecret", "max_output_tokens", "name", "keys", "compass"]
)
def test_members_that_only_sound_like_it_are_none(name: str) -> None:
    assert not is_secret_name(name)
