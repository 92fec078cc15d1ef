"""What storage counts for Prometheus; /metrics shows it. Names are `noroshi_` plus what is counted, with its unit."""

from prometheus_client import Counter, Gauge, Histogram, generate_latest

BATCH_MEMBERS = Histogram(
    "noroshi_commit_members",
    "Changes that were committed together, by kind of stream.",
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
    "noroshi_commit_retries", "Group commits that started over after a conflict, by kind of stream.", ["kind"]
)
HOT_PAGE_READS = Counter("noroshi_pool_reads", "Reads of hot topics, by whether the pool could answer.", ["outcome"])
EVENTS_RECEIVED = Counter("noroshi_hub_events", "Events that the hub handed on, by where they came from.", ["source"])
SUBSCRIBERS = Gauge("noroshi_hub_subscribers", "Subscriptions that follow a stream in this process.")
SUBSCRIBER_OVERFLOWS = Counter("noroshi_hub_overflows", "Times that a subscriber fell behind and went on from the log.")
REDIS_DISCONNECTS = Counter("noroshi_hub_disconnects", "Times that the hub lost its connection to Redis.")
CALL_START_DELAY_S = Histogram(
    "noroshi_call_start_delay_seconds",
    "From the moment that a call was to start until it was handed to the telephony side.",
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5),
)
CALL_ANSWERS = Counter(
    "noroshi_call_starts", "Calls by what the telephony side answered; TooLate: not sent.", ["answer"]
)
CALLS_LATE = Counter("noroshi_calls_late", "Starts that took longer than 100 ms at a service that ignores notAfter.")
ACTIVE_BROKERS = Gauge("noroshi_call_brokers", "Organizations that this process dials for.")
FEED_ITEMS_PUSHED = Counter(
    "noroshi_feed_items", "Items pushed into home feeds, by whether the database took them.", ["outcome"]
)
MAIL_EVENTS = Counter("noroshi_mail_events", "Delivery events that were read, by what they count as.", ["outcome"])
MAIL_EVENTS_AGGREGATED = Counter("noroshi_mail_folded", "Delivery events that were folded into the address book.")
MAIL_AGGREGATION_SECONDS = Histogram(
    "noroshi_mail_fold_seconds",
    "From the start of a fold until it was durable.",
    buckets=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
MAIL_LOOKUPS = Counter("noroshi_mail_lookups", "Lookups in the address book, by whether they were let in.", ["outcome"])
MAIL_COMPARISONS = Counter(
    "noroshi_mail_shadow", "Addresses that both books were asked for, by whether they agree.", ["outcome"]
)
BOUNCE_RATE = Gauge("noroshi_mail_bounce_rate", "Bounced of sent on the current UTC day, 0 to 1.", ["organization"])
DOMAIN_BOUNCE_RATE = Gauge(
    "noroshi_mail_domain_bounce_rate",
    "Bounced of sent on the current UTC day, 0 to 1, of the worst few domains with enough mail.",
    ["organization", "domain"],
)


def process_metrics() -> str:
    """What this process counted so far, in Prometheus's text format."""
    return generate_latest().decode()
