"""Faults made by rule and not by eye: every place of the risky files where a rule fits, and a sample of them by a seed.

A rule changes one thing inside a function: a comparison, a bound, a number, a guard, a call, an order. Texts, logging and
annotations stay as they are, and so does what means the same the other way round: the order in `min`, a constant after `or`.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.fault import ROOT, Fault

RISKY = (  # what would hurt a user most comes first
    "slim/runcast/slim/log/*.py",
    "slim/runcast/slim/stores/*.py",
    "slim/runcast/slim/stores/sql/*.py",
    "app/runcast/app/host/launch.py",
    "app/runcast/app/runs/*.py",
    "app/runcast/app/nodes/*.py",
    "app/runcast/app/tenants/*.py",
    "broadcast/runcast/broadcast/hub/access.py",
    "broadcast/runcast/broadcast/hub/gate.py",
    "broadcast/runcast/broadcast/hub/signatures.py",
    "broadcast/runcast/broadcast/hub/fanout.py",
    "broadcast/runcast/broadcast/hub/hub.py",
    "slim/runcast/slim/redaction/*.py",
    "slim/runcast/slim/archive/thread_lines.py",
    "slim/runcast/slim/archive/transfer.py",
    "slim/runcast/slim/archive/pruning.py",
    "app/runcast/app/http/route*.py",
    "app/runcast/app/http/site.py",
    "app/runcast/app/http/http_messages.py",
    "app/runcast/app/http/thread_routes.py",
    "app/runcast/app/webhooks/*.py",
    "app/runcast/app/keeping/*.py",
)
COMPARED = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
COUNTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+"}
LOGGED = ("LOG", "logger", "warnings", "super", "print")
Change = tuple[ast.expr | ast.stmt, str]  # what is changed, and what stands there instead


def every() -> tuple[Fault, ...]:
    """All faults, by file."""
    paths = dict.fromkeys(path for pattern in RISKY for path in sorted(ROOT.glob(pattern)))
    return tuple(fault for path in paths for fault in faults_of(path))


def sample(faults: Sequence[Fault], count: int, seed: int) -> tuple[Fault, ...]:
    """So many of the faults, the same ones for the same seed and sources."""
    return tuple(random.Random(seed).sample(faults, min(count, len(faults))))


def faults_of(path: Path) -> Iterator[Fault]:
    text = path.read_text()
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return len(text.encode()[: starts[line - 1] + column].decode())

    for node, new in _changes(ast.parse(text), False):
        begin, end = (
            place(node.lineno, node.col_offset),
            place(node.end_lineno or 0, node.end_col_offset or 0),
        )
        if text[begin:end] != new:
            yield Fault(path.relative_to(ROOT).as_posix(), text[begin:end], new, begin)


def _changes(node: ast.AST, inside: bool) -> Iterator[Change]:
    """Every change below a node; only what is inside a function."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            for each in node.body:
                yield from _changes(each, True)
            return
        case ast.AnnAssign(value=value):
            if value is not None:
                yield from _changes(value, inside)
            return
        case ast.JoinedStr() | ast.Expr(value=ast.Constant()):  # a text, or a docstring
            return
        case ast.Expr(value=ast.Call() | ast.Await()) if _is_logging(node):
            return
        case ast.Raise():
            yield node, "pass"
            return
        case _:
            pass
    if inside:
        yield from _here(node)
    for each in ast.iter_child_nodes(node):
        yield from _changes(each, inside)


def _here(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield node, f"{_inner(left)} {COMPARED[type(operator)]} {_inner(right)}"
        case ast.Compare():
            operators = [*node.ops[:-1], {ast.Lt: ast.LtE, ast.LtE: ast.Lt}.get(type(node.ops[-1]), ast.Eq)()]
            yield node, ast.unparse(ast.Compare(node.left, operators, node.comparators))
        case ast.BoolOp(op=operator, values=values):
            other = " or " if isinstance(operator, ast.And) else " and "
            yield node, f"({other.join(map(_inner, values))})"
            idle = "True" if isinstance(operator, ast.And) else "False"
            yield from ((each, idle) for each in values if not isinstance(each, ast.Constant))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, _inner(operand)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in COUNTED and not _is_text(
            node
        ):
            yield node, f"({_inner(left)} {COUNTED[type(operator)]} {_inner(right)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.IfExp(body=body, orelse=orelse):
            yield node, _inner(body)
            yield node, _inner(orelse)
        case ast.If(test=test) | ast.While(test=test):
            yield test, "False"
            if isinstance(node, ast.If) and not isinstance(test, ast.NamedExpr):
                yield test, "True"
        case (
            ast.Expr(value=ast.Call() | ast.Await()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
        ):
            yield node, "pass"
        case ast.AugAssign(target=target, op=operator, value=value) if type(operator) in COUNTED:
            yield node, f"{ast.unparse(target)} {COUNTED[type(operator)]}= {ast.unparse(value)}"
        case ast.Continue():
            yield node, "break"
        case ast.Break():
            yield node, "pass"
        case ast.Await(value=value):
            yield node, _inner(value)
        case ast.Call(args=[ast.expr() as one, ast.expr() as two, *_]) if _is_ordered(node):
            yield node, ast.unparse(ast.Call(node.func, [two, one, *node.args[2:]], node.keywords))
        case _:
            pass
    match node:
        case ast.Call(keywords=[*_, ast.keyword(arg=str())]):
            yield node, ast.unparse(ast.Call(node.func, node.args, node.keywords[:-1]))
        case ast.Try(finalbody=[*left]):
            yield from ((each, "pass") for each in left if not isinstance(each, ast.Expr))
        case _:
            pass


def _inner(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _is_ordered(call: ast.Call) -> bool:
    """Whether the first two arguments mean something else the other way round."""
    return ast.unparse(call.func) not in ("min", "max") and not any(
        isinstance(each, ast.Starred) for each in call.args[:2]
    )


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(each, ast.JoinedStr) or isinstance(getattr(each, "value", None), str)
        for each in (node.left, node.right)
    )


def _is_logging(node: ast.Expr) -> bool:
    """A call that only reports, or one of a parent's constructor."""
    return ast.unparse(node.value).partition("(")[0].partition(".")[0] in LOGGED
