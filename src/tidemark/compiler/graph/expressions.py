"""The expression language: Spark SQL scalar expressions, checked before anything runs.

`check` and `check_aggregate` are the whole interface. Their SQL is written from trees that were understood down to the
last node, so nothing unchecked reaches Spark. Types are Spark's with ANSI mode off: overflow wraps, division by zero
and impossible casts give null.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.compiler.graph.aggregates import AGGREGATES_BY_NAME, LATER_AGGREGATES, Aggregate, Constant
from tidemark.compiler.graph.expression.checker import Checker
from tidemark.compiler.graph.expression.names import Names, near_name
from tidemark.compiler.graph.expression.parser import parse
from tidemark.compiler.graph.expression.result import Checked, ExpressionProblem, Scope
from tidemark.compiler.graph.expression.tree import Call, Literal, Node
from tidemark.compiler.graph.expression.type_rules import contains
from tidemark.compiler.graph.functions import FUNCTIONS_BY_NAME, OTHER_AGGREGATES
from tidemark.schema import Type

__all__ = ["Checked", "CheckedAggregate", "ExpressionProblem", "Scope", "check", "check_aggregate"]


@dataclass(frozen=True)
class CheckedAggregate:
    """One aggregate call: row expressions, then the constants after them, defaults filled in."""

    function: str
    arguments: tuple[Checked, ...]
    parameters: tuple[int | float, ...]
    type: Type


def check(text: str, scope: Scope, *, replayable: bool = True) -> Checked:
    """One expression over the columns of a row. `replayable` refuses what a replay would compute differently."""
    return _typed(Checker(Names(scope), replayable=replayable), parse(text))


def check_aggregate(text: str, scope: Scope) -> CheckedAggregate:
    """Exactly one call of an aggregate; its arguments are row expressions."""
    tree = parse(text)
    if not isinstance(tree, Call):
        raise ExpressionProblem(
            "aggregate_expected",
            "exactly one aggregate is needed here, as in sum(amount)",
            tree.offset,
            "compute with the result in a map behind it",
        )
    aggregate = _find_aggregate(tree)
    values, constants = _split(tree, aggregate)
    checker = Checker(Names(scope), replayable=True)
    arguments = tuple(_argument(tree, aggregate, place, checker, value) for place, value in enumerate(values))
    parameters = tuple(_parameter(tree, constant, node) for constant, node in constants)
    types = [argument.type for argument in arguments]
    return CheckedAggregate(aggregate.name, arguments, parameters, aggregate.result(types))


def _typed(checker: Checker, node: Node) -> Checked:
    checked = checker.check(node)
    if contains(checked.type, "null"):
        raise ExpressionProblem(
            "bad_argument", "the type of null is not known", node.offset, "write cast(null as string)"
        )
    if contains(checked.type, "interval"):
        raise ExpressionProblem("bad_argument", "an interval is not a value", node.offset, "add it to a timestamp")
    return checked


def _find_aggregate(call: Call) -> Aggregate:
    name = call.name.lower()
    if name in AGGREGATES_BY_NAME:
        return AGGREGATES_BY_NAME[name]
    if name in LATER_AGGREGATES:
        raise ExpressionProblem("not_available", f"{name} is not available yet", call.offset)
    near = near_name(name, AGGREGATES_BY_NAME)
    known = f"{f'did you mean {near}? ' if near else ''}the aggregates are {', '.join(AGGREGATES_BY_NAME)}"
    if name in FUNCTIONS_BY_NAME or name in OTHER_AGGREGATES:
        code, message = "aggregate_expected", f"{call.name} is not one of the aggregates"
    else:
        code, message = "unknown_function", f"there is no aggregate {call.name}"
    raise ExpressionProblem(code, message, call.offset, known)


def _split(call: Call, aggregate: Aggregate) -> tuple[tuple[Node, ...], list[tuple[Constant, Node | None]]]:
    """The nodes of the arguments, and each constant with its node or None when it is left out."""
    given, places = len(call.arguments), len(aggregate.arguments)
    needed = places - aggregate.optional + sum(constant.default is None for constant in aggregate.parameters)
    if not needed <= given <= places + len(aggregate.parameters):
        raise ExpressionProblem(
            "bad_argument",
            f"{aggregate.name} does not take {given} arguments",
            call.offset,
            f"as in {aggregate.example}",
        )
    nodes = (*call.arguments[places:], *([None] * len(aggregate.parameters)))
    return call.arguments[:places], list(zip(aggregate.parameters, nodes, strict=False))


def _argument(call: Call, aggregate: Aggregate, place: int, checker: Checker, node: Node) -> Checked:
    checked, rule = _typed(checker, node), aggregate.arguments[place]
    if not rule.accepts(checked.type):
        raise ExpressionProblem(
            "bad_argument",
            f"argument {place + 1} of {aggregate.name} must be {rule.label}, not {checked.type}",
            node.offset,
            f"as in {aggregate.example}",
        )
    return checked


def _parameter(call: Call, constant: Constant, node: Node | None) -> int | float:
    if node is None:
        assert constant.default is not None, "a constant without a default is counted as needed"
        return constant.default
    value = node.value if isinstance(node, Literal) and node.type.numeric else None
    number = value if isinstance(value, int) else float(str(value)) if value is not None else None
    if number is None or isinstance(value, bool) or not constant.allows(number):
        raise ExpressionProblem(
            "bad_argument", f"{constant.label} is needed here", node.offset, "write the number itself, not a column"
        )
    return number
