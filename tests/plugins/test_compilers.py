"""Compilers and transforms: inside them a conversion is traced, breaks the graph or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import interop
from interop import Conversion, Interop
from interop.errors import BadRequestError, RefusedError
from tests.toys import Box, toy

# What torch says when a graph breaks at a tensor with a history, whoever breaks it.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:The \.grad attribute of a Tensor that is not a leaf"
)


def _to_numpy(x: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(interop.convert(x.detach() * 2, to="numpy").copy()) + 1


def _to_torch(x: torch.Tensor) -> torch.Tensor:
    return interop.convert(x * 2, to="torch") + 1


def _cast(x: torch.Tensor) -> torch.Tensor:
    return interop.convert(x * 2, to="torch", dtype="complex128").sum()


def _through_jax(x: torch.Tensor) -> torch.Tensor:
    return interop.convert(interop.convert(x * 2, to="jax"), to="torch") + x


_REASON = "interop chooses its steps by the value at hand"


_converter = interop.converter("torch", dtype="complex64")


def _through_converter(x: torch.Tensor) -> torch.Tensor:
    return _converter(x * 2) + 1


def _through_tree(x: torch.Tensor) -> torch.Tensor:
    return interop.convert_tree({"a": [x * 2]}, to="torch", dtype="complex64")["a"][0] + 1


VALUES: dict[str, Callable[[], torch.Tensor]] = {
    "plain": lambda: torch.arange(4.0),
    "grad": lambda: torch.arange(4.0, requires_grad=True),
    "conj": lambda: torch.tensor([1 + 2j, 3j]).conj(),
    "bfloat16": lambda: torch.arange(4, dtype=torch.bfloat16),
    "transposed": lambda: torch.ones(2, 3).t(),
    "sparse": lambda: torch.eye(3).to_sparse(),
}
CASES = [
    *((function, value) for function in (_to_torch, _cast, _through_jax) for value in VALUES),
    *((function, "grad") for function in (_to_numpy, _through_converter, _through_tree)),
]


@pytest.mark.parametrize(("function", "value"), CASES)
def test_compiled_functions_give_what_they_give_eagerly(function: Any, value: str) -> None:
    """Under torch.compile the result has the numbers, the dtype and the history that it has eagerly."""
    torch._dynamo.reset()
    x = VALUES[value]()
    expected = function(x)
    compiled = torch.compile(function, backend="aot_eager")
    for _ in range(2):
        result = compiled(x)
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        assert result.requires_grad == expected.requires_grad
        assert torch.equal(
            result.to_dense() if result.is_sparse else result,
            expected.to_dense() if expected.is_sparse else expected,
        )


def test_the_graph_is_broken_cleanly() -> None:
    """The code around a conversion is compiled: one break, one graph before it, one after."""
    torch._dynamo.reset()
    report = torch._dynamo.explain(_to_torch)(torch.ones(2))
    assert (report.graph_break_count, report.graph_count) == (1, 2)
    assert _REASON in str(report.break_reasons[0].reason)


def test_a_full_graph_is_refused_with_the_reason() -> None:
    """With fullgraph=True torch says why it cannot trace the function."""
    torch._dynamo.reset()
    compiled = torch.compile(_to_torch, backend="aot_eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=_REASON):
        compiled(torch.ones(2))


def test_no_fast_path_is_compiled() -> None:
    """A fast path that runs between two graphs is called as it is."""

    def fast_path(x: torch.Tensor) -> Box:
        return Box("boxed", (x * 3).tolist())

    instance = Interop()
    instance.register(toy("boxed"))
    copies = frozenset({"copy"})
    instance.register(Conversion("torch", "boxed", fast_path, effects=copies, fast_path=fast_path))

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + sum(instance.convert(x * 2, to="boxed").numbers)

    instance.convert(torch.ones(2), to="boxed")
    assert instance._converters.calls["boxed"].fast[torch.Tensor] is fast_path
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager")
    assert compiled(torch.ones(2)).tolist() == [13.0, 13.0]
    entries = torch._dynamo.eval_frame._debug_get_cache_entry_list
    assert entries(function.__code__)
    assert not entries(fast_path.__code__)


@pytest.mark.slow
def test_the_first_conversion_of_a_process_may_be_a_compiled_one(
    in_subprocess: Callable[..., str],
) -> None:
    """Plugins may be loaded inside a compiled function."""
    printed = in_subprocess("""
        import torch, interop
        def f(x): return interop.convert(interop.convert(x * 2, to="jax"), to="torch") + x
        print(torch.compile(f, backend="aot_eager")(torch.arange(3.0)).tolist())
    """)
    assert printed == "[0.0, 3.0, 6.0]\n"


@pytest.mark.slow
def test_one_call_before_a_full_graph_has_the_reason_told(
    in_subprocess: Callable[..., str],
) -> None:
    """A process that has listed the formats is told why a conversion in a full graph is refused."""
    printed = in_subprocess("""
        import torch, interop
        interop.formats()
        f = torch.compile(lambda x: interop.convert(x, to="numpy"), fullgraph=True, backend="eager")
        try: f(torch.ones(2))
        except torch._dynamo.exc.Unsupported as error: print("by the value at hand" in str(error))
    """)
    assert printed == "True\n"


@pytest.mark.slow
def test_torch_may_be_imported_after_the_plugins_are_loaded(
    in_subprocess: Callable[..., str],
) -> None:
    """Functions that were marked before torch was imported break its graphs all the same."""
    printed = in_subprocess("""
        import interop
        interop.convert([1], to="numpy")
        to_torch = interop.converter("torch")
        import torch
        interop.spec(torch.ones(1))
        report = torch._dynamo.explain(lambda x: to_torch(x * 2) + 1)(torch.ones(2))
        print(report.graph_break_count, report.graph_count)
    """)
    assert printed == "1 2\n"


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda f: torch.vmap(f)(torch.ones(3, 2)),
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum())(torch.ones(2)),
    "jvp": lambda f: torch.func.jvp(f, (torch.ones(2),), (torch.ones(2),)),
    "vjp": lambda f: torch.func.vjp(f, torch.ones(2)),
    "functionalize": lambda f: torch.func.functionalize(f)(torch.ones(2)),
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own jvp uses it
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_torchs_transforms_are_refused_elsewhere(transform: str) -> None:
    """A value inside a transform of torch.func has no memory to hand over, and the text says so."""
    with pytest.raises(RefusedError):
        TRANSFORMS[transform](lambda x: torch.as_tensor(interop.convert(x * 2, to="numpy")))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_torchs_transforms_are_refused_with_an_out_and_under_accepts(transform: str) -> None:
    """So is a value that is to be written into an array, or given to another framework's function."""

    def written(x: Any) -> Any:
        return torch.as_tensor(interop.convert(x * 2, out=np.zeros(x.shape, "float32")))

    @interop.accepts("jax", grad=True)
    def called(x: Any) -> Any:
        return x * 2

    for function in (written, called):
        with pytest.raises(RefusedError):
            TRANSFORMS[transform](function)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_nothing_is_written_into_a_tensor_from_outside_of_torchs_transforms(transform: str) -> None:
    """torch refuses that in errors of its own, and by a fast path as well as by a plan."""
    out, numbers = torch.zeros(2), np.ones(2, "float32")
    for _ in range(3):
        interop.convert(numbers, out=out)
    for value in (numbers, None):

        def written(x: Any, value: Any = value) -> Any:
            return interop.convert(x * 2 if value is None else value, out=out) + x

        with pytest.raises(BadRequestError):
            TRANSFORMS[transform](written)
    assert out.tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_torchs_transforms_see_through_conversions_to_torch(transform: str) -> None:
    """A conversion to torch returns the value itself, which the transform goes on to trace."""
    result = TRANSFORMS[transform](lambda x: interop.convert(x * 3, to="torch"))
    expected = TRANSFORMS[transform](lambda x: x * 3)
    while isinstance(result, tuple):
        result, expected = result[0], expected[0]
    assert torch.equal(result, expected)


