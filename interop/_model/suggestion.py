"""Suggestions: the name that was meant by one that does not exist, or the names that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interop._text import quoted

#: How many names a message lists, and how many it suggests.
_LISTED, _SUGGESTED = 12, 3
#: Shorter words are alike by accident.
_SHORTEST = 3
#: The similarity, as difflib counts it, of a misspelt word and the right one.
_ALIKE = 0.75


def listed(names: Iterable[str], most: int = _LISTED) -> str:
    """Return names as a message lists them, a dozen at most.

    Examples
    --------
    >>> listed("abcdefghijklmn")
    'a, b, c, d, e, f, g, h, i, j, k, l and 2 more'
    """
    names = list(names)
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def resembling(word: str, words: Iterable[str]) -> list[str]:
    """Return the word that another is in other case, those that it begins, or the one most like it.

    Examples
    --------
    >>> resembling("NumPy", ["numpy", "cupy"]), resembling("float", ["float32", "float64"])
    (['numpy'], ['float32', 'float64'])
    """
    from difflib import get_close_matches

    originals = {original.casefold(): original for original in words}
    word = word.casefold()
    if word in originals:
        return [originals[word]]
    if len(word) > _SHORTEST and (begun := [o for w, o in originals.items() if w.startswith(word)]):
        # Words that another of them begins, such as formats of one framework, add nothing.
        return [w for w in begun if not any(w.startswith(f"{other}.") for other in begun)]
    long = [spelling for spelling in originals if len(spelling) >= _SHORTEST]
    return [originals[spelling] for spelling in get_close_matches(word, long, 1, _ALIKE)]


def suggestion(word: object, names: Mapping[str, str] | Iterable[str], otherwise: str) -> str:
    """Return the advice about a word that is not among some names.

    Parameters
    ----------
    word : object
    names : iterable of str, or mapping of str to str
        The names, or the name for each of its spellings.
    otherwise : str
        The advice if the word resembles none of them.
    """
    names = names if isinstance(names, Mapping) else {name: name for name in names}
    meant = dict.fromkeys(names[spelling] for spelling in resembling(quoted(word, str), names))
    if len(meant) > _SUGGESTED:
        return f"name one of {listed(meant)}."
    return f"did you mean {' or '.join(map(repr, meant))}?" if meant else otherwise
