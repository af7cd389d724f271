"""Functions of arrays, maps and structs."""

from __future__ import annotations

from tidemark.compiler.graph.expression.function_rules import (
    ANY,
    ARRAY,
    COMPARABLE,
    CONDITION,
    COUNT,
    INTEGER,
    MAP,
    POSITION,
    TEXT,
    TEXTS,
    Arguments,
    Function,
    Parameter,
    ResultRule,
    array_of_common,
    common,
    constant,
    fits_items,
    function_of,
    item_of,
    many,
    optional,
    same_as,
)
from tidemark.compiler.graph.expression.result import Refusal
from tidemark.compiler.graph.expression.type_rules import common_type, orderable
from tidemark.schema import BOOLEAN, INT, LONG, NULL, STRING, Type, array_of, map_of, struct_of

ORDERABLE_ARRAY = Parameter(
    "an array of values that can be compared", lambda type_: type_.name == "array" and orderable(type_)
)
NESTED_ARRAY = Parameter("an array of arrays", lambda type_: type_.name == "array" and type_.items[0].name == "array")
COLLECTION = Parameter("an array or map", lambda type_: type_.name in ("array", "map"))
REVERSIBLE = Parameter("text or an array", lambda type_: type_ in (STRING, NULL) or type_.name == "array")
ASCENDING = constant(CONDITION, "true or false")


def _item(arguments: Arguments) -> tuple[Type, ...]:
    return (arguments[0].type.items[0],)


def _item_and_place(arguments: Arguments) -> tuple[Type, ...]:
    return (arguments[0].type.items[0], INT)


def _entry(arguments: Arguments) -> tuple[Type, ...]:
    return arguments[0].type.items


def _both_items(arguments: Arguments) -> tuple[Type, ...]:
    return (arguments[0].type.items[0], arguments[1].type.items[0])


def _running_and_item(arguments: Arguments) -> tuple[Type, ...]:
    return (arguments[1].type, arguments[0].type.items[0])


EACH = function_of("a function such as x -> …", _item_and_place)
TEST = function_of("a test such as x -> x > 0", _item)
TEST_WITH_PLACE = function_of("a test such as x -> x > 0", _item_and_place)
ENTRY = function_of("a function such as (k, v) -> …", _entry, least=2)
PAIR = function_of("a function such as (x, y) -> …", _both_items, least=2)
MERGE = function_of("a function such as (sum, x) -> …", _running_and_item, least=2)


def _test(result: ResultRule | Type) -> ResultRule:
    """The last argument is a lambda that gives a condition."""

    def rule(arguments: Arguments) -> Type:
        if arguments[-1].type != BOOLEAN:
            raise Refusal(f"the test gives {arguments[-1].type}, not a condition", "as in x -> x > 0")
        return result if isinstance(result, Type) else result(arguments)

    return rule


def _reduced(arguments: Arguments) -> Type:
    start, merged = arguments[1].type, arguments[2].type
    if start != merged:
        raise Refusal(
            f"the start value is {start}, but the function gives {merged}", f"cast the start value to {merged}"
        )
    return merged


def _element(arguments: Arguments) -> Type:
    collection, key = arguments
    if collection.type.name == "map":
        return _value_by_key(arguments)
    if key.type != INT or not key.literal:
        raise Refusal(
            "the position in an array is a constant from 1, or from -1 at its end", "tags[i] takes any i, from 0"
        )
    return collection.type.items[0]


def _value_by_key(arguments: Arguments) -> Type:
    _fits_key(arguments)
    return arguments[0].type.items[1]


def _has_key(arguments: Arguments) -> Type:
    _fits_key(arguments)
    return BOOLEAN


def _fits_key(arguments: Arguments) -> None:
    expected, given = arguments[0].type.items[0], arguments[1].type
    if given == NULL or common_type(expected, given) != expected:
        raise Refusal(f"the keys of the map are {expected}, not {given}", f"cast the key to {expected}")


