"""SET and RESET: the settings of the caller's session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.errors import TektiteError
from tektite.sql.catalog.settings import check_path
from tektite.sql.parse.parser import SetSetting
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner


def change(runner: StatementRunner, statement: SetSetting) -> Result:
    """SET name = values, RESET name or RESET ALL."""
    if not statement.name:
        runner.settings.reset()
        return Result("RESET")
    try:
        if runner.settings.known(statement.name) == "search_path" and statement.values is not None:
            check_path(statement.values, runner.schema_names().__contains__)
        runner.settings.set(statement.name, statement.values)
    except TektiteError as error:
        raise statement.source.placed(error, statement.place) from None
    return Result("RESET" if statement.values is None else "SET")
