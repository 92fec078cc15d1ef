"""The viewers that one execution answers.

Use cases serve an audience; a single viewer is an audience of one. A viewer whom the common answer does not suit is
excluded, and is then answered by an execution of their own.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(slots=True)
class Audience:
    """Viewers of one organization with the same roles, who get one answer unless they are excluded.

    An audience of one excludes nobody: what does not suit its viewer is refused.
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