def _map(arguments: Arguments) -> Type:
    keys = arguments[::2]
    if len(arguments) % 2:
        raise Refusal("map takes pairs of a key and a value")
    if any(key.literal is None for key in keys) or len({key.literal for key in keys}) < len(keys):
        raise Refusal("the keys of a map are constants, each used once", "use struct or an array for computed keys")
    return map_of(common(keys), common(arguments[1::2]))


def _named_struct(arguments: Arguments) -> Type:
    names = [argument.literal for argument in arguments[::2]]
    if len(arguments) % 2 or not all(isinstance(name, str) and name for name in names):
        raise Refusal("named_struct takes pairs of a name in quotes and a value", "as in named_struct('x', n)")
    if len({str(name).lower() for name in names}) < len(names):
        raise Refusal("two fields of the struct have the same name")
    return struct_of(*((str(name), value.type) for name, value in zip(names, arguments[1::2], strict=True)))


def _entries(arguments: Arguments) -> Type:
    key, value = arguments[0].type.items
    return array_of(struct_of(("key", key), ("value", value)))


def _array_of_result(arguments: Arguments) -> Type:
    return array_of(arguments[-1].type)


def _map_of_result(arguments: Arguments) -> Type:
    return map_of(arguments[0].type.items[0], arguments[1].type)


def _array_of_keys(arguments: Arguments) -> Type:
    return array_of(arguments[0].type.items[0])


def _array_of_values(arguments: Arguments) -> Type:
    return array_of(arguments[0].type.items[1])


def _overlap(arguments: Arguments) -> Type:
    common(arguments)
    return BOOLEAN