JAX: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: jax.jit(f)(jnp.ones(2)),
    "vmap": lambda f: jax.vmap(f)(jnp.ones((3, 2))),
    "grad": lambda f: jax.grad(lambda x: f(x).sum())(jnp.ones(2)),
    "jvp": lambda f: jax.jvp(f, (jnp.ones(2),), (jnp.ones(2),)),
    "checkpoint": lambda f: jax.grad(lambda x: jax.checkpoint(f)(x).sum())(jnp.ones(2)),
}


@pytest.mark.parametrize("target", ["numpy", "torch", "python", "jax.bcoo"])
@pytest.mark.parametrize("transform", JAX)
def test_jaxs_transforms_are_refused_elsewhere(transform: str, target: str) -> None:
    """A tracer of JAX's is refused with the reason, whatever the target is."""
    with pytest.raises(RefusedError):
        JAX[transform](lambda x: interop.convert(x * 2, to=target))


@pytest.mark.parametrize("transform", JAX)
def test_jaxs_transforms_see_through_conversions_to_jax(transform: str) -> None:
    """A conversion to JAX returns the tracer itself."""
    result = JAX[transform](lambda x: interop.convert(x * 3, to="jax"))
    expected = JAX[transform](lambda x: x * 3)
    for leaf, other in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        assert (leaf == other).all()


def test_inside_jit_a_dtype_is_refused_rather_than_ignored() -> None:
    """A cast of a tracer is refused: only JAX itself can trace it."""
    with pytest.raises(RefusedError):
        jax.jit(lambda x: interop.convert(x, to="jax", dtype="float16"))(jnp.ones(2))
