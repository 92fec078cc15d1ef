"""The tables of an outage: answers during the outage, the time until the product was as fast as before, and memory."""

import math
import statistics
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.lab.history import History, RecordedOperation, select

WINDOW_S = 5.0
READS = {"page", "readUpTo", "homeFeed", "addressBook"}
WRITES = {"post", "react", "markRead", "membership", "createPost", "schedule", "cancel", "recordDeliveries", "launch"}
TimedSamples = list[tuple[float, float]]
"""When each operation began, and how long it took; infinite if it failed. Sorted."""


@dataclass
class RunPhases:
    """The times that separate the phases of a run, and samples of memory as program, time and MiB."""

    begin: float = 0.0
    outage_begin: float = 0.0
    outage_end: float = 0.0
    """When the operator has freed the disk, or started the missing servers."""
    served: float = 0.0
    """When the missing servers served again. From this moment on the product may recover."""
    end: float = 0.0
    memory: list[tuple[str, float, float]] = field(default_factory=list)


def samples(history: History) -> dict[str, TimedSamples]:
    """Returns the durations of reads and writes, and the delays of events that subscribers waited for."""
    found: dict[str, TimedSamples] = {"reads": [], "writes": [], "events": []}
    for row in history:
        kind = "reads" if row["operation"] in READS else "writes" if row["operation"] in WRITES else None
        if kind is not None:
            duration = row["end"] - row["begin"] if row["outcome"] == "ok" else math.inf
            found[kind].append((row["begin"], duration))
    for row in select(history, "subscription"):
        found["events"] += _delays(row)
    return {kind: sorted(values) for kind, values in found.items()}


def _delays(subscription: RecordedOperation) -> Iterable[tuple[float, float]]:
    ready = subscription["result"]["ready"]
    for _, kind, timestamp, _, received in subscription["result"]["events"]:
        if kind == "MessagePosted" and timestamp / 1e6 >= ready:
            yield timestamp / 1e6, received - timestamp / 1e6


def percentiles(values: TimedSamples, begin: float, end: float) -> tuple[float, float]:
    """Returns p50 and p99 of the operations that began in this time."""
    chosen = values[bisect_left(values, (begin, -1.0)) : bisect_left(values, (end, -1.0))]
    if not chosen:
        return math.nan, math.nan
    durations = sorted(duration for _, duration in chosen)
    return statistics.median_low(durations), durations[min(len(durations) - 1, int(len(durations) * 0.99))]


def slowest_window(values: TimedSamples, begin: float, end: float) -> tuple[float, float]:
    """Returns the greatest p50 and the greatest p99 of the windows of WINDOW_S in this time."""
    starts = [begin + WINDOW_S * n for n in range(int((end - begin) / WINDOW_S))]
    found = [each for start in starts if not math.isnan((each := percentiles(values, start, start + WINDOW_S))[0])]
    return max((p50 for p50, _ in found), default=math.nan), max((p99 for _, p99 in found), default=math.nan)


def recovery_s(values: TimedSamples, phases: RunPhases) -> float | None:
    """Returns the seconds until a window began that was no slower than the slowest window before the outage.

    The seconds count from the time at which the servers served again. None if there is no such window.
    """
    p50, p99 = slowest_window(values, phases.begin, phases.outage_begin)
    for seconds in range(int(phases.end - phases.served - WINDOW_S)):
        start = phases.served + seconds
        found = percentiles(values, start, start + WINDOW_S)
        if found[0] <= p50 and found[1] <= p99:
            return seconds
    return None


def errors_table(history: History, phases: RunPhases) -> list[str]:
    """Returns a line for each code of an answer, with its count, the time until the answer, and the commonest message.

    Counts operations that began after the outage did, and before the servers served again.
    """
    times: dict[str, list[float]] = defaultdict(list)
    messages: dict[str, Counter[str]] = defaultdict(Counter)
    for row in history:
        if row["operation"] in READS | WRITES and phases.outage_begin <= row["begin"] < phases.served:
            code = "ok" if row["outcome"] == "ok" else row["result"]["code"]
            times[code].append(row["end"] - row["begin"])
            messages[code][row["result"]["message"] if code != "ok" else ""] += 1
    lines = [f"{'answers in the outage':<24} {'count':>8} {'p50 s':>7} {'max s':>7}   most frequent message"]
    for code, values in sorted(times.items()):
        middle, (message, _) = statistics.median(values), messages[code].most_common(1)[0]
        lines.append(f"{code:<24} {len(values):>8} {middle:>7.2f} {max(values):>7.2f}   {message[:90]}")
    return lines


def recovery_table(history: History, phases: RunPhases) -> list[str]:
    """Returns a line for reads, writes and events: p50 and p99 of each phase in ms, and the recovery time."""
    phase_ends = [
        (phases.begin, phases.outage_begin),
        (phases.outage_begin, phases.outage_end),
        (phases.end - 30, phases.end),
    ]
    lines = [
        f"The servers served {phases.served - phases.outage_end:.1f} s after the outage. Figures are p50/p99 in ms.",
        f"{'':<8} {'before':>14} {'slowest 5 s':>14} {'during':>14} {'after':>14}   recovery",
    ]
    for kind, values in samples(history).items():
        before, during, after = (percentiles(values, *each) for each in phase_ends)
        slowest, seconds = slowest_window(values, phases.begin, phases.outage_begin), recovery_s(values, phases)
        texts = [f"{_ms(p50)}/{_ms(p99)}" for p50, p99 in (before, slowest, during, after)]
        cells = " ".join(f"{text:>14}" for text in texts)
        lines.append(f"{kind:<8} {cells}   {'never' if seconds is None else f'{seconds} s'}")
    return lines


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f}" if math.isfinite(seconds) else "-" if math.isnan(seconds) else "error"


def memory_table(phases: RunPhases) -> list[str]:
    """Returns a line for each program: its greatest resident memory in MiB before, during and after the outage."""
    bounds = [
        (phases.begin, phases.outage_begin),
        (phases.outage_begin, phases.outage_end),
        (phases.end - 30, phases.end),
    ]
    found: dict[str, list[float]] = {}
    for name, at, size in phases.memory:
        row = found.setdefault(name, [0.0] * len(bounds))
        for number, (begin, end) in enumerate(bounds):
            row[number] = max(row[number], size if begin <= at < end else 0.0)
    lines = [f"{'resident MiB':<12} {'before':>8} {'during':>8} {'after':>8}"]
    return lines + [f"{name:<12} " + " ".join(f"{size:>8.0f}" for size in row) for name, row in found.items()]


def acknowledged_line(history: History, phases: RunPhases, violations: int) -> str:
    """Returns how many writes were acknowledged in each phase, and how many violations the checkers found."""
    bounds = [(phases.begin, phases.outage_begin), (phases.outage_begin, phases.served), (phases.served, phases.end)]
    counts = [
        sum(row["outcome"] == "ok" and row["operation"] in WRITES and begin <= row["begin"] < end for row in history)
        for begin, end in bounds
    ]
    before, during, after = counts
    return f"acknowledged writes: {before} before, {during} during, {after} after; violations: {violations}"


def outage_tables(history: History, phases: RunPhases, violations: int) -> list[list[str]]:
    """Returns all tables of an outage."""
    return [
        errors_table(history, phases),
        recovery_table(history, phases),
        memory_table(phases),
        [acknowledged_line(history, phases, violations)],
    ]
