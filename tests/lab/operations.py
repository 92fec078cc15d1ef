"""Builds the operations of handwritten histories, for the tests of the checkers."""

from typing import Any

from tests.lab.history import Operation, Outcome


def operation(
    name: str,
    begin: float,
    result: Any = None,
    process: str = "p",
    outcome: Outcome = "ok",
    **arguments: Any,
) -> Operation:
    """Returns an operation that takes half a second."""
    return Operation(
        process=process,
        area="chat",
        operation=name,
        arguments=arguments,
        begin=begin,
        end=begin + 0.5,
        outcome=outcome,
        result=result,
    )
