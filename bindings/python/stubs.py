"""Writes the type stubs of what exists at run time alone: stubs.py FOLDER, by an interpreter that imports tenon.

_core.pyi has the module in C++, as nanobind's stubgen sees it; _layers.pyi, _metrics.pyi, _updaters.pyi and
_readers.pyi have the functions that tenon.layer, tenon.metric, tenon.updater and tenon.reader make from the manifests
of the plugins in the build.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

import tenon
from tenon import _core

_IMPORTS = {
    "layer": "from tenon._model.layer import Layer, LayerLike",
    "updater": "from tenon.updater import Updater",
    "reader": "from tenon.reader import Reader",
    "metric": "from tenon._model.layer import LayerLike\nfrom tenon.metric import Metric",
}


def _type(parameter: inspect.Parameter, kind: str) -> str:
    """Returns the annotation of an argument: what the function takes, which may be more than what it documents."""
    text = str(parameter.annotation)
    text = re.sub(r"list\[(int|float)\]", r"\1 | Sequence[\1]", text)  # one number is a list of one
    text = text.replace("list[", "Sequence[")
    if kind == "reader" and parameter.name == "files":
        text = f"str | {text}"
    if parameter.default is None and "None" not in text:
        text += " | None"
    return text


def _function(kind: str, name: str) -> str:
    function = getattr(getattr(tenon, kind), name)
    words, keywords = [], False
    for each in inspect.signature(function).parameters.values():
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            # Also as one list; and the list, or the only one, under a common name.
            words += [f"*{each.name}: LayerLike | Sequence[LayerLike]", "input: LayerLike | Sequence[LayerLike] = ..."]
            keywords = True
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not keywords:
            words.append("*")
            keywords = True
        default = "" if each.default is inspect.Parameter.empty else f" = {each.default!r}"
        words.append(f"{each.name}: {_type(each, kind)}{default}")
    lines = (inspect.getdoc(function) or "").replace("\\", "\\\\").replace('"""', "'''").splitlines()
    body = "\n".join(f"    {line}".rstrip() for line in lines).lstrip()
    returned = {"layer": "Layer", "updater": "Updater", "reader": "Reader", "metric": "Metric"}[kind]
    return f'def {function.__name__}({", ".join(words)}) -> {returned}:\n    """{body}\n    """\n'


def functions(kind: str) -> str:
    """Returns the stub of the functions of a kind: "layer", "updater", "reader" or "metric"."""
    module = getattr(tenon, kind)
    types = [name for name in dir(module) if name not in vars(module)]
    made = {name: getattr(module, name).__name__ for name in types}
    text = [f'"""The {kind}s of the plugins in this build."""\n', "from collections.abc import Mapping, Sequence\n",
            _IMPORTS[kind], "", f"__all__: list[str] = {sorted(made)}", ""]  # fmt: skip
    for name, function in made.items():
        text.append(_function(kind, name) if name == function else f"{name} = {function}\n")
    return "\n".join(text)


def core() -> str:
    """Returns the stub of tenon._core. What nanobind knows as an object, or does not know the entries of, is Any."""
    generator = StubGen(_core)
    generator.put(_core)
    text = generator.get().replace("-> object", "-> Any").replace(": object", ": Any")
    for bare, full in (("dict", "dict[str, Any]"), ("tuple", "tuple[Any, ...]"), ("list", "list[Any]"),
                       ("NDArray", "NDArray[Any]")):  # fmt: skip
        text = re.sub(rf"(?<=[ \[]){bare}(?=[,)\]:]|$)", full, text, flags=re.MULTILINE)
    return text.replace("import NDArray[Any]", "import NDArray").replace("import Annotated", "import Annotated, Any", 1)


def main(folder: Path) -> None:
    """Writes all stubs."""
    (folder / "_core.pyi").write_text(core())
    for kind in _IMPORTS:
        (folder / f"_{kind}s.pyi").write_text(functions(kind))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
