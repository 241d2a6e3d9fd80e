"""The possible small changes of a source of C or C++, from which mutants are drawn; of Python: candidates_python.py.
Left out are texts of messages, sizes of reserved memory and of arrays, expressions that a compiler evaluates (labels,
template arguments, static_assert), returns of the same value as the next statement, and declarations of plugins: the
build writes their manifests, and the host refuses a plugin that differs from its manifest.
SPDX-License-Identifier: Apache-2.0
"""
import dataclasses
import itertools
import re

import syntax

# The kind of a change is the operator that it replaces, or that of a family with few members, or one of OTHERS.
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-",
             "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "++": "--",
             "--": "++"}
FAMILY = {"%": "/", "-=": "+=", "*=": "+=", "/=": "+=", "--": "++"}
OTHERS = ("!", "min", "constant", "drop", "guard", "swap", "return")
KINDS = tuple(each for each in OPERATORS if each not in FAMILY) + OTHERS
# Calls whose arguments are a message, and calls that change speed or memory alone.
MESSAGES = {"fail", "fault", "tn_fail", "text", "refuse", "error", "complain", "quoted", "snprintf", "std::snprintf",
            "bad", "warn", "Failure", "tn::Failure", "doc"}
EXTREMES = {"min": "max", "max": "min", "std::min": "std::max", "std::max": "std::min"}
IDLE = {"reserve", "shrink_to_fit", "yield", "prefetch"}
CONSTANT = {"static_assert_declaration", "template_argument_list", "template_parameter_list", "enumerator",
            "array_declarator", "preproc_if", "preproc_ifdef", "preproc_def", "preproc_call", "requires_clause",
            "string_literal", "raw_string_literal", "char_literal"}
DECLARING_PARAMETER = re.compile(r"Description\b|\bPlugin\s*&")
DECLARING_CLASS = re.compile(r"Description$|^Attribute$|^Plugin$")


@dataclasses.dataclass(frozen=True)
class Candidate:
    kind: str
    begin: int
    end: int
    text: bytes


def _name(call):
    """The name of the function of a call, without the object that it is called on."""
    function = call.child_by_field_name("function") or call.child_by_field_name("type")
    if function is None:
        return ""
    if function.type == "field_expression":
        function = function.child_by_field_name("field")
    return function.text.decode().split("<")[0]


def _is_excluded(node):
    """Whether the node is in code that is never changed, or outside of function bodies."""
    inside = False
    for each in syntax.ancestors(node):
        if each.type in CONSTANT:
            return True
        called = each.type == "argument_list" and each.parent.type in ("call_expression", "compound_literal_expression")
        if called and _name(each.parent) in MESSAGES | IDLE:
            return True
        if each.type == "case_statement" and _holds(each.child_by_field_name("value"), node):
            return True
        if each.type == "throw_statement":
            return True
        inside = inside or syntax.is_block(each)
    return not inside


def _declares(node):
    """Whether the node is in code that declares a plugin for its manifest."""
    for each in syntax.ancestors(node):
        if each.type == "function_definition":
            parameters = [part.text.decode() for part in syntax.walk(each.child_by_field_name("declarator"))
                          if part.type == "parameter_list"]
            if any(map(DECLARING_PARAMETER.search, parameters)):
                return True
        if each.type in ("class_specifier", "struct_specifier"):
            name = each.child_by_field_name("name")
            if name is not None and DECLARING_CLASS.search(name.text.decode()):
                return True
    return False


def _holds(outer, node):
    return outer is not None and outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def of_operator(sign, begin, end):
    """The change of an operator, if it has one."""
    if sign in OPERATORS:
        yield Candidate(FAMILY.get(sign, sign), begin, end, OPERATORS[sign].encode())


def of_number(node):
    """Another number in place of a whole one; nothing in place of "+ 1"."""
    text = node.text.decode()
    digits = text.rstrip("uUlL")
    if not digits.isdigit() or (len(digits) > 1 and digits[0] == "0"):
        return
    parent = node.parent
    if parent.type in ("binary_expression", "binary_operator") and text == "1":
        operator = parent.child_by_field_name("operator")
        if operator.text in (b"+", b"-") and parent.child_by_field_name("right") == node:
            yield Candidate("constant", operator.start_byte, node.end_byte, b"")
            return
    yield Candidate("constant", node.start_byte, node.end_byte, f"{int(digits) + 1}{text[len(digits):]}".encode())


def swapped(node, parts):
    """Each two neighbours of the parts, one in place of the other."""
    for first, second in itertools.pairwise(parts):
        if first.text != second.text and b"\n" not in first.text + second.text:
            between = node.text[first.end_byte - node.start_byte:second.start_byte - node.start_byte]
            yield Candidate("swap", first.start_byte, second.end_byte, second.text + between + first.text)


