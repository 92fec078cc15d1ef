"""Prometheus metrics of storage and jobs, shown by /metrics. Names start with `noroshi_` and end with the unit.

No label names an organization, a user or a mail domain, because /metrics needs no token.
"""

from prometheus_client import Counter, Gauge, Histogram, generate_latest

BATCH_MEMBERS = Histogram(
    "noroshi_commit_members",
    "Changes in each group commit, by kind of stream.",
    ["kind"],
    buckets=(1, 2, 5, 10, 20, 50, 100),
)
COMMIT_SECONDS = Histogram(
    "noroshi_commit_seconds",
    "From the start of a group commit until it was durable, by kind of stream.",
    ["kind"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5),
)
COMMIT_RETRIES = Counter(
    "noroshi_commit_retries", "Group commits that were repeated after a conflict, by kind of stream.", ["kind"]
)
REFUSED_CHANGES = Counter(
    "noroshi_refused_changes",
    "Changes that were refused because too many waited for the same stream, by kind of stream.",
    ["kind"],
)
REFUSED_LOOKUPS = Counter(
    "noroshi_refused_lookups", "Lookups that were refused because too many ids waited in one batch loader."
)
EVENTS_RECEIVED = Counter("noroshi_hub_events", "Events that the hub delivered, by source.", ["source"])
SUBSCRIBERS = Gauge("noroshi_hub_subscribers", "Stream subscriptions in this process.")
SUBSCRIBER_OVERFLOWS = Counter(
    "noroshi_hub_overflows", "Times that a subscriber fell behind and continued from the event log."
)
REDIS_DISCONNECTS = Counter("noroshi_hub_disconnects", "Lost connections of the hub to Redis.")
PRUNING_DELAY_S = Gauge(
    "noroshi_pruning_delay_seconds",
    "For how long the oldest event of the log has been expired, while this worker prunes events.",
)
FILE_PRUNING_DELAY_S = Gauge(
    "noroshi_file_pruning_delay_seconds",
    "For how long the oldest file that is not attached has been expired, while this worker deletes files.",
)
CALL_START_DELAY_S = Histogram(
    "noroshi_call_start_delay_seconds",
    "From the planned start of a call until it was sent to the telephony provider.",
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5),
)
CALL_ANSWERS = Counter(
    "noroshi_call_starts", "Call starts by the telephony provider's answer. TooLate: not sent.", ["answer"]
)
CALLS_LATE = Counter("noroshi_calls_late", "Call starts later than 100 ms at a provider that ignores notAfter.")
ACTIVE_BROKERS = Gauge("noroshi_call_brokers", "Organizations whose calls this process starts.")
FEED_ITEMS_PUSHED = Counter(
    "noroshi_feed_items", "Items pushed into home feeds, by whether the database accepted them.", ["outcome"]
)
MAIL_EVENTS = Counter("noroshi_mail_events", "Delivery events that were read, by how they count.", ["outcome"])
MAIL_EVENTS_AGGREGATED = Counter(
    "noroshi_mail_aggregated", "Delivery events that were aggregated into the address book."
)
MAIL_AGGREGATION_SECONDS = Histogram(
    "noroshi_mail_aggregation_seconds",
    "From the start of an aggregation until it was durable.",
    buckets=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
MAIL_LOOKUPS = Counter(
    "noroshi_mail_lookups", "Lookups in the address book, by whether they were admitted.", ["outcome"]
)
MAIL_COMPARISONS = Counter(
    "noroshi_mail_shadow",
    "Addresses that were looked up in both address books, by whether the answers agree.",
    ["outcome"],
)


def process_metrics() -> str:
    """Returns all metrics of this process in Prometheus's text format."""
    return generate_latest().decode()
