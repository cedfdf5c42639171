"""Suggestions: the name that was meant by one that does not exist, or the names that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: How many names a message lists, and how many it suggests.
_LISTED, _SUGGESTED = 12, 3
#: Names of so few letters are alike by chance.
_SHORT = 3


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
    meant = dict.fromkeys(names[spelling] for spelling in _resembling(str(word).casefold(), names))
    if len(meant) > _SUGGESTED:
        return f"name one of {listed(meant)}."
    return f"did you mean {' or '.join(map(repr, meant))}?" if meant else otherwise


def _resembling(word: str, names: Mapping[str, str]) -> list[str]:
    """Return the spellings that a word is, is a part of or begins, or else the one most like it."""
    from difflib import get_close_matches

    spellings = {spelling.casefold(): spelling for spelling in names}
    parts = [spelling for spelling in names if word in spelling.casefold().split(".")[1:]]
    if word in spellings or parts:
        return [spellings[word]] if word in spellings else parts[:_SUGGESTED]
    if kinds := [spellings[s] for s in spellings if word and s.startswith(f"{word}_")]:
        return kinds
    begun = [spellings[s] for s in spellings if len(word) > _SHORT and s.startswith(word)]
    if len({names[spelling] for spelling in begun}) == 1:
        return begun
    head, _, tail = word.partition(".")
    start = f"{head}." if head in spellings else ""
    near = [s for s in spellings if s.startswith(start)]
    if start and tail:  # "torch.csr" for "torch.sparse_csr"
        ending = [spellings[s] for s in near if s.endswith((f".{tail}", f"_{tail}"))]
        if ending:
            return ending[:_SUGGESTED]
    # Nicknames, like short names, resemble much: 'string' is not meant for 'single'.
    long = [s for s in near if len(s) > _SHORT and names[spellings[s]] == spellings[s]]
    close = get_close_matches(word, near, 1, 0.75) or get_close_matches(word, long, 1)
    return [spellings[s] for s in close or ([head] if start else [])]
