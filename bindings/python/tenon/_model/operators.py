"""Operators, comparisons, indices and functions of NumPy on layers: each is a layer of another type.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import numpy as np

from tenon import error

Number = int | float

# Of a layer and a number, as a formula.
_FORMULAS = {"pow": "{} ** {}", "maximum": "max({}, {})", "minimum": "min({}, {})", "less": "{} < {}", "less_equal": "{} <= {}",
             "greater": "{} > {}", "greater_equal": "{} >= {}", "equal": "{} == {}", "not_equal": "{} != {}",
             "logical_and": "{} and {}", "logical_or": "{} or {}"}  # fmt: skip
_COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
_UFUNCS = {"absolute": "abs", "divide": "div", "multiply": "mul", "power": "pow", "rint": "round", "subtract": "sub",
           "true_divide": "div", "positive": "", "negative": ""}  # fmt: skip
_SAME = ("add", "cos", "equal", "exp", "expm1", "floor", "greater", "greater_equal", "less", "less_equal", "log", "log1p",
         "logical_and", "logical_not", "logical_or", "matmul", "maximum", "minimum", "not_equal", "reciprocal", "sign", "sin",
         "sqrt", "square", "tanh")  # fmt: skip
_UFUNCS.update({name: name for name in _SAME})


# Types whose inputs may be numbers and arrays, too: tenon.layer.maximum(x, 0).
OF_NUMBERS = frozenset({"add", "sub", "mul", "div", "logical_xor", *_FORMULAS})


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether a value is one number, such as one of NumPy."""
    return not isinstance(value, (Operators, str)) and hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0


