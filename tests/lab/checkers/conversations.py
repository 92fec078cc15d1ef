"""Conversations: closed to others, also after a block or departure; exact threads and quotes; messages are found."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.lab.checkers import CheckerResult
from tests.lab.history import FINAL, History, select


def strangers_learn_nothing(history: History) -> CheckerResult:
    """A stranger's attempt is refused as if the object did not exist, and a stranger's search finds nothing.

    A person who has left is a stranger until somebody adds the person again.
    """
    attempts = list(select(history, "intrude", outcome=None))
    violations = [
        f"{attempt['process']}'s {attempt['arguments']['attempt']} at {attempt['begin']:.3f}: {attempt['result']}"
        for attempt in attempts
        if (attempt["outcome"] == "ok" and attempt["result"])
        or (attempt["outcome"] == "fail" and attempt["result"]["code"] in {"FORBIDDEN", "CONFLICT"})
    ]
    return CheckerResult(len(attempts), violations)


def strangers_write_one_message(history: History) -> CheckerResult:
    """At most one message of a stranger is accepted as long as nobody has accepted the conversation."""
    asked = Counter(operation["arguments"]["stranger"] for operation in select(history, "ask"))
    violations = [f"{stranger} wrote {count} messages" for stranger, count in asked.items() if count > 1]
    return CheckerResult(len(asked), violations)


def messages_have_one_thread(history: History) -> CheckerResult:
    """All replies to a message are in one thread."""
    threads: dict[str, set[str]] = defaultdict(set)
    for operation in select(history, "post"):
        if "topic" in operation["result"]:
            threads[operation["arguments"]["topic"]].add(operation["result"]["topic"])
    violations = [f"{name} are in {sorted(ids)}" for name, ids in threads.items() if len(ids) > 1]
    return CheckerResult(len(threads), violations)


def reply_counts_are_exact(history: History) -> CheckerResult:
    """At the end `replyCount` of a message is the number of replies in its thread."""
    replies: dict[str, set[int]] = defaultdict(set)
    for page in select(history, "page"):
        if page["process"] == FINAL:
            replies[page["arguments"]["topic"]] |= {timestamp for timestamp, _ in page["result"]["items"]}
    counts = {
        f"replies of {each['arguments']['parent']}": each["result"]["replies"] for each in select(history, "thread")
    }
    violations = [
        f"replyCount is {count} instead of {len(replies[name])}: {name}"
        for name, count in counts.items()
        if count != len(replies[name])
    ]
    return CheckerResult(len(counts), violations)


def acknowledged_messages_are_found(history: History) -> CheckerResult:
    """A search that begins after a message was acknowledged finds it, and nothing else: each text is one word."""
    acknowledged_at = {operation["arguments"]["text"]: operation["end"] for operation in select(history, "post")}
    violations, checked = [], 0
    for search in select(history, "search"):
        text = search["arguments"]["text"]
        if acknowledged_at.get(text, search["begin"]) < search["begin"]:
            checked += 1
            if search["result"] != [text]:
                violations.append(f"{search['process']}'s search for {text} found {search['result']}")
    return CheckerResult(checked, violations)


def blocked_people_add_nothing(history: History) -> CheckerResult:
    """From the end of `blockUser` to the begin of `unblockUser`, no message is committed to the conversation of two.

    No attempt to write succeeds then, and all pages have the same newest message.
    """
    violations, checked = [], 0
    for topic, begin, end in _blocks(history):
        during = [
            each
            for each in select(history, "defy", "page", outcome=None)
            if each["arguments"]["topic"] == topic and begin <= each["begin"] and each["end"] <= end
        ]
        checked += len(during)
        written = [each for each in during if each["operation"] == "defy" and each["outcome"] == "ok"]
        violations += [f"{each['result']} was written at {each['begin']:.3f}, during a block" for each in written]
        newest = {
            max((timestamp for timestamp, _ in each["result"]["items"]), default=0)
            for each in during
            if each["operation"] == "page" and each["outcome"] == "ok"
        }
        if len(newest) > 1:
            violations.append(f"{topic} has the newest messages {sorted(newest)} between {begin:.3f} and {end:.3f}")
    return CheckerResult(checked, violations)


def _blocks(history: History) -> Iterator[tuple[str, float, float]]:
    """Yields the topic, begin and end of each time in which a block existed for certain."""
    begins: dict[str, float] = {}
    for change in select(history, "block", outcome=None):
        topic = change["arguments"]["topic"]
        if change["arguments"]["change"] == "unblock":
            if topic in begins:
                yield topic, begins.pop(topic), change["begin"]
        elif change["outcome"] == "ok":
            begins[topic] = change["end"]


def quotes_show_their_message(history: History) -> CheckerResult:
    """At the end the quote of a message refers to the quoted message."""
    quotes = list(select(history, "quote"))
    violations = [
        f"{each['arguments']} shows {each['result']}"
        for each in quotes
        if each["result"] != each["arguments"]["quoted"]
    ]
    return CheckerResult(len(quotes), violations)


def followed_threads_are_exact(history: History) -> CheckerResult:
    """At the end a person follows the threads whose last change was to follow, each once.

    The person repeats a change until it succeeds, and writes nothing.
    """
    changes = {each["arguments"]["message"]: each["arguments"]["change"] for each in select(history, "followThread")}
    expected = sorted(message for message, change in changes.items() if change == "follow")
    shown = [sorted(each["result"]) for each in select(history, "followedThreads")]
    violations = [f"The followed threads are {each} instead of {expected}" for each in shown if each != expected]
    return CheckerResult(len(changes) * len(shown), violations)
