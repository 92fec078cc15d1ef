"""The mutants of a module: small changes of its source, each of which some test should notice.

Annotations, decorators, texts, logging, metrics and assertions are not mutated. Neither are numbers in the constants of
a module; docs/mutants.md says how these are checked instead.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.BitOr: "&",
    ast.BitAnd: "|",
}
MONGO_COMPARISONS = {"$lt": "$lte", "$lte": "$lt", "$gt": "$gte", "$gte": "$gt", "$ne": "$eq", "$eq": "$ne"}
SKIPPED_CALLS = ("log.", ".inc(", ".observe(", "TypeVar(")
SMALL = 10
"""Numbers from this one on are doubled instead of increased by 1."""
NAMING_KEYWORDS = {"name", "reason", "error"}
"""Keyword arguments that name a task or fill a message."""

Node = ast.expr | ast.stmt | ast.ExceptHandler | ast.keyword
Statement = ast.stmt | ast.ExceptHandler
NodePath = tuple[str, ...]
"""Names of the classes and functions around a statement."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """A replacement of source[start:end], in bytes of UTF-8. `lines` are those of the statement, without its body."""

    function: str
    change: str
    start: int
    end: int
    replacement: str
    lines: range

    @property
    def key(self) -> str:
        """A name that stays the same when other lines of the module change."""
        return f"{self.function}: {self.change}"

    def apply(self, source: str) -> str:
        """Returns the source of the changed module."""
        encoded = source.encode()
        return (encoded[: self.start] + self.replacement.encode() + encoded[self.end :]).decode()


def find_mutants(source: str) -> list[Mutant]:
    """Returns the mutants of a module that are valid Python, in order of their lines."""
    found = _ParsedModule(source).mutants()
    return [each for each in _with_unique_keys(found) if _is_valid(each.apply(source))]


def _with_unique_keys(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    counts: Counter[str] = Counter()
    for mutant in sorted(mutants, key=lambda each: (each.start, each.end)):
        counts[mutant.key] += 1
        count = counts[mutant.key]
        yield mutant if count == 1 else replace(mutant, change=f"{mutant.change} ({count})")


def _is_valid(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


class _ParsedModule:
    """A parsed module."""

    def __init__(self, source: str) -> None:
        self._bytes = source.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._tree = ast.parse(source)
        self._functions: set[NodePath] = set()

    def mutants(self) -> Iterator[Mutant]:
        return self._in_body(self._tree.body, ())

    def _in_body(self, body: Sequence[Statement], path: NodePath) -> Iterator[Mutant]:
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = (*path, statement.name)
                if isinstance(statement, Function) or path in self._functions:
                    self._functions.add(inner)
                if isinstance(statement, Function):
                    yield from self._in_expressions(statement, statement.args.defaults, inner)
                yield from self._in_body(statement.body, inner)
            elif not _is_skipped(self._text(statement), statement):
                yield from self._in_statement(statement, path)

    def _in_statement(self, statement: Statement, path: NodePath) -> Iterator[Mutant]:
        found = self._in_expressions(statement, _expressions(statement), path)
        if path in self._functions:
            yield from found
            yield from self._of_statement(statement, path)
        else:
            yield from (each for each in found if not (each.replacement.isdigit() or each.replacement == "None"))
        for name in ("body", "orelse", "handlers", "finalbody"):
            yield from self._in_body(getattr(statement, name, ()), path)
        for case in getattr(statement, "cases", ()):
            yield from self._in_body(case.body, path)

    def _of_statement(self, statement: Statement, path: NodePath) -> Iterator[Mutant]:
        """Yields the mutants that remove a statement or its effect."""
        match statement:
            case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise() | ast.Delete():
                yield self._mutant(statement, statement, "pass", path)
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield self._mutant(statement, value, "None", path)
            case ast.Break():
                yield self._mutant(statement, statement, "continue", path)
            case ast.Continue():
                yield self._mutant(statement, statement, "break", path)
            case ast.If() | ast.While():
                yield from self._of_condition(statement, statement.test, path)

    def _in_expressions(
        self, statement: Statement, parts: Iterable[ast.expr | None], path: NodePath
    ) -> Iterator[Mutant]:
        pending = [part for part in parts if part is not None]
        while pending:
            node = pending.pop()
            yield from self._of_expression(statement, node, path)
            pending += _inner_expressions(node)

    def _of_expression(self, statement: Statement, node: ast.expr, path: NodePath) -> Iterator[Mutant]:
        match node:
            case ast.Compare():
                yield from self._of_comparison(statement, node, path)
            case ast.BoolOp():
                yield from self._of_bool(statement, node, path)
            case ast.UnaryOp(op=ast.Not()):
                yield self._mutant(statement, node, f"({self._text(node.operand)})", path)
            case ast.IfExp():
                yield from self._of_condition(statement, node.test, path)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                for condition in (each for generator in node.generators for each in generator.ifs):
                    yield from self._of_condition(statement, condition, path)
            case ast.BinOp():
                if operator := ARITHMETIC.get(type(node.op)):
                    yield self._between(statement, node, node.left, operator, node.right, path)
            case ast.Constant():
                yield from self._of_constant(statement, node, path)
            case ast.Dict():
                yield from self._of_dict(statement, node, path)
            case ast.Call():
                yield from self._of_call(statement, node, path)
            case ast.Tuple(ctx=ast.Load()):
                for element in node.elts:
                    if not isinstance(element, ast.Constant | ast.Starred):
                        yield self._mutant(statement, element, "None", path, within=node)

    def _of_condition(self, statement: Statement, test: ast.expr, path: NodePath) -> Iterator[Mutant]:
        """Yields mutants with a condition that always or never holds. A loop is not made endless."""
        for value in ("False",) if isinstance(statement, ast.While) else ("False", "True"):
            if not isinstance(test, ast.NamedExpr | ast.Constant):
                yield self._mutant(statement, test, value, path)

    def _of_comparison(self, statement: Statement, node: ast.Compare, path: NodePath) -> Iterator[Mutant]:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            yield self._between(statement, node, left, COMPARISONS[type(operator)], right, path)

    def _of_bool(self, statement: Statement, node: ast.BoolOp, path: NodePath) -> Iterator[Mutant]:
        """Yields a mutant without each operand."""
        for number, dropped in enumerate(node.values):
            rest = [f"({self._text(each)})" for index, each in enumerate(node.values) if index != number]
            joined = (" and " if isinstance(node.op, ast.And) else " or ").join(rest)
            yield self._mutant(statement, node, f"({joined})", path, label=f"without `{self._line(dropped)}`")

    def _of_constant(self, statement: Statement, node: ast.Constant, path: NodePath) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, bool):
            yield self._mutant(statement, node, str(not value), path)
        elif isinstance(value, int):
            yield self._mutant(statement, node, str(value + 1 if value < SMALL else 2 * value), path)
        elif isinstance(value, str) and value in MONGO_COMPARISONS:
            yield self._mutant(statement, node, f'"{MONGO_COMPARISONS[value]}"', path)

    def _of_dict(self, statement: Statement, node: ast.Dict, path: NodePath) -> Iterator[Mutant]:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                # `**{}` takes the place of the entry: it adds nothing, and keeps the commas valid.
                start, end = self._offset(key), self._end(value)
                label = f"without `{self._cut(start, end)}` in `{self._line(node)}`"
                yield Mutant(".".join(path), label, start, end, "**{}", _lines(statement))

    def _of_call(self, statement: Statement, node: ast.Call, path: NodePath) -> Iterator[Mutant]:
        for keyword in node.keywords:
            if keyword.arg not in {None, *NAMING_KEYWORDS}:
                yield self._mutant(statement, keyword, "**{}", path, within=node)

    def _between(
        self,
        statement: Statement,
        node: ast.expr,
        left: ast.expr,
        operator: str,
        right: ast.expr,
        path: NodePath,
    ) -> Mutant:
        """Returns the mutant with another operator between two operands. Keeps parentheses of the operands."""
        start, end = self._end(left), self._offset(right)
        text = self._bytes[start:end].decode()
        closing, opening = text[: len(text) - len(text.lstrip(") "))], text[len(text.rstrip("( ")) :]
        label = f"`{self._line(node)}` with {operator}"
        return Mutant(".".join(path), label, start, end, f"{closing} {operator} {opening}", _lines(statement))

    def _mutant(
        self,
        statement: Statement,
        node: Node,
        replacement: str,
        path: NodePath,
        *,
        label: str | None = None,
        within: Node | None = None,
    ) -> Mutant:
        start, end = self._offset(node), self._end(node)
        inside = f" in `{self._line(within)}`" if within else ""
        change = label or f"`{self._cut(start, end)}` -> `{self._shorten(replacement)}`{inside}"
        return Mutant(".".join(path), change, start, end, replacement, _lines(statement))

    def _offset(self, node: Node) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: Node) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: Node) -> str:
        return self._bytes[self._offset(node) : self._end(node)].decode()

    def _line(self, node: Node) -> str:
        return self._shorten(self._text(node))

    def _cut(self, start: int, end: int) -> str:
        return self._shorten(self._bytes[start:end].decode())

    @staticmethod
    def _shorten(text: str) -> str:
        line = " ".join(text.split())
        return line if len(line) <= 80 else f"{line[:77]}..."


def _expressions(statement: Statement) -> Iterator[ast.expr]:
    """Yields the expressions of a statement, without those of its body and without annotations."""
    for name, value in ast.iter_fields(statement):
        if name in {"annotation", "type", "exc", "msg"} or (name == "target" and isinstance(statement, ast.AnnAssign)):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.withitem):
                yield each.context_expr
            elif isinstance(each, ast.match_case) and each.guard is not None:
                yield each.guard
            elif isinstance(each, ast.expr):
                yield each


def _inner_expressions(node: ast.expr) -> Iterator[ast.expr]:
    """Yields the expressions directly within an expression. Those of texts and of type checks are left out."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and _is_type_check(node)):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.keyword):
            if child.arg not in NAMING_KEYWORDS:
                yield child.value
        elif isinstance(child, ast.comprehension):
            yield from (child.iter, *child.ifs)


def _is_type_check(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in {"isinstance", "cast", "TypeVar"}


def _is_skipped(text: str, statement: Statement) -> bool:
    is_trivial = isinstance(statement, ast.Assert | ast.Import | ast.ImportFrom)
    is_check_of_types = isinstance(statement, ast.If) and text.startswith("if TYPE_CHECKING")
    is_logged = isinstance(statement, ast.Expr) and any(each in text for each in SKIPPED_CALLS)
    return is_trivial or is_check_of_types or is_logged


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _lines(statement: Statement) -> range:
    """Returns the lines of a statement. For a compound statement, these are the lines before its body."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    first = body[0] if isinstance(body, list) else None
    last = getattr(first, "lineno", None) or (first.pattern.lineno if isinstance(first, ast.match_case) else None)
    end = max(statement.lineno, last - 1) if last else statement.end_lineno or statement.lineno
    return range(statement.lineno, end + 1)
