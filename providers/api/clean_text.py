"""Text as it may be sent and stored: no half of a UTF-16 pair, no NUL. Knows no JSON."""


def clean_text(text: str) -> str:
    """Join surrogate pairs, and put U+FFFD for what stays alone and for NUL."""
    if has_surrogate(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd") if "\0" in text else text


def has_surrogate(text: str) -> bool:
    """Whether half of a UTF-16 pair is in the text."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
