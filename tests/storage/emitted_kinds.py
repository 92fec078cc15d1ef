"""Finds the kinds of events, outbox rows and streams that the source of storage/ names."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from storage.stores.event_kinds import OUTBOX_RELAYS
from storage.streams.outbox import EventRelay

STORAGE = Path(__file__).parents[2] / "storage"
EXCLUDED_MODULES = {"streams/outbox.py", "streams/changes.py"}
"""Modules that define the functions below. Their own calls only forward the kind of their caller."""

KIND_ARGUMENTS = {"emit": 0, "add_outbox_row": 1, "add_rows": 2}
"""Functions with a kind among their positional arguments, and the index of this argument."""


@dataclass(frozen=True)
class ParsedModule:
    """A parsed module with its string constants."""

    name: str
    tree: ast.Module

    @property
    def constants(self) -> dict[str, str]:
        return {
            target.id: str(node.value.value)
            for node in self.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


@cache
def modules() -> list[ParsedModule]:
    paths = {path.relative_to(STORAGE).as_posix(): path for path in sorted(STORAGE.rglob("*.py"))}
    return [
        ParsedModule(name, ast.parse(path.read_text())) for name, path in paths.items() if name not in EXCLUDED_MODULES
    ]


def event_kinds() -> set[str]:
    """Returns the kinds of events that changes emit, and those that relays emit from outbox rows."""
    relays = {kind: relay for kind, relay in OUTBOX_RELAYS.items() if issubclass(relay, EventRelay)}
    relayed = {relay.event_kind or kind for kind, relay in relays.items()}
    return relayed | {kind for module in modules() for kind in _kinds(module, {"emit"})}


def row_kinds() -> set[str]:
    """Returns the kinds of rows that storage adds to the outbox."""
    names = {"add_outbox_row", "add_rows", "add_rows_to_streams"}
    return {kind for module in modules() for kind in _kinds(module, names)}


def stream_kinds() -> set[str]:
    """Returns the kinds of streams that storage constructs."""
    calls = (node for module in modules() for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    kinds = (call.args[0] for call in calls if _name(call) == "Stream")
    return {str(kind.value) for kind in kinds if isinstance(kind, ast.Constant)}


def _kinds(module: ParsedModule, functions: set[str]) -> Iterator[str]:
    """Yields the kinds that a module passes to the functions, directly or through a function with a parameter."""
    arguments = {name: index for name, index in KIND_ARGUMENTS.items() if name in functions}
    kinds: set[str] = set()
    has_new_function = True
    while has_new_function:
        has_new_function = False
        for function in module.functions():
            for kind in _kind_expressions(function, arguments, "add_rows_to_streams" in functions):
                parameters = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
                if isinstance(kind, ast.Constant):
                    kinds.add(str(kind.value))
                elif isinstance(kind, ast.Name) and kind.id in module.constants:
                    kinds.add(module.constants[kind.id])
                elif isinstance(kind, ast.Name) and kind.id in parameters:
                    # This function's callers choose the kind. Its calls are searched in the next pass.
                    has_new_function = has_new_function or function.name not in arguments
                    arguments[function.name] = parameters.index(kind.id)
                else:
                    raise AssertionError(f"{module.name}:{kind.lineno}: write the kind as a literal or a constant.")
    yield from kinds


def _kind_expressions(function: ast.AST, arguments: dict[str, int], in_tuples: bool) -> Iterator[ast.expr]:
    """Yields the arguments that are kinds. With `in_tuples`, also those in the row tuples of add_rows_to_streams."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        index = arguments.get(_name(call))
        if index is not None and len(call.args) > index:
            yield call.args[index]
        if in_tuples and _name(call) == "add_rows_to_streams":
            for node in ast.walk(call.args[1]):
                # The target of a comprehension may be a tuple too, which is stored to and not read.
                if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
                    yield node.elts[1]


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")
