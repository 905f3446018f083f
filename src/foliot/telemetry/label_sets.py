"""Keeps the number of series bounded, whatever names users think of."""

OTHER = "other"


class LabelSets:
    """The first so many sets of label values are told apart, for as long as the process lives; whatever comes after
    them is not, so that a series never changes what it counts."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[tuple[str, ...]] = set()

    def holds(self, *labels: str) -> bool:
        """Whether these have a series of their own."""
        if labels in self._known:
            return True
        if len(self._known) >= self._most:
            return False
        self._known.add(labels)
        return True
