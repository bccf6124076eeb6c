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
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b                          # AWS
    | \bgh[pousr]_[A-Za-z0-9]{30,} | \bgithub_pat_\w{30,}    # GitHub
    | \bglpat-[A-Za-z0-9_-]{20,}                             # GitLab
    | \bxox[abprs]-[A-Za-z0-9-]{10,}                         # Slack
    | \bAIza[0-9A-Za-z_-]{35}                                # Google
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}   # JSON web tokens
    """,
    re.VERBOSE,
)

_NAMED: Final = re.compile(
    r"""
    (?P<name>
        \b(?:authorization\s*:\s*(?:bearer|basic)|bearer)\s+
      | \b(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|client[_-]?secret)
        \s*(?:=|:|\bis\b)\s*
      | (?:密码|口令|パスワード)\s*(?:是|为|は|[:=:])\s*
      | \b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]+:(?=[^\s/@]+@)
    )
    (?P<quote>["']?)
    (?P<value>[^\s"'@,;]{4,})
    """,
    re.VERBOSE | re.IGNORECASE,
)


def redacted(text: str) -> str:
    """The text, each secret in it replaced by `<redacted>`. The words around it stay."""
    text = _BLOCKS.sub(REDACTED, text)
    text = _FORMS.sub(REDACTED, text)
    return _NAMED.sub(lambda found: f"{found['name']}{found['quote']}{REDACTED}", text)