COLLECTION_FUNCTIONS: tuple[Function, ...] = (
    Function(
        "aggregate",
        (ARRAY, ANY, MERGE),
        _reduced,
        "items folded into one value",
        "aggregate(scores, 0, (s, x) -> s + x)",
    ),
    Function("array", (many(ANY),), array_of_common, "an array of these", "array(n, big)"),
    Function(
        "array_append", (ARRAY, ANY), fits_items(same_as(0)), "with one more at the end", "array_append(tags, name)"
    ),
    Function("array_compact", (ARRAY,), same_as(0), "without nulls", "array_compact(tags)"),
    Function(
        "array_contains", (ARRAY, ANY), fits_items(BOOLEAN), "whether it is in the array", "array_contains(tags, 'a')"
    ),
    Function("array_distinct", (ORDERABLE_ARRAY,), same_as(0), "each value once", "array_distinct(tags)"),
    Function(
        "array_except",
        (ORDERABLE_ARRAY, ORDERABLE_ARRAY),
        common,
        "those not in the second",
        "array_except(tags, array('a'))",
    ),
    Function(
        "array_intersect",
        (ORDERABLE_ARRAY, ORDERABLE_ARRAY),
        common,
        "those in both",
        "array_intersect(tags, array('a'))",
    ),
    Function("array_join", (TEXTS, TEXT, optional(TEXT)), STRING, "joined with a separator", "array_join(tags, ',')"),
    Function("array_max", (ORDERABLE_ARRAY,), item_of(0), "the largest item", "array_max(scores)"),
    Function("array_min", (ORDERABLE_ARRAY,), item_of(0), "the smallest item", "array_min(scores)"),
    Function(
        "array_position",
        (ARRAY, ANY),
        fits_items(LONG),
        "place of the first such item, from 1; 0 if none",
        "array_position(tags, 'a')",
    ),
    Function(
        "array_prepend", (ARRAY, ANY), fits_items(same_as(0)), "with one more in front", "array_prepend(tags, name)"
    ),
    Function("array_remove", (ARRAY, ANY), fits_items(same_as(0)), "without such items", "array_remove(tags, 'a')"),
    Function(
        "array_repeat",
        (ANY, COUNT),
        lambda arguments: array_of(arguments[0].type),
        "one value some times",
        "array_repeat(name, 3)",
    ),
    Function("array_size", (ARRAY,), INT, "number of items", "array_size(tags)"),
    Function("array_sort", (ORDERABLE_ARRAY,), same_as(0), "in ascending order, nulls last", "array_sort(scores)"),
    Function(
        "array_union",
        (ORDERABLE_ARRAY, ORDERABLE_ARRAY),
        common,
        "those in either, once",
        "array_union(tags, array('a'))",
    ),
    Function(
        "arrays_overlap",
        (ORDERABLE_ARRAY, ORDERABLE_ARRAY),
        _overlap,
        "whether they share an item",
        "arrays_overlap(tags, array('a'))",
    ),
    Function("cardinality", (COLLECTION,), INT, "number of items; -1 for null", "cardinality(labels)"),
    Function(
        "element_at",
        (COLLECTION, COMPARABLE),
        _element,
        "item at a place from 1, or value of a key",
        "element_at(labels, 'a')",
    ),
    Function("exists", (ARRAY, TEST), _test(BOOLEAN), "whether one item passes", "exists(scores, x -> x > 1)"),
    Function(
        "filter", (ARRAY, TEST_WITH_PLACE), _test(same_as(0)), "the items that pass", "filter(scores, x -> x > 1)"
    ),
    Function("flatten", (NESTED_ARRAY,), item_of(0), "arrays of an array joined", "flatten(grid)"),
    Function("forall", (ARRAY, TEST), _test(BOOLEAN), "whether all items pass", "forall(scores, x -> x > 1)"),
    Function("get", (ARRAY, INTEGER), item_of(0), "item at a place from 0; null outside", "get(tags, n)"),
    Function("map", (many(ANY),), _map, "a map of constant keys to values", "map('a', n, 'b', big)"),
    Function(
        "map_contains_key", (MAP, COMPARABLE), _has_key, "whether the key is there", "map_contains_key(labels, name)"
    ),
    Function("map_entries", (MAP,), _entries, "an array of key and value", "map_entries(labels)"),
    Function(
        "map_filter", (MAP, ENTRY), _test(same_as(0)), "the entries that pass", "map_filter(labels, (k, v) -> v > 'a')"
    ),
    Function("map_keys", (MAP,), _array_of_keys, "the keys", "map_keys(labels)"),
    Function("map_values", (MAP,), _array_of_values, "the values", "map_values(labels)"),
    Function(
        "named_struct", (many(ANY),), _named_struct, "a struct of names and values", "named_struct('x', n, 'y', name)"
    ),
    Function(
        "reduce",
        (ARRAY, ANY, MERGE),
        _reduced,
        "items folded into one value",
        "reduce(tags, '', (s, x) -> concat(s, x))",
    ),
    Function("reverse", (REVERSIBLE,), same_as(0), "in the other direction", "reverse(tags)"),
    Function("size", (COLLECTION,), INT, "number of items; -1 for null", "size(tags)"),
    Function("slice", (ARRAY, POSITION, COUNT), same_as(0), "items from a place, from 1", "slice(tags, 2, 3)"),
    Function(
        "sort_array",
        (ORDERABLE_ARRAY, optional(ASCENDING)),
        same_as(0),
        "sorted, nulls first when ascending",
        "sort_array(tags, false)",
    ),
    Function(
        "transform", (ARRAY, EACH), _array_of_result, "a function of each item", "transform(scores, (x, i) -> x * i)"
    ),
    Function(
        "transform_values",
        (MAP, ENTRY),
        _map_of_result,
        "a function of each value",
        "transform_values(labels, (k, v) -> length(v))",
    ),
    Function(
        "zip_with",
        (ARRAY, ARRAY, PAIR),
        _array_of_result,
        "two arrays joined item by item",
        "zip_with(scores, tags, (x, y) -> concat(y, x))",
    ),
)
