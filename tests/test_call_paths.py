"""The paths of calls through the core: how long they are, and how many words they need."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from tests import call_paths

#: By how much a path may grow before somebody has to say why.
_MORE = 1.02


def test_no_name_stands_for_two_classes() -> None:
    """A class or a type alias of the core has a name that no other has."""
    twice = {name: sorted(files) for name, files in call_paths.concepts().items() if len(files) > 1}
    assert twice == {}


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the calls of 3.11 are stored")
def test_no_path_has_become_longer(in_subprocess: Callable[..., str]) -> None:
    """Warm and cold, no call runs more functions than are stored; ``python -m tests.call_paths --store`` renews them."""
    program = """
        import json, warnings
        warnings.simplefilter("ignore")
        from tests.call_paths import figures
        print(json.dumps({name: path.calls for name, path in figures().items()}))
    """
    now, before = json.loads(in_subprocess(program).splitlines()[-1]), call_paths.stored()
    assert now.keys() == before.keys()
    longer = {name: (before[name], now[name]) for name in now if now[name] > _MORE * before[name]}
    assert longer == {}
