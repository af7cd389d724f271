"""Calls of scalar functions: which function is meant, whether the arguments fit, and the SQL of the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidemark.compiler.graph.aggregates import AGGREGATES_BY_NAME, LATER_AGGREGATES
from tidemark.compiler.graph.expression.function_rules import Function, Parameter
from tidemark.compiler.graph.expression.names import near_name
from tidemark.compiler.graph.expression.operator_rules import cast, joined
from tidemark.compiler.graph.expression.result import Checked, ExpressionProblem, Refusal
from tidemark.compiler.graph.expression.tree import Call, Lambda, Name, Node
from tidemark.compiler.graph.functions import (
    FUNCTIONS_BY_NAME,
    ONE_ROW_TO_MANY,
    OTHER_AGGREGATES,
    RUNS_CODE,
    UNREPEATABLE_NAMES,
    WINDOW_NAMES,
)
from tidemark.schema import DATE, NULL, TIMESTAMP, Type

CheckNode = Callable[[Node], Checked]
CheckLambda = Callable[[Lambda, Sequence[Type]], Checked]


def find_function(name: str, *, replayable: bool) -> Function:
    """The function of the allow-list; a Refusal says why another name is none."""
    known = name.lower()
    function = FUNCTIONS_BY_NAME.get(known)
    if known in UNREPEATABLE_NAMES or (function and replayable and not function.deterministic):
        raise unrepeatable(name)
    if function is not None:
        return function
    if known in AGGREGATES_BY_NAME or known in LATER_AGGREGATES or known in OTHER_AGGREGATES:
        raise Refusal(
            f"{name} is an aggregate and not allowed here",
            "use it in a window or aggregate operator",
            code="aggregate_not_allowed",
        )
    raise _refused(name, known)


def unrepeatable(name: str) -> Refusal:
    return Refusal(
        f"{name} is not allowed because a replay would give another result",
        "use _ingestion_time, _event_time or _event_id, which stay the same",
        code="non_deterministic",
    )


def _refused(name: str, known: str) -> Refusal:
    if known in RUNS_CODE:
        return Refusal(f"{name} is not allowed: it runs code", None, code="function_not_allowed")
    if known in ONE_ROW_TO_MANY:
        return Refusal(
            f"{name} is not allowed: it makes several rows of one", "use flat_map", code="function_not_allowed"
        )
    if known in WINDOW_NAMES:
        return Refusal(
            f"{name} is not allowed: it looks at other rows", "use a window operator", code="function_not_allowed"
        )
    near = near_name(name, FUNCTIONS_BY_NAME)
    return Refusal(f"there is no function {name}", f"did you mean {near}?" if near else None, code="unknown_function")


def check_call(call: Call, function: Function, check: CheckNode, check_lambda: CheckLambda) -> Checked:
    """Checks each argument in order, since a lambda's types come from those before it. Raises with the offset."""
    places = _places(call, function)
    arguments: list[Checked] = []
    for node, parameter in zip(call.arguments, places, strict=True):
        arguments.append(_argument(call, node, parameter, arguments, check, check_lambda))
    type_ = function.type_of(arguments)
    texts = [argument.sql for argument in arguments]
    sql = function.sql.format(*texts) if function.sql else f"{function.name}({', '.join(texts)})"
    return joined(sql, type_, *arguments)


def _places(call: Call, function: Function) -> tuple[Parameter, ...]:
    parameters, given = function.parameters, len(call.arguments)
    least = sum(not parameter.optional for parameter in parameters)
    repeated = bool(parameters) and parameters[-1].repeated
    if given < least or (given > len(parameters) and not repeated):
        most = "or more" if repeated else f"to {len(parameters)}" if len(parameters) > least else ""
        count = f"{least} {most}".strip()
        raise Refusal(
            f"{function.name} takes {count} argument{'' if count == '1' else 's'}, not {given}",
            f"as in {function.example}",
        )
    return parameters[:given] if not repeated else (*parameters, *(parameters[-1:] * (given - len(parameters))))


def _argument(
    call: Call, node: Node, parameter: Parameter, before: Sequence[Checked], check: CheckNode, check_lambda: CheckLambda
) -> Checked:
    if parameter.words:
        return _word(call, node, parameter)
    if (parameter.binds is not None) != isinstance(node, Lambda):
        raise _misfit(call, node, parameter, "a lambda" if isinstance(node, Lambda) else "a value")
    if parameter.binds is not None and isinstance(node, Lambda):
        types = parameter.binds(before)
        if not parameter.least_names <= len(node.parameters) <= len(types):
            raise _misfit(call, node, parameter, f"one with {len(node.parameters)} names")
        found = check_lambda(node, types)
    else:
        found = check(node)
    if not parameter.accepts(found.type):
        raise _misfit(call, node, parameter, str(found.type))
    if parameter.as_moment and found.type == DATE:
        return cast(found, TIMESTAMP, attempt=True)
    if parameter.constant is not None and (found.literal is None or not parameter.constant(found.literal)):
        raise _misfit(call, node, parameter, found.sql if found.literal is not None else "a computed value")
    return found


def _word(call: Call, node: Node, parameter: Parameter) -> Checked:
    words = dict(parameter.words)
    name = node.name.upper().removesuffix("S") if isinstance(node, Name) else ""
    if name not in words:
        raise _misfit(call, node, parameter, node.name if isinstance(node, Name) else "a value")
    return Checked(words[name], NULL)


def _misfit(call: Call, node: Node, parameter: Parameter, given: str) -> ExpressionProblem:
    place = call.arguments.index(node) + 1
    example = FUNCTIONS_BY_NAME[call.name.lower()].example
    return ExpressionProblem(
        "bad_argument",
        f"argument {place} of {call.name} must be {parameter.label}, not {given}",
        node.offset,
        f"as in {example}; cast(x as …) changes a type",
    )
