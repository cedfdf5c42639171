"""What conversions come to, frozen: to compare before and after a change that should change nothing.

``python -m tests.frozen before.json`` makes some 3,400 requests: 15 random ones, the same every
time, of each kind of value in the grid. It stores the result's spec, its numbers, whether it shares
memory, and the plan's steps, or else the text of the refusal. ``python -m tests.frozen after.json
before.json`` shows what differs; with ``--loose`` it leaves out labels of steps and texts.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import interop
from interop.errors import InteropError
from tests.properties.grid import LIBRARIES, REQUESTS, TARGETS, kinds
from tests.properties.readers import read

#: Requests of each kind of value.
_EACH = 15
#: Requests that the grid has not.
_ORDERS: list[dict[str, Any]] = [
    {"order": "C"},
    {"order": "F"},
    {"order": "F", "copy": True},
    {"order": "C", "dtype": "float32"},
    {"dtype": "float64", "allow": "all"},
    {"forbid": {"copy", "transfer"}},
]
#: Kinds of values that differ by chance: whether columns this short lie side by side in memory.
_BY_CHANCE = {("polars", "a frame")}
#: How many differences are shown.
_SHOWN = 40
#: Addresses, and amounts of memory, which change from run to run.
_FLEETING = re.compile(r"0x[0-9a-f]+|only [\d.,]+ \w+ of")


def frozen() -> dict[str, Any]:
    """Return what each request comes to."""
    return {
        f"{library}, {name}: {_written(words)}": _outcome(make, words)
        for library in LIBRARIES
        for name, make in kinds(library).items()
        if (library, name) not in _BY_CHANCE
        for words in _requests(f"{library} {name}")
    }


def _requests(seed: str) -> Iterator[dict[str, Any]]:
    """Yield random requests; those of other targets stay the same when a format is added."""
    frameworks = [name for name in TARGETS if "." not in name]
    for number in range(_EACH):
        drawn = random.Random(f"{seed} {number}")
        names = frameworks if drawn.random() < 0.4 else TARGETS
        words = drawn.choice([*REQUESTS, *_ORDERS])
        yield {"to": min(names, key=lambda name: _drawn(f"{seed} {number} {name}")), **words}


def _drawn(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _written(words: dict[str, Any]) -> str:
    """Write keywords; sets have no order of their own."""
    return ", ".join(
        f"{key}={sorted(word) if isinstance(word, set) else word}" for key, word in words.items()
    )


def _outcome(make: Any, words: dict[str, Any]) -> Any:
    """Return what a request comes to: in a trace, and twice more."""
    try:
        with interop.trace() as receipts:
            traced = interop.convert(make(), **words)
        route = interop.plan(make(), **words)
        again = [_facts(interop.convert(make(), **words)) for _ in range(2)]
    except InteropError as error:
        return _text(error)
    except Exception as error:  # noqa: BLE001 - of a framework, or of a value that raises
        return type(error).__name__
    facts = _facts(traced)
    receipt = receipts[-1]
    return {
        "result": facts,
        "again": "same" if again == [facts, facts] else again,
        "aliased": receipt.aliased,
        "effects": sorted(receipt.effects),
        "planned": [str(route.result), sorted(route.effects), route.aliases],
        "steps": [step.label for step in route.steps],
    }


def _facts(result: Any) -> list[str]:
    """Return the type of a result, its spec, and a digest of its numbers."""
    kind = f"{type(result).__module__}.{type(result).__qualname__}"
    return [kind, str(interop.spec(result)), _digest(result)]


def _digest(result: Any) -> str:
    try:
        numbers = read(result)
        is_text = numbers.dtype.hasobject
    except Exception as error:  # noqa: BLE001 - its framework does not show it as an array
        return type(error).__name__
    if is_text:
        return _FLEETING.sub("", repr(numbers.tolist()))[:200]
    memory = f"{numbers.dtype}{numbers.shape}".encode() + numbers.tobytes()
    return hashlib.sha256(memory).hexdigest()[:16]


def _text(error: InteropError) -> str:
    return f"{type(error).__name__}: {_FLEETING.sub('', str(error))}"


def _loosely(outcome: Any) -> Any:
    """Return an outcome without the labels of steps, or the class of a refusal."""
    if isinstance(outcome, dict):
        return {key: outcome[key] for key in outcome if key != "steps"}
    return str(outcome).partition(":")[0]


def differences(before: dict[str, Any], after: dict[str, Any], *, loose: bool) -> list[str]:
    """Return each request that comes to something else, with both outcomes.

    Those that are made in one of the two alone, because formats were added, are left out.
    """
    view = _loosely if loose else lambda outcome: outcome
    return [
        f"{key}\n  - {before[key]}\n  + {after[key]}"
        for key in sorted(before.keys() & after.keys())
        if view(before[key]) != view(after[key])
    ]


def main(arguments: list[str]) -> str | None:
    """Store what is frozen, and compare it with a file that was stored before."""
    files = [Path(argument) for argument in arguments if not argument.startswith("-")]
    warnings.simplefilter("ignore")
    now = json.loads(json.dumps(frozen()))
    files[0].write_text(json.dumps(now, indent=0, ensure_ascii=False), encoding="utf-8")
    granted = sum(isinstance(outcome, dict) for outcome in now.values())
    print(f"{len(now)} requests, {granted} of them granted")
    if len(files) == 1:
        return None
    before = json.loads(files[1].read_text(encoding="utf-8"))
    differing = differences(before, now, loose="--loose" in arguments)
    print(*differing[:_SHOWN], sep="\n")
    shared = len(before.keys() & now.keys())
    return f"{len(differing)} of {shared} differ" if differing else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
