"""Whether a regular expression is matched in a time that grows with the text and no faster, whatever the text.

A matcher that goes back and tries again takes long where one text can be read in many ways. The pattern is turned into
an automaton with a state for each of its characters, and that is searched for two ways to read the same text: round
one loop (the time doubles with each character), or from one loop into another (it grows with a power of the length).
Repeats of a small bound count as one: they make a text cost more, but not ever more.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from typing import Any

op: Any = import_module("re._constants")  # by name: the two are known to some type checkers' runs and not to others
parser: Any = import_module("re._parser")

BOUNDED = 1000
LETTER, DIGIT, SPACE, SIGN = 256, 257, 258, 259  # all such characters beyond the first 256
EVERY = frozenset(range(SIGN + 1))
WORD = frozenset(code for code in range(256) if re.match(r"\w", chr(code))) | {LETTER, DIGIT}
_CLASSES = {
    op.CATEGORY_DIGIT: frozenset(code for code in range(256) if re.match(r"\d", chr(code))) | {DIGIT},
    op.CATEGORY_SPACE: frozenset(code for code in range(256) if re.match(r"\s", chr(code))) | {SPACE},
    op.CATEGORY_WORD: WORD,
}
_CLASSES |= {
    op.CATEGORY_NOT_DIGIT: EVERY - _CLASSES[op.CATEGORY_DIGIT],
    op.CATEGORY_NOT_SPACE: EVERY - _CLASSES[op.CATEGORY_SPACE],
    op.CATEGORY_NOT_WORD: EVERY - WORD,
}


def _codes(first: int, last: int) -> frozenset[int]:
    beyond = {LETTER, DIGIT, SPACE, SIGN} if last > 255 else set()
    return frozenset(range(first, min(last, 255) + 1)) | beyond


def _one(kind: Any, value: Any) -> frozenset[int] | None:
    """The characters that an element stands for; None where it is no single character."""
    if kind is op.LITERAL:
        return _codes(value, value)
    if kind is op.NOT_LITERAL:
        return EVERY - {value}
    if kind is op.ANY:
        return EVERY
    if kind is op.IN:
        parts = [_part(*part) for part in value if part[0] is not op.NEGATE]
        if value[0][0] is not op.NEGATE:
            return frozenset().union(*parts)
        # Of what lies beyond, a single character or a range takes nothing away that counts.
        named = [part for part, (kind, _) in zip(parts, value[1:], strict=True) if kind is op.CATEGORY]
        return EVERY - frozenset().union(*named, *(part & _codes(0, 255) for part in parts))
    return None


def _part(kind: Any, value: Any) -> frozenset[int]:
    match kind:
        case op.RANGE:
            return _codes(*value)
        case op.CATEGORY:
            return _CLASSES[value]
        case op.LITERAL:
            return _codes(value, value)
    raise NotImplementedError(f"{kind} is not judged here")


class Automaton:
    """States are numbers; `reads` is what a state's character may be, `after` which states may follow, and how often
    each does."""

    def __init__(self, tree: Any, *, anywhere: bool) -> None:
        self.reads: list[frozenset[int]] = []
        self.after: list[Counter[int]] = []
        first, last, _ = self._sequence(tree)
        # What may end here has been found, and nothing is tried again, unless the end of the text must follow.
        self.accepting = frozenset(last) if anywhere and tree[-1][0] is not op.AT else frozenset()
        if anywhere and not _begins(tree, op.AT_BEGINNING, op.AT_BEGINNING_STRING):  # it is tried from every place
            start = self._state(EVERY)
            self.after[start].update([start])
            if _begins(tree, op.AT_BOUNDARY):  # from every place where a word begins
                gate = self._state(EVERY - WORD)
                self.after[start].update([gate])
                start = gate
            self.after[start].update(first)

    def _state(self, reads: frozenset[int]) -> int:
        self.reads.append(reads)
        self.after.append(Counter())
        return len(self.reads) - 1

    def _sequence(self, items: Iterable[tuple[Any, Any]]) -> tuple[list[int], list[int], bool]:
        """The states that it may begin with and end with, and whether it may be empty."""
        first: list[int] = []
        last: list[int] = []
        empty = True
        for kind, value in items:
            begins, ends, nothing = self._item(kind, value)
            for state in last:
                self.after[state].update(begins)
            first += begins if empty else []
            last = last + ends if nothing else ends
            empty = empty and nothing
        return first, last, empty

    def _item(self, kind: Any, value: Any) -> tuple[list[int], list[int], bool]:
        if (reads := _one(kind, value)) is not None:
            state = self._state(reads)
            return [state], [state], False
        if kind is op.SUBPATTERN:
            return self._sequence(value[3])
        if kind is op.BRANCH:
            found = [self._sequence(branch) for branch in value[1]]
            return (
                [state for first, _, _ in found for state in first],
                [state for _, last, _ in found for state in last],
                any(empty for _, _, empty in found),
            )
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, body = value
            first, last, empty = self._sequence(body)
            if most is op.MAXREPEAT or most > BOUNDED:
                for state in last:
                    self.after[state].update(first)
            return first, last, empty or least == 0
        if kind is op.AT:
            return [], [], True
        if kind in (op.ASSERT, op.ASSERT_NOT):  # looks, and reads nothing; must be harmless by itself
            self._sequence(value[1])
            return [], [], True
        raise NotImplementedError(f"{kind} is not judged here")

    def steps(self, *states: int) -> Iterable[tuple[int, ...]]:
        """Where all of them can go by reading one and the same character."""
        for following in itertools.product(*(self.after[state] for state in states)):
            if frozenset.intersection(*(self.reads[state] for state in following)):
                yield following

    def reachable(self, *states: int) -> set[tuple[int, ...]]:
        found: set[tuple[int, ...]] = set()
        waiting = list(self.steps(*states))
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting += self.steps(*here)
        return found


def _begins(tree: Any, *places: Any) -> bool:
    return len(tree) > 0 and tree[0][0] is op.AT and tree[0][1] in places


def why_not_linear(pattern: re.Pattern[Any], *, anywhere: bool) -> str:
    """Empty where it is. `anywhere`: the pattern is searched for, not only tried at the beginning."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    # One alternative is tried after the other: their times are added.
    alternatives = tree[0][1][1] if len(tree) == 1 and tree[0][0] is op.BRANCH else [tree]
    return next(filter(None, (_judge(Automaton(each, anywhere=anywhere)) for each in alternatives)), "")


def _judge(automaton: Automaton) -> str:
    loops = [state for state in range(len(automaton.reads)) if (state,) in automaton.reachable(state)]
    for state in loops:
        for following, ways in automaton.after[state].items():
            if ways > 1 and (state,) in automaton.reachable(following):
                return "a loop within a loop"
        for pair in automaton.reachable(state, state):
            if pair[0] != pair[1] and (state, state) in automaton.reachable(*pair):
                return "a loop that can be gone round in two ways"
    for one, other in itertools.permutations(loops, 2):
        if other in automaton.accepting:
            continue
        if (other,) in automaton.reachable(one) and (one, other, other) in automaton.reachable(one, one, other):
            return "two loops that can share a text"
    return ""
