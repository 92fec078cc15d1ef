"""The viewers that one execution answers.

Use cases serve an audience. A single viewer is an audience of one. A viewer for whom the shared answer would be wrong
is excluded, and the query is executed again for that viewer alone.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(slots=True)
class Audience:
    """Viewers of one organization with the same roles, who get one answer unless they are excluded.

    In an audience of one nobody is excluded. If its viewer may not see something, the use case raises an error.
    """

    organization_id: str
    viewer_ids: frozenset[str]
    excluded_ids: frozenset[str] = frozenset()

    @property
    def is_single(self) -> bool:
        """Whether there is only one viewer."""
        return len(self.viewer_ids) == 1

    def exclude(self, viewer_ids: AbstractSet[str]) -> None:
        """Excludes these viewers from the answer."""
        self.excluded_ids |= viewer_ids
