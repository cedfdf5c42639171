"""Rivals: the calls that a user would make instead, each as a statement.

A statement is timed as it stands, with no function of ours around it. A rival whose library is not
installed is left out, with a line that says so.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["Rival", "rivals", "set_up", "universal"]

#: The environment variables that libraries read when they are first imported.
_SETTINGS = {"KERAS_BACKEND": "torch", "SCIPY_ARRAY_API": "1"}


class Rival(NamedTuple):
    """An alternative to interop.

    Parameters
    ----------
    name : str
    names : mapping of str to object
        The names that its statements use beside ``x``.
    statements : mapping of str to str
        The statement for each target it has.
    """

    name: str
    names: Mapping[str, Any]
    statements: Mapping[str, str]


def universal() -> list[Rival]:
    """Return the idioms that people write for any value, without looking at it."""
    import numpy as np
    import torch

    names = {"np": np, "torch": torch}
    return [
        Rival("x.detach().cpu().numpy()", names, {"numpy": "x.detach().cpu().numpy()"}),
        Rival("np.from_dlpack(x)", names, {"numpy": "np.from_dlpack(x)"}),
        Rival("torch.from_dlpack(x)", names, {"torch": "torch.from_dlpack(x)"}),
    ]


def rivals() -> tuple[list[Rival], list[str]]:
    """Return the rivals that are installed, and a line for each that is not."""
    rivals, missing = [_idiom(), _dlpack()], []
    for name, (module, make) in _LIBRARIES.items():
        try:
            with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
                warnings.simplefilter("ignore")
                importlib.import_module(module)
        except ImportError:
            missing.append(f"{name} is left out: {module} is not installed")
            continue
        rivals.append(make(name))
    return rivals, missing


def _idiom() -> Rival:
    import torch

    statements = {"numpy": "x.detach().cpu().numpy()", "torch": "torch.as_tensor(x)"}
    return Rival("universal idiom", {"torch": torch}, statements)


def _dlpack() -> Rival:
    import numpy as np
    import torch

    statements = {"numpy": "np.from_dlpack(x)", "torch": "torch.from_dlpack(x)"}
    return Rival("from_dlpack", {"np": np, "torch": torch}, statements)


def _autoray_to(name: str) -> Rival:
    import autoray

    statements = {"numpy": "to(x, 'numpy')", "torch": "to(x, 'torch')"}
    return Rival(name, {"to": autoray.to}, statements)


def _autoray_do(name: str) -> Rival:
    import autoray

    statements = {"numpy": "autoray.to_numpy(x)", "torch": "do('asarray', x, like='torch')"}
    return Rival(name, {"autoray": autoray, "do": autoray.do}, statements)


def _keras(name: str) -> Rival:
    from keras import ops

    statements = {"numpy": "ops.convert_to_numpy(x)", "torch": "ops.convert_to_tensor(x)"}
    return Rival(name, {"ops": ops}, statements)


def _eagerpy(name: str) -> Rival:
    import eagerpy
    import torch

    statements = {"numpy": "ep.astensor(x).numpy()", "torch": "ep.from_numpy(one, x).raw"}
    return Rival(name, {"ep": eagerpy, "one": eagerpy.astensor(torch.zeros(1))}, statements)


def _array_api_compat(name: str) -> Rival:
    import array_api_compat.numpy
    import array_api_compat.torch

    names = {
        "to_device": array_api_compat.to_device,
        "np": array_api_compat.numpy,
        "torch": array_api_compat.torch,
    }
    statements = {
        "numpy": "np.from_dlpack(to_device(x, 'cpu'))",
        "torch": "torch.from_dlpack(to_device(x, 'cpu'))",
    }
    return Rival(name, names, statements)


def _sklearn(name: str) -> Rival:
    import sklearn
    import sklearn.externals.array_api_compat.numpy as np
    from sklearn.externals.array_api_compat import torch
    from sklearn.utils._array_api import move_to

    sklearn.set_config(array_api_dispatch=True)
    names = {"move_to": move_to, "np": np, "torch": torch, "cpu": torch.device("cpu")}
    statements = {
        "numpy": "move_to(x, xp=np, device='cpu')",
        "torch": "move_to(x, xp=torch, device=cpu)",
    }
    return Rival(name, names, statements)


_LIBRARIES: dict[str, tuple[str, Callable[[str], Rival]]] = {
    "autoray.to": ("autoray", _autoray_to),
    "autoray.do": ("autoray", _autoray_do),
    "keras.ops": ("keras", _keras),
    "eagerpy": ("eagerpy", _eagerpy),
    "array_api_compat": ("array_api_compat", _array_api_compat),
    "sklearn move_to": ("sklearn", _sklearn),
}


def set_up() -> None:
    """Set the environment variables of libraries, before any of these is imported."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
