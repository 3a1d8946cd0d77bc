"""Programs from Python functions: the function is called once, with tensors that write down what is done to them.

>>> import starfold as sf
>>> @sf.program
... def mean(x: sf.fed("p")):
...     return x.mean("*")
>>> print(mean.source, end="")
input x : [*, p]
output mean = mean[*](x)
"""
from starfold._trace import numpy_functions  # noqa: F401  gives tensors their NumPy functions
from starfold._trace.function import Traced, program
from starfold._trace.ops import Ops, functions_in, grad, hessian, jacobian, library_function, operation_names, ops, result_count, stop_gradient
from starfold._trace.shapes import Shape, Size, fed, shared
from starfold._trace.statements import keep, let, output, repeat, state, trace
from starfold._trace.tensor import Tensor, call
from starfold._trace.writer import KEYWORDS

__all__ = ["KEYWORDS", "Ops", "Shape", "Size", "Tensor", "Traced", "call", "fed", "functions_in", "grad", "hessian", "jacobian", "keep", "let", "library_function",
           "operation_names", "ops", "output", "program", "repeat", "result_count", "shared", "state", "stop_gradient", "trace"]
