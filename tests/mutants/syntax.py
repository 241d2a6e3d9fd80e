"""The syntax that the weaver and the drawer need: blocks, statements, functions of C++; trees of Python.
SPDX-License-Identifier: Apache-2.0"""
import tree_sitter
import tree_sitter_cpp
import tree_sitter_python

_cpp = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
_python = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))


def parse(data):
    return _cpp.parse(data).root_node


def parse_python(data):
    return _python.parse(data).root_node


def ancestors(node):
    """The node and those around it, the innermost first."""
    while node is not None:
        yield node
        node = node.parent


def is_block(node):
    """Whether the node is a block that may be repeated: not that of a switch, whose labels would be duplicate."""
    return node.type == "compound_statement" and node.parent is not None and node.parent.type != "switch_statement"


def block_around(root, begin, end):
    """The innermost block with [begin, end) between its braces; None outside of functions."""
    for node in ancestors(root.descendant_for_byte_range(begin, end)):
        if is_block(node) and node.start_byte < begin and end < node.end_byte:
            return node
    return None


def is_statement(node):
    """Whether another statement may be put before it."""
    parent = node.parent
    if parent is None or not node.is_named or node.type in ("comment", "case_statement", "else_clause"):
        return False
    if is_block(parent):
        return True
    return parent.type == "case_statement" and parent.child_by_field_name("value") != node


def statement_around(root, begin, end):
    """The innermost statement in a block that contains [begin, end); None if there is none."""
    found = root.descendant_for_byte_range(begin, max(end, begin + 1))
    for node in ancestors(found):
        if is_statement(node):
            return node
        if is_block(node):
            return None
    return None


def walk(node):
    """The node and all within it, in the order of the text."""
    yield node
    for child in node.children:
        yield from walk(child)