def _operators(node):
    operator = node.child_by_field_name("operator")
    # A changed step of a loop would be a hang that every test notices; texts cannot be subtracted.
    if operator is None or (node.type == "update_expression" and node.parent.type == "for_statement"):
        return
    if any(child.type == "string_literal" for child in syntax.walk(node)):
        return
    sign = operator.text.decode()
    if node.type != "unary_expression":
        yield from of_operator(sign, operator.start_byte, operator.end_byte)
    elif sign == "-" and node.child_by_field_name("argument").type != "number_literal":
        yield Candidate("-", operator.start_byte, operator.end_byte, b"")
    elif sign == "!":
        yield Candidate("!", operator.start_byte, operator.end_byte, b"")


def _leaves(statement):
    """Whether a statement, or the only one of a block, is return, throw, continue, break or a call of fail."""
    if statement.type == "compound_statement":
        within = [child for child in statement.named_children if child.type != "comment"]
        return len(within) == 1 and _leaves(within[0])
    if statement.type in ("return_statement", "throw_statement", "continue_statement", "break_statement"):
        return True
    if statement.type == "expression_statement" and statement.named_child_count == 1:
        call = statement.named_children[0]
        return call.type == "call_expression" and _name(call) in ("fail", "fault")
    return False


def _statements(node):
    if node.type == "if_statement":
        leaves = node.child_by_field_name("alternative") is None and _leaves(node.child_by_field_name("consequence"))
        if leaves and node.parent.type != "else_clause":
            yield Candidate("guard", node.start_byte, node.end_byte, b";")
    elif node.type in ("break_statement", "continue_statement"):
        if node.parent.type != "case_statement":
            yield Candidate("drop", node.start_byte, node.end_byte, b";")
    elif node.type == "expression_statement" and node.named_child_count == 1:
        what = node.named_children[0]
        idle = what.type == "call_expression" and _name(what) in IDLE
        if not idle and what.type in ("call_expression", "assignment_expression", "update_expression"):
            yield Candidate("drop", node.start_byte, node.end_byte, b";")


def _arguments(node):
    name = _name(node.parent)
    if name in EXTREMES:
        function = node.parent.child_by_field_name("function")
        if function.type in ("identifier", "qualified_identifier"):
            end = function.start_byte + len(name)  # template arguments follow
            yield Candidate("min", function.start_byte, end, EXTREMES[name].encode())
    else:
        yield from swapped(node, [child for child in node.named_children if child.type != "comment"])


def _returns(function):
    """`return` without a value or with a default value, before each statement of the body."""
    body, kind = function.child_by_field_name("body"), function.child_by_field_name("type")
    if body is None or body.type != "compound_statement" or kind is None:
        return
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in ("pointer_declarator", "reference_declarator",
                                                             "function_declarator"):
        declarator = declarator.child_by_field_name("declarator")
    name = kind.text.decode()
    plain = declarator is not None and declarator.type == "function_declarator"
    if declarator is None or declarator.type == "reference_declarator":
        return
    answers = ["return;"] if name == "void" and plain else ["return true;", "return false;"] if name == "bool" else \
        ["return {};"]
    for statement in body.named_children:
        if statement.type.startswith(("comment", "preproc")) or not syntax.is_statement(statement):
            continue
        for answer in answers:
            if statement.type == "return_statement" and _is_nothing(statement, answer):
                continue
            yield Candidate("return", statement.start_byte, statement.start_byte, answer.encode() + b" ")


def _is_nothing(statement, answer):
    value = statement.text.decode()
    return value == answer or (value in ("return {};", "return 0;", "return TN_OK;", "return nullptr;", "return NULL;",
                                        'return "";', "return;") and answer in ("return {};", "return;"))


def candidates(data, of_plugin=False):
    """All changes of a source, in the order of the text."""
    found = []
    for node in syntax.walk(syntax.parse(data)):
        if node.has_error and node.type not in ("translation_unit", "function_definition", "compound_statement"):
            continue
        if node.type == "function_definition":
            if not (of_plugin and _declares(node)):
                found += _returns(node)
            continue
        kinds = ()
        if node.type in ("binary_expression", "assignment_expression", "update_expression", "unary_expression"):
            kinds = _operators(node)
        elif node.type == "number_literal":
            kinds = of_number(node)
        elif node.type in ("true", "false"):
            other = b"false" if node.type == "true" else b"true"
            kinds = [Candidate("constant", node.start_byte, node.end_byte, other)]
        elif node.type == "conditional_expression":
            kinds = swapped(node, [node.child_by_field_name(part) for part in ("consequence", "alternative")])
        elif node.type in ("if_statement", "break_statement", "continue_statement", "expression_statement"):
            kinds = _statements(node)
        elif node.type == "argument_list" and node.parent.type == "call_expression":
            kinds = _arguments(node)
        kinds = list(kinds)
        if kinds and not _is_excluded(node) and not (of_plugin and _declares(node)):
            found += kinds
    return found
