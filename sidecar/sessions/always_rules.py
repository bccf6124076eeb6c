"""Approval rules that outlast their session: kept in the user's folder, for all sidecars of the user.

A file that cannot be used holds no rules: every call is asked about again, which is safe.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from protocol.base import StrictModel
from sidecar.agents.standing_rules import StandingRule
from sidecar.config.files import user_folder
from sidecar.config.user_file import Unusable, changing, read_own, replace_own
from sidecar.telemetry import LOGGER

VERSION: Final = 1
MAX_RULES: Final = 10_000

Stamp = tuple[int, int, int] | None


class _Document(StrictModel):
    version: int
    rules: tuple[StandingRule, ...]


class AlwaysRules:
    """The file, as far as it is known."""

    def __init__(self) -> None:
        self._stamp: Stamp = (0, 0, 0)
        self._rules: tuple[StandingRule, ...] = ()

    def read(self) -> tuple[StandingRule, ...]:
        """The rules as they are now. It looks at the file, and reads it where it has changed; it never raises."""
        stamp = _stamp(_path())
        if stamp != self._stamp:
            self._rules, self._stamp = _read(), stamp
        return self._rules

    def add(self, rule: StandingRule) -> None:
        """Keep a rule; one about the same calls goes.

        Raises:
            OSError: it cannot be written.
            ValueError: there are too many.
        """
        self._change(lambda rules: (*(known for known in rules if not _is_same(known, rule)), rule))

    def revoke(self, rule_id: str) -> None:
        """Forget a rule, if it is there.

        Raises:
            OSError: it cannot be written.
        """
        if any(rule.rule_id == rule_id for rule in self.read()):
            self._change(lambda rules: tuple(rule for rule in rules if rule.rule_id != rule_id))

    def _change(self, change: Callable[[tuple[StandingRule, ...]], tuple[StandingRule, ...]]) -> None:
        path = _path()
        with changing(path):
            rules = change(_read())
            if len(rules) > MAX_RULES:
                raise ValueError(f"there are {MAX_RULES} rules already; revoke some")
            document = _Document(version=VERSION, rules=rules)
            replace_own(path, json.dumps(document.wire(), indent=1, sort_keys=True))
            self._rules, self._stamp = rules, _stamp(path)


def _path() -> Path:
    return user_folder() / "approvals.json"


def _stamp(path: Path) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read() -> tuple[StandingRule, ...]:
    path = _path()
    try:
        content = read_own(path)
        if content is None:
            return ()
        document = _Document.model_validate_json(content)
        if document.version != VERSION:
            raise Unusable(f"it is of version {document.version}, not {VERSION}")
    except (Unusable, ValidationError) as error:
        why = str(error) if isinstance(error, Unusable) else "it is damaged"
        LOGGER.warning("%s cannot be used, so no approval rule of it counts: %s", path, why)
        return ()
    return document.rules


def _is_same(one: StandingRule, other: StandingRule) -> bool:
    fields = {"rule_id", "created_at", "decision"}
    return one.model_dump(exclude=fields) == other.model_dump(exclude=fields)
