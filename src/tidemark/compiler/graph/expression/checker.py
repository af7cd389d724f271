"""From tree to checked Spark SQL: looks up names, infers types, and writes SQL from the nodes it understood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidemark.compiler.graph.expression import operator_rules as operators
from tidemark.compiler.graph.expression import tree
from tidemark.compiler.graph.expression.calls import check_call, find_function, unrepeatable
from tidemark.compiler.graph.expression.function_rules import DAY, common
from tidemark.compiler.graph.expression.literals import column_sql, literal_sql, quoted
from tidemark.compiler.graph.expression.names import Names
from tidemark.compiler.graph.expression.operator_rules import joined
from tidemark.compiler.graph.expression.result import Checked, ExpressionProblem, Refusal
from tidemark.compiler.graph.functions import FUNCTIONS_BY_NAME, UNREPEATABLE_NAMES
from tidemark.schema import BOOLEAN, DATE, INT, STRING, TIMESTAMP, Type, decimal, struct_of

MAX_DEPTH = 150
EXTRACTED = {
    **dict.fromkeys(("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DOW", "DOY", "HOUR", "MINUTE"), INT),
    "SECOND": decimal(8, 6),
}
CLOCK_FIELDS = ("HOUR", "MINUTE", "SECOND")


class Checker:
    def __init__(self, names: Names, *, replayable: bool, depth: int = 0) -> None:
        self.names = names
        self.replayable = replayable
        self.depth = depth

    def check(self, node: tree.Node) -> Checked:
        """The node as Spark SQL; raises ExpressionProblem at the offset of what does not fit."""
        if self.depth == MAX_DEPTH:
            raise ExpressionProblem(
                "expression_too_deep",
                f"more than {MAX_DEPTH} operators depend on each other",
                node.offset,
                "split it with map",
            )
        self.depth += 1
        try:
            return CHECKS[type(node)](self, node)
        except Refusal as refusal:
            raise ExpressionProblem(refusal.code, refusal.message, node.offset, refusal.hint) from refusal
        finally:
            self.depth -= 1

    def each(self, nodes: Sequence[tree.Node]) -> list[Checked]:
        return [self.check(node) for node in nodes]

    def literal(self, node: tree.Literal) -> Checked:
        return Checked(literal_sql(node), node.type, literal=node.value)

    def interval(self, node: tree.Interval) -> Checked:
        return operators.interval_of(node.months, node.microseconds)

    def name(self, node: tree.Name) -> Checked:
        found = self.names.find(node.name)
        if found is not None:
            return found
        function = FUNCTIONS_BY_NAME.get(node.name.lower())
        if function and not function.deterministic and not function.parameters and not self.replayable:
            return Checked(f"{function.name}()", function.type_of(()))
        if node.name.lower() in UNREPEATABLE_NAMES or (function and not function.deterministic):
            raise unrepeatable(node.name)
        raise self.names.unknown(node.name)

    def field(self, node: tree.Field) -> Checked:
        return operators.field(self.check(node.base), node.name)

    def subscript(self, node: tree.Subscript) -> Checked:
        return operators.subscript(self.check(node.base), self.check(node.index))

    def call(self, node: tree.Call) -> Checked:
        if node.name.lower() == "struct":
            return self.struct(node)
        return check_call(node, find_function(node.name, replayable=self.replayable), self.check, self.lambda_body)

    def lambda_body(self, node: tree.Lambda, types: Sequence[Type]) -> Checked:
        own = {name.lower() for name in node.parameters}
        if len(own) < len(node.parameters) or any("${" in name for name in node.parameters):
            raise ExpressionProblem("bad_argument", "the names of a lambda must differ", node.offset)
        inner = Checker(
            self.names.inside(zip(node.parameters, types, strict=False)), replayable=self.replayable, depth=self.depth
        )
        body = inner.check(node.body)
        names = ", ".join(column_sql(name) for name in node.parameters)
        left = f"({names})" if len(node.parameters) > 1 else names
        return Checked(f"{left} -> {body.sql}", body.type, body.columns - own)

    def misplaced(self, node: tree.Node) -> Checked:
        raise Refusal(
            "a lambda or a name with AS stands only inside a call that takes one", code="expression_not_allowed"
        )

    def struct(self, node: tree.Call) -> Checked:
        values = [argument.value if isinstance(argument, tree.Aliased) else argument for argument in node.arguments]
        names = [_field_name(argument, place) for place, argument in enumerate(node.arguments, 1)]
        if not names or len({name.lower() for name in names}) < len(names):
            raise Refusal("a struct has at least one field, each with its own name", "as in struct(n as id, name)")
        checked = self.each(values)
        sql = ", ".join(f"{quoted(name)}, {value.sql}" for name, value in zip(names, checked, strict=True))
        type_ = struct_of(*((name, value.type) for name, value in zip(names, checked, strict=True)))
        return joined(f"named_struct({sql})", type_, *checked)

    def extract(self, node: tree.Extract) -> Checked:
        operand = self.check(node.operand)
        if node.field not in EXTRACTED:
            raise Refusal(f"{node.field.lower()} cannot be extracted", f"parts are {', '.join(EXTRACTED).lower()}")
        if not DAY.accepts(operand.type):
            raise Refusal(f"extract reads {DAY.label}, not {operand.type}")
        if operand.type == DATE and node.field in CLOCK_FIELDS:
            operand = operators.cast(operand, TIMESTAMP, attempt=True)
        return joined(f"EXTRACT({node.field} FROM {operand.sql})", EXTRACTED[node.field], operand)

    def cast(self, node: tree.Cast) -> Checked:
        return operators.cast(self.check(node.operand), node.type, attempt=node.attempt)

    def case(self, node: tree.Case) -> Checked:
        operand = self.check(node.operand) if node.operand else None
        tests = [self.case_test(operand, condition) for condition, _ in node.branches]
        results = self.each([result for _, result in node.branches])
        otherwise = [self.check(node.otherwise)] if node.otherwise else []
        branches = " ".join(f"WHEN {test.sql} THEN {result.sql}" for test, result in zip(tests, results, strict=True))
        last = f" ELSE {otherwise[0].sql}" if otherwise else ""
        return joined(f"CASE {branches}{last} END", common([*results, *otherwise]), *tests, *results, *otherwise)

    def case_test(self, operand: Checked | None, test: tree.Node) -> Checked:
        checked = self.check(test)
        return operators.condition(checked, "WHEN") if operand is None else operators.comparison("=", operand, checked)

    def unary(self, node: tree.Unary) -> Checked:
        return operators.unary(node.operator, self.check(node.operand))

    def binary(self, node: tree.Binary) -> Checked:
        return operators.binary(node.operator, self.check(node.left), self.check(node.right))

    def logical(self, node: tree.Logical) -> Checked:
        operands = [operators.condition(operand, node.operator) for operand in self.each(node.operands)]
        return joined(f"({f' {node.operator} '.join(operand.sql for operand in operands)})", BOOLEAN, *operands)

    def contained(self, node: tree.In) -> Checked:
        operand = self.check(node.operand)
        options = [operators.comparable(operand, option)[1] for option in self.each(node.options)]
        common([operand, *options])
        return joined(f"({operand.sql} IN ({', '.join(option.sql for option in options)}))", BOOLEAN, operand, *options)

    def between(self, node: tree.Between) -> Checked:
        operand, low, high = self.each((node.operand, node.low, node.high))
        _, low = operators.comparable(operand, low)
        _, high = operators.comparable(operand, high)
        return joined(f"({operand.sql} BETWEEN {low.sql} AND {high.sql})", BOOLEAN, operand, low, high)

    def match(self, node: tree.Match) -> Checked:
        operand, pattern = self.check(node.operand), self.check(node.pattern)
        if operand.type != STRING or not isinstance(pattern.literal, str) or pattern.type != STRING:
            raise Refusal(f"{node.operator} takes text and a pattern in quotes", "contains(text, part) takes any text")
        escape = node.escape or "\\"
        if node.operator != "RLIKE" and _escapes_nothing(pattern.literal, escape):
            raise Refusal(f"{escape} in a pattern is followed by %, _ or {escape}", "write it twice to match itself")
        suffix = f" ESCAPE {quoted(escape)}" if node.escape else ""
        return joined(f"({operand.sql} {node.operator} {pattern.sql}{suffix})", BOOLEAN, operand)

    def state(self, node: tree.Is) -> Checked:
        operand = self.check(node.operand)
        if node.state != "NULL":
            operators.condition(operand, f"IS {node.state}")
        return joined(f"({operand.sql} IS {node.state})", BOOLEAN, operand)


CHECKS: dict[type[tree.Node], Callable[[Checker, Any], Checked]] = {
    tree.Literal: Checker.literal,
    tree.Interval: Checker.interval,
    tree.Name: Checker.name,
    tree.Field: Checker.field,
    tree.Subscript: Checker.subscript,
    tree.Aliased: Checker.misplaced,
    tree.Lambda: Checker.misplaced,
    tree.Call: Checker.call,
    tree.Extract: Checker.extract,
    tree.Cast: Checker.cast,
    tree.Case: Checker.case,
    tree.Unary: Checker.unary,
    tree.Binary: Checker.binary,
    tree.Logical: Checker.logical,
    tree.In: Checker.contained,
    tree.Between: Checker.between,
    tree.Match: Checker.match,
    tree.Is: Checker.state,
}


def _field_name(argument: tree.Node, place: int) -> str:
    return argument.name if isinstance(argument, tree.Aliased | tree.Name | tree.Field) else f"col{place}"


def _escapes_nothing(pattern: str, escape: str) -> bool:
    position = 0
    while position < len(pattern):
        if pattern[position] == escape:
            position += 1
            if position == len(pattern) or pattern[position] not in ("%", "_", escape):
                return True
        position += 1
    return False