class Operators:
    """The operators of a layer. == and != compare objects; tenon.layer.equal compares numbers."""

    __slots__ = ()

    def _made_of(self, type: str, inputs: list[Any], attributes: dict[str, Any], truth: bool = False) -> Any:
        """Returns a layer; a text among the inputs is a data layer. truth: of truth values, which have none themselves."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return self._combined("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._combined("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._combined("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._combined("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._combined("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._combined("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._combined("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._combined("div", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._combined("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._combined("pow", other, self)

    def __matmul__(self, other: Any) -> Any:
        return self._combined("matmul", self, other)

    def __lt__(self, other: Any) -> Any:
        return self._combined("less", self, other)

    def __le__(self, other: Any) -> Any:
        return self._combined("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._combined("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._combined("greater_equal", self, other)

    def __neg__(self) -> Any:
        return self._made_of("scale_shift", [self], {"scale": -1.0, "shift": 0.0})

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._made_of("abs", [self], {})

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        type = _UFUNCS.get(function.__name__)
        if type is None or method != "__call__" or options:
            what = (
                f"numpy.{function.__name__}"
                + ("" if method == "__call__" else f".{method}")
                + (" with options" if options else "")
            )
            raise TypeError(f"{what} of a layer; expected one of {', '.join(sorted(_UFUNCS))}")
        if function.nin == 1:
            return self._made_of(type, [self], {}) if type else -self if function is np.negative else self
        return self._combined(type, *inputs)

    def _combined(self, type: str, a: Any, b: Any) -> Any:
        """Returns the layer of two operands, of which one is a layer."""
        if is_number(a) or is_number(b):
            return self._with_number(type, a, b)
        layers = []
        for each in (a, b):
            if isinstance(each, (Operators, str)):
                layers.append(each)
                continue
            numbers = np.asarray(each) if hasattr(each, "__array__") else None
            if numbers is None or numbers.dtype.kind not in "biuf" or type == "matmul":
                raise TypeError(
                    f"layers are combined with layers, numbers and arrays of numbers, not with {each.__class__.__name__}"
                )
            shape, values = list(numbers.shape), numbers.astype(float).ravel().tolist()
            layers.append(self._made_of("constant", [self], {"shape": shape, "value": values}))
        return self._made_of(type, layers, {}, type in _COMPARISONS)

    def _with_number(self, type: str, a: Any, b: Any) -> Any:
        first = is_number(a)
        number, layer = (float(a), b) if first else (float(b), a)
        if type == "matmul":
            raise TypeError("matmul of a layer and a number; expected two layers")
        if type == "pow" and not first:
            return self._made_of("power", [layer], {"exponent": number})
        if type in _FORMULAS:
            if not math.isfinite(number):
                raise error.InvalidError(f"a layer and the number {number}: {type} needs a finite one")
            text = _FORMULAS[type].format(*((repr(number), "x") if first else ("x", repr(number))))
            return self._made_of("formula", [layer], {"formula": text, "names": ["x"]}, type in _COMPARISONS)
        if type == "div" and first:
            layer, type = self._made_of("reciprocal", [layer], {}), "mul"
        scale = {"mul": number, "div": 1 / number if type == "div" else 1.0, "sub": -1.0 if first else 1.0}.get(type, 1.0)
        shift = {"add": number, "sub": number if first else -number}.get(type, 0.0)
        return self._made_of("scale_shift", [layer], {"scale": scale, "shift": shift})

    def __getitem__(self, key: Any) -> Any:
        """Elements of each sample by the rules of NumPy, such as x[:, 0], x[:, 1:3], x[..., None] and x[:, [2, 0]]."""
        keys = list(key) if isinstance(key, tuple) else [key]
        shape: tuple[Any, ...] = self.shape  # type: ignore[attr-defined]
        name: str = self.name  # type: ignore[attr-defined]
        axes = sum(each is not None and each is not Ellipsis for each in keys)
        dots = [place for place, each in enumerate(keys) if each is Ellipsis]
        if axes > len(shape) or len(dots) > 1:
            raise IndexError(f'layer "{name}" is {list(shape)}; the index has {axes} dimensions and {len(dots)} "..."')
        place = dots[0] if dots else len(keys)
        keys[place : place + len(dots)] = [slice(None)] * (len(shape) - axes)
        if not (isinstance(keys[0], slice) and keys[0] == slice(None)):
            raise IndexError(
                f'layer "{name}" is {list(shape)}: dimension 0, {shape[0]}, is indexed by {keys[0]!r}, but a layer computes '
                "each of these by itself; expected :, as in x[:, 0]"
            )
        layer: Any = self
        axis = 0
        for each in keys:
            layer, kept = _indexed(layer, axis, each, name)
            axis += kept
        return layer


def _indexed(layer: Any, axis: int, key: Any, name: str) -> tuple[Any, bool]:
    """Returns the elements of one dimension, and whether that remains."""
    if key is None:
        return layer._made_of("unsqueeze", [layer], {"axis": axis}), True
    if isinstance(key, slice) and key == slice(None):
        return layer, True
    extent = layer.shape[axis]
    if not isinstance(extent, int):
        raise IndexError(f'layer "{name}": dimension {axis} varies; expected : in its place')
    if isinstance(key, slice):
        places = range(extent)[key]
        if places.step == 1 and len(places):
            return layer._made_of("slice", [layer], {"axis": axis, "start": places.start, "length": len(places)}), True
        chosen = list(places)
    elif isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        place = int(key)
        if not -extent <= place < extent:
            raise IndexError(f'layer "{name}": position {place} of dimension {axis}; expected -{extent} to {extent - 1}')
        one = layer._made_of("slice", [layer], {"axis": axis, "start": place % extent, "length": 1})
        return layer._made_of("squeeze", [one], {"axes": [axis]}), False
    else:
        numbers = np.asarray(key)
        if isinstance(key, Operators) or numbers.ndim != 1 or numbers.dtype.kind not in "biu":
            raise IndexError(
                f'layer "{name}": dimension {axis} is indexed by {key!r}; expected integers, slices, None, "..." or a list of '
                "integers; tenon.layer.gather takes positions that a layer computes"
            )
        chosen = (np.flatnonzero(numbers) if numbers.dtype.kind == "b" else numbers).tolist()
    if not chosen or not all(-extent <= each < extent for each in chosen):
        raise IndexError(
            f'layer "{name}": positions {chosen} of dimension {axis}; expected at least one of -{extent} to {extent - 1}'
        )
    return layer._made_of("index_select", [layer], {"axis": axis, "indices": chosen}), True
