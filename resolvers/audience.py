"""The viewers whom one execution of a query serves.

Use cases serve an audience. A single viewer is an audience of one. A viewer for whom the shared result would be wrong
is excluded, and the query is executed again for that viewer alone.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(slots=True)
class Audience:
    """Viewers of one organization with the same roles. Viewers who are not excluded get the same result.

    The viewer of an audience of one is never excluded. If that viewer may not see something, the use case raises.
    """

    organization_id: str
    viewer_ids: frozenset[str]
    excluded_ids: frozenset[str] = frozenset()

    @property
    def is_single(self) -> bool:
        """Whether there is only one viewer."""
        return len(self.viewer_ids) == 1

    def exclude(self, viewer_ids: AbstractSet[str]) -> None:
        """Excludes these viewers from the shared result."""
        self.excluded_ids |= viewer_ids
