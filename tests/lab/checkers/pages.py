"""Pages of topics: complete, in order, and with correct `hasOlder` and `hasNewer`."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from tests.lab.checkers import CheckerResult
from tests.lab.history import FINAL, History, RecordedOperation, select

NO_UPPER_BOUND = 2**62
POSTS = "post", "defy"
"""Operations that post a message. Somebody who defies a block is refused as long as it exists."""


@dataclass
class TopicHistory:
    """All messages of a topic that anybody ever saw, and when each was acknowledged."""

    acknowledged_at: dict[int, float] = field(default_factory=dict)
    """The end of the mutation that posted a message, by the message's timestamp."""

    known: set[int] = field(default_factory=set)

    def sort(self) -> None:
        """Sorts the known timestamps for `between`. Call it once all messages are known."""
        self.timestamps = sorted(self.known)

    def between(self, low: int, high: int) -> list[int]:
        """Returns the timestamps of a closed range."""
        return self.timestamps[bisect_left(self.timestamps, low) : bisect_right(self.timestamps, high)]


def topics(history: History) -> dict[str, TopicHistory]:
    """Returns the topics of the history by id."""
    topics_by_id: dict[str, TopicHistory] = defaultdict(TopicHistory)
    for operation in select(history, *POSTS):
        topic = topics_by_id[operation["arguments"]["topic"]]
        topic.acknowledged_at.setdefault(operation["result"]["timestamp"], operation["end"])
        topic.known.add(operation["result"]["timestamp"])
    for operation in select(history, "page"):
        topics_by_id[operation["arguments"]["topic"]].known |= {
            timestamp for timestamp, _ in operation["result"]["items"]
        }
    for operation in select(history, "subscription"):
        posted = {timestamp for _, kind, timestamp, *_ in operation["result"]["events"] if kind == "MessagePosted"}
        topics_by_id[operation["arguments"]["topic"]].known |= posted
    for topic in topics_by_id.values():
        topic.sort()
    return topics_by_id


def covered_range(page: RecordedOperation) -> tuple[int, int]:
    """Returns the closed range of timestamps of which the page must hold every message."""
    arguments, items = page["arguments"], [timestamp for timestamp, _ in page["result"]["items"]]
    oldest, latest, step = arguments["oldest"], arguments["latest"], 0 if arguments["inclusive"] else 1
    low = 0 if oldest is None else oldest + step
    high = NO_UPPER_BOUND if latest in (None, "now") else latest - step
    if len(items) < arguments["limit"]:
        return low, high
    return (items[-1], high) if oldest is None else (low, items[-1])


def pages_hold_acknowledged_messages(history: History) -> CheckerResult:
    """A message that was acknowledged before a page was requested is in the page if the page's range covers it."""
    topics_by_id, violations, checked = topics(history), [], 0
    for page in select(history, "page"):
        topic = topics_by_id[page["arguments"]["topic"]]
        items = {timestamp for timestamp, _ in page["result"]["items"]}
        for timestamp in topic.between(*covered_range(page)):
            if topic.acknowledged_at.get(timestamp, page["begin"]) < page["begin"]:
                checked += 1
                if timestamp not in items:
                    violations.append(f"{_name(page)} lacks {timestamp}, which was acknowledged before")
    return CheckerResult(checked, violations)


def no_smaller_timestamp_appears(history: History) -> CheckerResult:
    """Each page holds every message up to its greatest timestamp, so no smaller timestamp appears later.

    "Every message" includes messages that only later operations return.
    """
    topics_by_id, violations, checked = topics(history), [], 0
    for page in select(history, "page"):
        items = {timestamp for timestamp, _ in page["result"]["items"]}
        low, high = covered_range(page)
        greatest = min(high, max(items, default=-1))
        missing = [
            each for each in topics_by_id[page["arguments"]["topic"]].between(low, greatest) if each not in items
        ]
        checked += len(items)
        violations += [f"{_name(page)} lacks {each}, and holds {greatest}" for each in missing]
    return CheckerResult(checked, violations)


def pages_are_in_order(history: History) -> CheckerResult:
    """Timestamps of a page are distinct, in the order that its bounds require, and within its bounds."""
    violations, checked = [], 0
    for page in select(history, "page"):
        timestamps = [timestamp for timestamp, _ in page["result"]["items"]]
        ascending = timestamps if page["arguments"]["oldest"] is not None else timestamps[::-1]
        low, high = covered_range(page)
        checked += 1
        if any(earlier >= later for earlier, later in pairwise(ascending)):
            violations.append(f"{_name(page)} is not in order: {timestamps}")
        if len(timestamps) > page["arguments"]["limit"] or any(not low <= each <= high for each in timestamps):
            violations.append(f"{_name(page)} holds more than was requested: {timestamps}")
    return CheckerResult(checked, violations)


def flags_of_pages_are_true(history: History) -> CheckerResult:
    """A flag is true if such a message, older or newer, was acknowledged before, and false if none ever existed."""
    topics_by_id, violations, checked = topics(history), [], 0
    for page in (page for page in select(history, "page") if page["result"]["items"]):
        topic, timestamps = topics_by_id[page["arguments"]["topic"]], [each for each, _ in page["result"]["items"]]
        beyond = {
            "older": topic.between(0, min(timestamps) - 1),
            "newer": topic.between(max(timestamps) + 1, NO_UPPER_BOUND),
        }
        for flag, existing in beyond.items():
            checked += 1
            if page["result"][flag] and not existing:
                violations.append(f"{_name(page)} says that {flag} messages exist, and none ever did")
            acknowledged = [each for each in existing if topic.acknowledged_at.get(each, page["begin"]) < page["begin"]]
            if not page["result"][flag] and acknowledged:
                violations.append(f"{_name(page)} says that no {flag} messages exist, and some were acknowledged")
    return CheckerResult(checked, violations)


def messages_are_stored_once(history: History) -> CheckerResult:
    """An acknowledged text is stored once, a refused one never, and nobody ever sees it with another timestamp.

    A reply that was also sent to the topic is stored once in each.
    """
    seen: dict[tuple[str, str], set[int]] = defaultdict(set)
    stored: set[tuple[str, str]] = set()
    for page in select(history, "page"):
        for timestamp, text in page["result"]["items"]:
            seen[page["arguments"]["topic"], text].add(timestamp)
            if page["process"] == FINAL:
                stored.add((page["arguments"]["topic"], text))
    outcomes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for operation in select(history, *POSTS, outcome=None):
        arguments = operation["arguments"]
        key = arguments["topic"], arguments["text"]
        outcomes[key].add(operation["outcome"])
        if operation["outcome"] == "ok":
            seen[key].add(operation["result"]["timestamp"])
        if "also_to" in arguments:
            outcomes[arguments["also_to"], arguments["text"]].add(operation["outcome"])
    violations = [f"{text} was seen at {sorted(ts)}" for (_, text), ts in seen.items() if len(ts) > 1]
    violations += [
        f"{key[1]} was acknowledged and is lost" for key in outcomes if "ok" in outcomes[key] and key not in stored
    ]
    violations += [
        f"{key[1]} was refused and is stored" for key in outcomes if outcomes[key] == {"fail"} and key in stored
    ]
    violations += [f"{key[1]} was never posted" for key in stored - outcomes.keys()]
    return CheckerResult(len(outcomes), violations)


def _name(page: RecordedOperation) -> str:
    shown = {name: value for name, value in page["arguments"].items() if value is not None and name != "topic"}
    return f"{page['process']}'s page {shown} at {page['begin']:.3f}"
