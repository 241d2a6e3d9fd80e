"""The possible small changes of a source of Python, as candidates.py has them for C++. Left out are messages of errors,
annotations of types, decorators, texts and imports. SPDX-License-Identifier: Apache-2.0"""
import syntax
from candidates import Candidate, of_number, of_operator, swapped

WORDS = {"and": ("&&", "or"), "or": ("||", "and"), "is": ("==", "is not"), "is not": ("!=", "is"),
         "in": ("==", "not in"), "not in": ("!=", "in"), "//": ("/", "*")}
EXTREMES = {b"min": b"max", b"max": b"min"}
OUTSIDE = {"raise_statement", "type", "decorator", "string", "import_statement", "import_from_statement",
           "assert_statement", "future_import_statement"}
SIMPLE = {"call", "assignment", "augmented_assignment"}


def _signs(node):
    """The changes of operators between the operands of the node."""
    if any(child.type == "string" for child in node.named_children):
        return
    for child in node.children:
        if child.is_named:
            continue
        if child.type in WORDS:
            kind, text = WORDS[child.type]
            yield Candidate(kind, child.start_byte, child.end_byte, text.encode())
        else:
            yield from of_operator(child.type, child.start_byte, child.end_byte)


def _negated(node):
    argument = node.child_by_field_name("argument")
    if argument.type not in ("integer", "float"):
        kind = "!" if node.type == "not_operator" else "-"
        if node.children[0].type in ("not", "-"):
            yield Candidate(kind, node.start_byte, argument.start_byte, b"")


def _leaves(block):
    within = [child for child in block.named_children if child.type != "comment"]
    return len(within) == 1 and within[0].type in ("return_statement", "raise_statement", "continue_statement",
                                                   "break_statement")


def _statements(node):
    if node.type == "if_statement":
        if node.child_by_field_name("alternative") is None and _leaves(node.child_by_field_name("consequence")):
            yield Candidate("guard", node.start_byte, node.end_byte, b"pass")
    elif node.type != "expression_statement" or node.named_children[0].type in SIMPLE:
        yield Candidate("drop", node.start_byte, node.end_byte, b"pass")


def _call(node):
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function.text in EXTREMES:
        yield Candidate("min", function.start_byte, function.end_byte, EXTREMES[function.text])
    elif arguments.type == "argument_list":
        plain = [child for child in arguments.named_children if child.type != "comment"]
        named = next((at for at, child in enumerate(plain) if child.type in (
            "keyword_argument", "list_splat", "dictionary_splat")), len(plain))
        yield from swapped(arguments, plain[:named])


def _returns(function):
    """`return None` in place of each statement of the body."""
    for statement in function.child_by_field_name("body").named_children:
        if statement.type in ("comment", "pass_statement") or statement.text in (b"return", b"return None"):
            continue
        if statement.type != "expression_statement" or statement.named_children[0].type != "string":
            yield Candidate("return", statement.start_byte, statement.end_byte, b"return None")


def _of(node):
    if node.type in ("comparison_operator", "boolean_operator", "binary_operator", "augmented_assignment"):
        yield from _signs(node)
    elif node.type in ("not_operator", "unary_operator"):
        yield from _negated(node)
    elif node.type == "integer":
        yield from of_number(node)
    elif node.type in ("true", "false"):
        yield Candidate("constant", node.start_byte, node.end_byte, b"False" if node.type == "true" else b"True")
    elif node.type in ("if_statement", "break_statement", "continue_statement", "expression_statement"):
        yield from _statements(node)
    elif node.type == "call":
        yield from _call(node)
    elif node.type == "conditional_expression":
        yield from swapped(node, [node.named_children[0], node.named_children[2]])
    elif node.type == "function_definition":
        yield from _returns(node)


def candidates(data):
    """All changes of a source, in the order of the text."""
    found = []

    def walk(node):
        if node.type in OUTSIDE:
            return
        found.extend(_of(node))
        for child in node.children:
            walk(child)

    walk(syntax.parse_python(data))
    return found
