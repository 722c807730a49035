"""Walks and rewrites follow CHILD_FIELDS, in order, at every occurrence."""

from __future__ import annotations

import dataclasses

import pytest
from ir_building import array, kernel, lowered, name, scalar

from tack.ir import nodes as ir
from tack.ir.nodes import CHILD_FIELDS
from tack.ir.positions import Positions
from tack.ir.printer import _WRITERS
from tack.ir.traversal import (
    LIST_ROLES,
    assigned_names,
    children,
    copy_tree,
    read_names,
    statements_of,
    transform_ir,
    walk_ir,
    walk_paths,
)
from tack.ir.verify import verify_ir
from tack.model.dtypes import DType, bool_, i64
from tack.model.errors import IRVerificationError, Position


def constant(value: int) -> ir.IRConstant:
    return ir.IRConstant(value, i64)


def total(*operands: ir.Expression) -> ir.Expression:
    result = operands[0]
    for operand in operands[1:]:
        result = ir.IRBinOp("+", result, operand, i64)
    return result


def kinds() -> list[type[ir.IRNode]]:
    classes = [each for each in vars(ir).values() if isinstance(each, type)]
    return [c for c in classes if issubclass(c, ir.IRNode) and dataclasses.is_dataclass(c)]


def test_every_kind_is_in_the_table_with_fields_that_it_has() -> None:
    assert set(kinds()) == set(CHILD_FIELDS)
    for kind, fields in CHILD_FIELDS.items():
        names = {field.name for field in dataclasses.fields(kind)}
        assert {field for field, _ in fields} <= names
        assert {role for _, role in fields} <= {*LIST_ROLES, "expr", "optional_expr"}


def test_every_kind_is_a_slotted_dataclass_with_plain_attributes() -> None:
    for kind in CHILD_FIELDS:
        assert "__slots__" in vars(kind)
        names = {field.name for field in dataclasses.fields(kind)}
        assert names == set(kind.__slots__)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            object.__new__(kind).another = 1  # type: ignore[attr-defined]


def test_no_field_that_holds_nodes_is_missing_from_the_table() -> None:
    for kind, fields in CHILD_FIELDS.items():
        holders = {
            field.name
            for field in dataclasses.fields(kind)
            if any(word in str(field.type) for word in ("Expression", "Statement", "list[IR"))
        }
        assert holders == {field for field, _ in fields}


def test_walk_is_preorder_in_order_of_evaluation() -> None:
    body = [
        ir.IRIf(name("c"), [ir.IRAssign("x", constant(1))], [ir.IRAssign("y", constant(2))]),
        ir.IRArrayStore("out", [constant(3)], total(constant(4), constant(5))),
    ]
    function = kernel([array("out"), scalar("c")], body)
    paths = [path for path, _ in walk_paths(function)]
    assert paths == [
        "",
        "params[0]",
        "params[1]",
        "body[0]",
        "body[0].extents[0]",
        "body[0].body[0]",
        "body[0].body[0].condition",
        "body[0].body[0].then_body[0]",
        "body[0].body[0].then_body[0].value",
        "body[0].body[0].else_body[0]",
        "body[0].body[0].else_body[0].value",
        "body[0].body[1]",
        "body[0].body[1].indices[0]",
        "body[0].body[1].value",
        "body[0].body[1].value.left",
        "body[0].body[1].value.right",
    ]
    assert [node for _, node in walk_paths(function)] == list(walk_ir(function))


def test_children_name_their_place() -> None:
    load = ir.IRArrayLoad("x", [constant(0), constant(1)])
    assert [path for path, _ in children(load)] == ["indices[0]", "indices[1]"]


def test_types_tables_and_positions_are_no_children() -> None:
    body = [ir.IRLocalArray("b"), ir.IRArrayStore("b", [constant(0)], name("t"))]
    function = kernel(
        [array("x", i64, 3)],
        [ir.IRAssign("t", constant(1), i64), *body],
        locals={"t": i64},
        local_arrays={"b": ir.LocalArray(i64, (2,))},
    )
    function.positions.put(function.body[0], Position("k.py", 3, 4, 5, "    x = 1", "k"))
    assert all(isinstance(node, ir.IRNode) for node in walk_ir(function))
    assert [type(node).__name__ for node in walk_ir(function)] == [
        *("IRFunction", "IRParam", "IRParallelFor", "IRConstant", "IRAssign", "IRConstant"),
        *("IRLocalArray", "IRArrayStore", "IRConstant", "IRName"),
    ]


