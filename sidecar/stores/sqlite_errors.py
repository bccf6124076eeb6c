"""What SQLite's errors mean to a store. No sqlite3 exception leaves the store: they all come through here."""

import sqlite3
from typing import Final

from .base import Damaged, Foreign, Refused, StoreError, Unavailable, Unknown

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}
_CONTENT: Final = {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE}
_UNSETTLED: Final = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT}


def primary_code(error: BaseException) -> int:
    """SQLite's primary result code; 0 where the error did not come from SQLite itself."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_full(error: BaseException) -> bool:
    """Whether the disk, or the file's limit, has no room left."""
    return primary_code(error) == sqlite3.SQLITE_FULL


def translate(error: Exception, session: str = "") -> StoreError:
    """The store's error for any exception that came up while a statement ran, of which nothing was kept."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OSError):
        return Unavailable(f"a file cannot be used: {error.strerror}")
    code = primary_code(error)
    if code in _BUSY:
        return Unavailable(f"the database is busy: {error}", busy=True)
    if code == sqlite3.SQLITE_NOTADB:
        return Foreign("the file is not a database")
    if code in _DAMAGED:
        return Damaged(session, str(error), {})
    if code in _CONTENT or code == 0:  # 0: Python could not even hand the value over
        return Refused(f"the store does not take this: {error}")
    return Unavailable(f"the database cannot be used: {error}")


def translate_commit(error: sqlite3.Error) -> StoreError:
    """The store's error where COMMIT itself failed: after a failed write or sync the outcome may be either."""
    if primary_code(error) in _UNSETTLED:
        return Unknown(f"the commit failed, and may still have been written: {error}")
    return translate(error)


def translate_read(error: Exception, session: str) -> StoreError:
    """The store's error where reading failed. What Python cannot make sense of was not written like that by us."""
    if isinstance(error, StoreError | OSError) or primary_code(error):
        return translate(error, session)
    return Damaged(session, f"a row has impossible values: {type(error).__name__}", {})
