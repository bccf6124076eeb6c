"""Secrets by their form, or behind a word that says so, are taken out of what is remembered; all else stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.secret_patterns import REDACTED, redacted

KEYS = [
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijklmnopqrstuv",
    "glpat-abcdefghijklmnopqrst",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "sk_live_abcdefghijklmnop",
    "rk_live_abcdefghijklmnop",
    "gsk_abcdefghijklmnopqrstuv",
    "xoxb-1234567890-abcdefghij",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk",
]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_known_by_its_form(key: str) -> None:
    assert redacted(f"Use {key}, please.") == f"Use {REDACTED}, please."


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("my password is hunter2hunter2, thanks", f"my password is {REDACTED}, thanks"),
        ('api_key = "abcd1234"', f'api_key = "{REDACTED}"'),
        ("Authorization: Bearer abc.def.ghi", f"Authorization: Bearer {REDACTED}"),
        ("Authorization: Token abcdef1", f"Authorization: Token {REDACTED}"),
        ("Cookie: session=abcdefgh1; a", f"Cookie: session={REDACTED}; a"),
        ("DB_PASSWORD=hunter2 x", f"DB_PASSWORD={REDACTED} x"),
        ("MY_API_KEY=abcd1234", f"MY_API_KEY={REDACTED}"),
        ("export AWS_SECRET_ACCESS_KEY=wJalr/K7+b", f"export AWS_SECRET_ACCESS_KEY={REDACTED}"),
        ("GITHUB_TOKEN: abcdefg", f"GITHUB_TOKEN: {REDACTED}"),
        ("dbPassword = 'a b c d'", f"dbPassword = '{REDACTED}'"),
        ('{"password": "hunter2", "a": 1}', f'{{"password": "{REDACTED}", "a": 1}}'),
        (r"{\"password\": \"hunter 2\", 1}", rf"{{\"password\": \"{REDACTED}\", 1}}"),
        ('token = "a\\"bcd" and', f'token = "{REDACTED}" and'),
        ('client_secret=abcd"efgh and', f"client_secret={REDACTED} and"),
        ("password: p@ssword1, thanks", f"password: {REDACTED}, thanks"),
        ("postgres://bob:s3cretpw@db/orders", f"postgres://bob:{REDACTED}@db/orders"),
        ("postgres://bob:a,b;c@db/orders", f"postgres://bob:{REDACTED}@db/orders"),
        ("redis://:s3cretpw@db/0", f"redis://:{REDACTED}@db/0"),
        ("https://abcdef123456@host/", f"https://{REDACTED}@host/"),
        ("我的密码是 hunter2hunter2", f"我的密码是 {REDACTED}"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nbye", f"{REDACTED}\nbye"),
        ("-----BEGIN PRIVATE KEY-----\nabc, and it was cut", REDACTED),
    ],
)
def test_a_secret_is_known_by_what_stands_before_it_and_the_words_around_it_stay(text: str, kept: str) -> None:
    assert redacted(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "I cannot eat spicy food.",
        "The token of my affection",
        "password reset, please",
        "https://example.org/a:b@c",
        "ssh://git@github.com/a/b",
        "https://somebody@bitbucket.org/a/b",
        "tokens: 1234, max_tokens=4096, tokenizer: o200k",
        "compass: northwest, trespass = forbidden, bypass: allowed",
        "cookie: chocolate, two of them",
        "npm_config_registry and hf_hub_download",
        "我不能吃辣",
        "sk-short",
    ],
)
def test_other_words_stay_as_they_are(text: str) -> None:
    assert redacted(text) == text


@given(st.text(max_size=200))
def test_what_was_redacted_once_is_not_changed_again(text: str) -> None:
    once = redacted(text)

    assert redacted(once) == once


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece",
    [
        "a-",
        "a.b+",
        "password ",
        "bearer ",
        "eyJaaaaaaaaa.",
        "-----BEGIN ",
        "a://b",
        "eyJ-",
        "eyJaaaaaaaa-",
        "https://a1",
        'token:"',
        "token:\\\\'",
        "cookie:a",
        "a://:a",
    ],
)
def test_long_texts_of_any_shape_are_gone_through_in_one_go(piece: str) -> None:
    text = piece * (200_000 // len(piece))

    assert len(redacted(text)) <= 2 * len(text)
