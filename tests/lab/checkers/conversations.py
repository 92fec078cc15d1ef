"""Conversations: closed to strangers, one thread for each message with exact counts, and found as soon as written."""

from collections import Counter, defaultdict

from tests.lab.checkers import CheckerResult
from tests.lab.history import FINAL, History, select


def strangers_learn_nothing(history: History) -> CheckerResult:
    """A stranger's attempt is refused as if the object did not exist, and a stranger's search finds nothing."""
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
