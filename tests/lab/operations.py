"""Builds the operations of handwritten histories, for the tests of the checkers."""

from typing import Any

from tests.lab.history import Outcome, RecordedOperation


def operation(
    name: str,
    begin: float,
    result: Any = None,
    process: str = "p",
    outcome: Outcome = "ok",
    **arguments: Any,
) -> RecordedOperation:
    """Returns an operation that takes half a second."""
    return RecordedOperation(
        process=process,
        area="chat",
        operation=name,
        arguments=arguments,
        begin=begin,
        end=begin + 0.5,
        outcome=outcome,
        result=result,
    )
