"""Finds secrets in what people and models say, so that none is remembered. Patterns only; it stores nothing.

Each pattern is one that is a secret by its form (a key's prefix and length, a header, a block), or stands behind a word
that says so. An unknown form is not found: this keeps accidents out of memory, not a determined user.
"""

import re
from typing import Final

REDACTED: Final = "<redacted>"

_BLOCKS: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)

_FORMS: Final = re.compile(
    r"""
      \bsk-[A-Za-z0-9_-]{16,}                                # OpenAI, Anthropic and others like them
    | \b(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,}       # Stripe
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b                          # AWS
    | \bgh[pousr]_[A-Za-z0-9]{30,} | \bgithub_pat_\w{30,}    # GitHub
    | \bglpat-[A-Za-z0-9_-]{20,}                             # GitLab
    | \b(?:npm|hf)_[A-Za-z0-9]{30,}                          # npm, Hugging Face
    | \bgsk_[A-Za-z0-9]{20,}                                 # Groq
    | \bxox[abprs]-[A-Za-z0-9-]{10,}                         # Slack
    | \bAIza[0-9A-Za-z_-]{35}                                # Google
    | \beyJ[A-Za-z0-9]{8,}(?:[_-]+[A-Za-z0-9]+){0,8}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}   # JSON web tokens
    """,
    re.VERBOSE,
)

_IN_URLS: Final = re.compile(
    r"""
      (?P<user>\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:)[^\s/@]{4,}(?=@)
    | (?P<token>\bhttps?://)(?=[^\s/:@]*[0-9])[^\s/:@]{12,}(?=@)     # a name without a digit is a user's
    """,
    re.VERBOSE | re.IGNORECASE,
)

_NAMED: Final = re.compile(
    r"""
    (?P<name>
        (?:
            (?:(?<![^\W_]) | (?-i:(?<=[a-z0-9])(?=[A-Z])))           # DB_PASSWORD, dbPassword
            (?: pass(?:word|wd|phrase)? | pwd | secret | token
              | (?:api|access|account|private|secret|signing|encryption)[_-]?key )
            \\{0,3}["']?\s* (?:=|:|\bis\b) \s*
          | (?:密码|口令|パスワード)\s*(?:是|为|は|[:=:])\s*
        )
        (?:bearer\s+)?
      | \b(?:proxy-)?authorization\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?(?:bearer|basic|token|api-?key)\s+
      | \bbearer\s+
      | \bcookie\\{0,3}["']?\s*:\s*\\{0,3}["']?[\w.-]{1,64}=(?=[^\s"',;]{8})
    )
    (?:
        (?P<quote>\\{0,3}["']) (?: (?!(?P=quote))(?:\\.|[^\\\n]) ){4,} (?=(?P=quote))
      | (?P<open>\\{0,3}["']?) (?: [^\s"',;\\] | \\(?!["']) | ["'](?=\w) ){4,}
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)


def redacted(text: str) -> str:
    """The text, each secret in it replaced by `<redacted>`. The words around it stay."""
    return without_words(without_blocks(text))


def without_blocks(text: str) -> str:
    """The text without private keys. They have many lines; a text must be looked at as a whole for them."""
    return _BLOCKS.sub(REDACTED, text)


def without_words(text: str) -> str:
    """The text without secrets other than private keys: none has a line feed in it, or is told by words far away."""
    text = _FORMS.sub(REDACTED, text)
    text = _IN_URLS.sub(lambda found: f"{found['user'] or found['token']}{REDACTED}", text)
    return _NAMED.sub(lambda found: f"{found['name']}{found['quote'] or found['open'] or ''}{REDACTED}", text)
