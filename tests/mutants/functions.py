"""Replaces the code of functions in a process that has imported their module."""

import gc
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType


class ImportedFunctions:
    """The functions of an imported module."""

    def __init__(self, file: Path, source: str) -> None:
        self._file = str(file)
        self._functions: defaultdict[CodeType, list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            # Not isinstance: it fails for a weak reference whose object is gone.
            if type(each) is FunctionType and each.__code__.co_filename == self._file:
                self._functions[each.__code__].append(each)
        self._codes = list(_outermost_functions(compile(source, self._file, "exec")))

    def change_to(self, source: str) -> Callable[[], None] | None:
        """Returns a function that replaces the code of the functions by their code in another source.

        Returns None if no code differs, or if the module must be imported again, such as for a changed default,
        constant or decorator.
        """
        codes = list(_outermost_functions(compile(source, self._file, "exec")))
        if len(codes) != len(self._codes):
            return None
        pairs = [
            (old, new)
            for old, new in zip(self._codes, codes, strict=True)
            if _without_lines(old) != _without_lines(new)
        ]
        if not pairs or not all(self._is_replaceable(old, new) for old, new in pairs):
            return None
        return lambda: _replace([(self._functions[old], new) for old, new in pairs])

    def _is_replaceable(self, old: CodeType, new: CodeType) -> bool:
        """Returns whether the function was imported, and none of its inner functions exists yet.

        The inner function of a decorator, for example, exists since the import, and would keep its old code.
        """
        has_inner = any(each in self._functions for each in _inner_functions(old))
        return old in self._functions and old.co_freevars == new.co_freevars and not has_inner


def _replace(pairs: list[tuple[list[FunctionType], CodeType]]) -> None:
    for functions, code in pairs:
        for function in functions:
            function.__code__ = code


def _outermost_functions(code: CodeType) -> Iterator[CodeType]:
    """Yields the functions of a module and of its classes, in order, without the functions within functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant
            else:
                yield from _outermost_functions(constant)


def _inner_functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner_functions(constant)


def _without_lines(code: CodeType) -> CodeType:
    constants = tuple(_without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_consts=constants)