@dataclasses.dataclass(slots=True, eq=False)
class Between(ir.Expression):
    """A kind that only the table knows."""

    low: ir.Expression
    notes: list[ir.Expression]
    high: ir.Expression | None = None
    dtype: DType | None = None


def test_whoever_follows_children_reads_the_table_only(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = (("low", "expr"), ("high", "optional_expr"))
    monkeypatch.setitem(CHILD_FIELDS, Between, fields)
    tree = Between(constant(1), [constant(2)], dtype=i64)
    assert list(walk_ir(tree)) == [tree, tree.low]
    copied = transform_ir(tree, increment, copy_nodes=True)
    assert isinstance(copied, Between)
    assert (str(copied.low), str(tree.low)) == ("2:i64", "1:i64")
    assert copied.notes[0] is tree.notes[0]
    tree.high = name("q")
    with pytest.raises(IRVerificationError, match="'q' is read before") as caught:
        verify_ir(kernel([], [ir.IRAssign("t", tree, i64)]), "lowered")
    assert caught.value.path == "body[0].body[0].value.high"


def test_a_shared_expression_is_visited_at_each_occurrence() -> None:
    shared = constant(1)
    assert list(walk_ir(total(shared, shared))).count(shared) == 2


class Unregistered(ir.Expression):
    pass


def test_unknown_kinds_are_type_errors() -> None:
    tree = total(constant(1), Unregistered())
    with pytest.raises(TypeError, match="Unregistered"):
        list(walk_ir(tree))
    with pytest.raises(TypeError, match="Unregistered"):
        transform_ir(tree, lambda node: None)


def test_cycles_are_value_errors() -> None:
    tree = ir.IRBinOp("+", constant(1), constant(2))
    tree.right = ir.IRUnaryOp("-", tree)
    with pytest.raises(ValueError, match="cycle"):
        list(walk_ir(tree))
    with pytest.raises(ValueError, match="cycle"):
        transform_ir(tree, lambda node: None)


def test_deep_trees_are_walked_without_recursion() -> None:
    tree = total(*(constant(k) for k in range(5000)))
    assert sum(isinstance(node, ir.IRConstant) for node in walk_ir(tree)) == 5000


def test_transform_rewrites_children_first_and_in_place() -> None:
    tree = total(constant(1), constant(2))
    seen: list[ir.IRNode] = []
    result = transform_ir(tree, seen.append)
    assert result is tree
    assert seen[-1] is tree
    assert [type(node).__name__ for node in seen] == ["IRConstant", "IRConstant", "IRBinOp"]


def test_a_replacement_is_not_visited_again() -> None:
    def grow(node: ir.IRNode) -> ir.IRNode | None:
        return total(constant(1), constant(1)) if isinstance(node, ir.IRConstant) else None

    assert str(transform_ir(constant(1), grow)) == "(1:i64 + 1:i64)"


def test_transform_can_replace_the_root() -> None:
    assert str(transform_ir(constant(1), lambda node: name("n"))) == "n"


def increment(node: ir.IRNode) -> None:
    if isinstance(node, ir.IRConstant):
        node.value += 1


def test_copying_rewrites_each_occurrence_and_leaves_the_original() -> None:
    shared = constant(1)
    tree = total(shared, shared)
    copied = transform_ir(tree, increment, copy_nodes=True)
    assert str(copied) == "(2:i64 + 2:i64)"
    assert str(tree) == "(1:i64 + 1:i64)"
    assert len(set(map(id, walk_ir(copied)))) == 3


def test_in_place_a_shared_node_is_rewritten_once_for_each_occurrence() -> None:
    shared = constant(1)
    assert str(transform_ir(total(shared, shared), increment)) == "(3:i64 + 3:i64)"


def test_a_statement_may_become_several_or_none() -> None:
    body = [ir.IRAssign(each, constant(0)) for each in "abc"]
    function = kernel([], body)

    def rewrite(node: ir.IRNode) -> list[ir.Statement] | None:
        if not isinstance(node, ir.IRAssign) or node.target == "a":
            return None
        return [] if node.target == "b" else [node, ir.IRAssign("d", constant(0))]

    transform_ir(function, rewrite)
    assert list(assigned_names(function)) == ["a", "c", "d"]
    with pytest.raises(TypeError, match="root"):
        transform_ir(constant(1), lambda node: [])


def test_replacements_and_copies_keep_positions() -> None:
    positions = Positions()
    place = Position("k.py", 3, 4, 5, "    x = 1", "k")
    tree = total(positions.put(constant(1), place), constant(2))
    copied = copy_tree(tree, positions)
    assert isinstance(copied, ir.IRBinOp)
    assert positions.get(copied.left) is place
    transform_ir(
        tree,
        lambda node: name("n") if isinstance(node, ir.IRConstant) else None,
        positions=positions,
    )
    assert isinstance(tree, ir.IRBinOp)
    assert positions.get(tree.left) is place


def test_a_rewrite_keeps_what_it_does_not_change() -> None:
    function = kernel([scalar("n")], [ir.IRAssign("t", total(name("n"), constant(2)), i64)])
    place = Position("k.py", 3, 4, 5, "    x = 1", "k")
    for node in walk_ir(function):
        function.positions.put(node, place)
    before = list(walk_ir(function))
    transform_ir(function, lambda node: constant(3) if str(node) == "2:i64" else None)
    after = list(walk_ir(function))
    assert [one is other for one, other in zip(before, after, strict=True)].count(False) == 1
    kept = [node for node in after if node in before]
    assert all(function.positions.get(node) is place for node in kept)
    assert [node.dtype for node in kept if isinstance(node, ir.IRName)] == [i64]


def test_a_copied_function_has_tables_of_its_own() -> None:
    function = kernel([], [ir.IRAssign("a", constant(0))], locals={"a": i64})
    copied = copy_tree(function)
    copied.locals["b"] = i64
    assert list(function.locals) == ["a"]
    assert copied.body[0] is not function.body[0]


def test_names_and_statements_are_listed_in_order() -> None:
    function = lowered(
        """
        total = 0
        for k in range(n):
            if k > 1:
                total += x[k]
        x[i] = total
        """.replace("\n        ", "\n"),
        "x: i64[:], n: i64",
    )
    assert list(assigned_names(function)) == ["total", "k", "total"]
    assert {"n", "k", "total", "i"} <= set(read_names(function))
    assert [type(node).__name__ for node in statements_of(function)] == [
        "IRParallelFor",
        "IRAssign",
        "IRSequentialFor",
        "IRIf",
        "IRAssign",
        "IRArrayStore",
    ]


def test_every_kind_prints_all_that_it_holds() -> None:
    assert set(_WRITERS) == set(CHILD_FIELDS)
    function = lowered(
        """
        b = tack.local_array(tack.i64, 4)
        while n > 3 and not x[i] == 2:
            b[0] = tack.atomic_cas(x, i, 1, -n)
            for k in range(1, n, 2):
                x.flat[k] = min(b[k], 5) if n < x.shape[0] else int(x[0] / 2)
                if k == 4:
                    break
                else:
                    continue
        """.replace("\n        ", "\n"),
        "x: i64[:], n: i64",
    )
    texts = [(str(node), [str(each) for _, each in children(node)]) for node in walk_ir(function)]
    for whole, parts in texts:
        for line in "\n".join(parts).splitlines():
            assert line in whole


def test_printing_is_deterministic_and_has_types() -> None:
    function = lowered("t = x[i] * 2\nif t > n:\n    x[i] = t", "x: u8[:], n: i64")
    assert str(function) == str(copy_tree(function))
    assert str(function).splitlines() == [
        "kernel tests.kernels:kernel(x: u8[:], n: i64):",
        "    parallel for i in ndrange(1):",
        "        t = (x[i] * 2)",
        "        if (t > n):",
        "            x[i] = t",
    ]


def test_workgroups_print_what_they_share_and_wait_for() -> None:
    body = [
        ir.IRAssign("t", ir.IRGroupIndex("thread", 0, i64), i64),
        ir.IRIf(ir.IRActive(bool_), [ir.IRArrayStore("s", [name("t")], constant(1))]),
        ir.IRBarrier(),
        ir.IRAssign("g", ir.IRGroupIndex("group", 0, i64), i64),
        ir.IRAssign("a", ir.IRCall("block_max", [name("t")], i64), i64),
    ]
    shared = {"s": ir.LocalArray(i64, (8,), shared=True)}
    text = str(kernel([], body, workgroup=(8,), local_arrays=shared))
    assert text.startswith("kernel test:kernel() in groups of 8:")
    for line in (
        "shared s: i64[8]",
        "t: i64 = thread_id(0)",
        "if active:",
        "s[t] = 1:i64",
        "barrier",
        "g: i64 = group_id(0)",
        "a: i64 = block_max(t)",
    ):
        assert line in map(str.strip, text.splitlines())
