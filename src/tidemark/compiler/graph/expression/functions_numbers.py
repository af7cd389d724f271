"""Functions of numbers, and those that choose between values."""

from __future__ import annotations

from tidemark.compiler.graph.expression.function_rules import (
    ANY,
    COMPARABLE,
    CONDITION,
    FLOATING,
    INTEGER,
    NUMBER,
    PLACES,
    WHOLE,
    Function,
    common,
    common_from,
    compared,
    many,
    operated,
    optional,
    rounded,
    same_as,
    whole_number,
)
from tidemark.schema import BOOLEAN, DOUBLE, INT, LONG, STRING

NUMBER_FUNCTIONS: tuple[Function, ...] = (
    Function("abs", (NUMBER,), same_as(0), "without its sign", "abs(amount)"),
    Function("acos", (NUMBER,), DOUBLE, "arc cosine", "acos(amount)"),
    Function("asin", (NUMBER,), DOUBLE, "arc sine", "asin(amount)"),
    Function("atan", (NUMBER,), DOUBLE, "arc tangent", "atan(amount)"),
    Function("atan2", (NUMBER, NUMBER), DOUBLE, "angle of a point (y, x)", "atan2(amount, n)"),
    Function("bin", (WHOLE,), STRING, "as binary digits", "bin(big)"),
    Function("bit_count", (WHOLE,), INT, "number of bits that are set", "bit_count(big)"),
    Function("bround", (NUMBER, optional(PLACES)), rounded, "rounded, half to even", "bround(price, 1)"),
    Function("cbrt", (NUMBER,), DOUBLE, "cube root", "cbrt(amount)"),
    Function("ceil", (NUMBER,), whole_number, "next whole number above", "ceil(amount)"),
    Function("cos", (NUMBER,), DOUBLE, "cosine", "cos(amount)"),
    Function("cosh", (NUMBER,), DOUBLE, "hyperbolic cosine", "cosh(amount)"),
    Function("degrees", (NUMBER,), DOUBLE, "radians as degrees", "degrees(amount)"),
    Function("exp", (NUMBER,), DOUBLE, "e to this power", "exp(amount)"),
    Function("expm1", (NUMBER,), DOUBLE, "exp(x) - 1, exact near 0", "expm1(amount)"),
    Function("factorial", (INTEGER,), LONG, "factorial of 0 to 20, else null", "factorial(n)"),
    Function("floor", (NUMBER,), whole_number, "next whole number below", "floor(price)"),
    Function("hypot", (NUMBER, NUMBER), DOUBLE, "sqrt(a² + b²)", "hypot(amount, n)"),
    Function("ln", (NUMBER,), DOUBLE, "natural logarithm; null up to 0", "ln(amount)"),
    Function(
        "log", (NUMBER, optional(NUMBER)), DOUBLE, "logarithm: of x, or of x to a base: log(base, x)", "log(2, amount)"
    ),
    Function("log10", (NUMBER,), DOUBLE, "logarithm to base 10", "log10(amount)"),
    Function("log1p", (NUMBER,), DOUBLE, "ln(1 + x), exact near 0", "log1p(amount)"),
    Function("log2", (NUMBER,), DOUBLE, "logarithm to base 2", "log2(amount)"),
    Function(
        "mod", (NUMBER, NUMBER), operated("%"), "remainder, with the sign of the first; null for 0", "mod(price, 7)"
    ),
    Function("negative", (NUMBER,), same_as(0), "with the other sign", "negative(big)"),
    Function("pmod", (NUMBER, NUMBER), operated("%"), "remainder that is not negative; null for 0", "pmod(n, big)"),
    Function("pow", (NUMBER, NUMBER), DOUBLE, "to the power of", "pow(amount, 2)"),
    Function("power", (NUMBER, NUMBER), DOUBLE, "to the power of", "power(n, amount)"),
    Function("radians", (NUMBER,), DOUBLE, "degrees as radians", "radians(amount)"),
    Function("rint", (NUMBER,), DOUBLE, "rounded to a whole number, half to even", "rint(amount)"),
    Function("round", (NUMBER, optional(PLACES)), rounded, "rounded, half away from 0", "round(price, 1)"),
    Function("shiftleft", (WHOLE, INTEGER), same_as(0), "bits moved left", "shiftleft(big, 3)"),
    Function("shiftright", (WHOLE, INTEGER), same_as(0), "bits moved right", "shiftright(n, 3)"),
    Function("sign", (NUMBER,), DOUBLE, "-1, 0 or 1", "sign(amount)"),
    Function("sin", (NUMBER,), DOUBLE, "sine", "sin(amount)"),
    Function("sinh", (NUMBER,), DOUBLE, "hyperbolic sine", "sinh(amount)"),
    Function("sqrt", (NUMBER,), DOUBLE, "square root", "sqrt(amount)"),
    Function("tan", (NUMBER,), DOUBLE, "tangent", "tan(amount)"),
    Function("tanh", (NUMBER,), DOUBLE, "hyperbolic tangent", "tanh(amount)"),
)

CHOICE_FUNCTIONS: tuple[Function, ...] = (
    Function("coalesce", (many(ANY),), common, "the first that is not null", "coalesce(name, 'none')"),
    Function("greatest", (COMPARABLE, many(COMPARABLE)), common, "the largest; nulls left out", "greatest(n, big)"),
    Function("if", (CONDITION, ANY, ANY), common_from(1), "one value or the other", "if(flag, n, big)"),
    Function("ifnull", (ANY, ANY), common, "the second when the first is null", "ifnull(n, 0)"),
    Function("isnan", (FLOATING,), BOOLEAN, "whether it is not a number", "isnan(amount)"),
    Function("isnotnull", (ANY,), BOOLEAN, "whether there is a value", "isnotnull(name)"),
    Function("isnull", (ANY,), BOOLEAN, "whether there is no value", "isnull(name)"),
    Function("least", (COMPARABLE, many(COMPARABLE)), common, "the smallest; nulls left out", "least(price, n)"),
    Function("nanvl", (FLOATING, FLOATING), common, "the second when the first is not a number", "nanvl(amount, 0D)"),
    Function("nullif", (COMPARABLE, COMPARABLE), compared(same_as(0)), "null when both are equal", "nullif(n, 0)"),
    Function("nvl", (ANY, ANY), common, "the second when the first is null", "nvl(name, '')"),
    Function(
        "nvl2",
        (ANY, ANY, ANY),
        common_from(1),
        "the second when the first is not null, else the third",
        "nvl2(name, n, 0)",
    ),
)
