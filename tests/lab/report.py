"""The table of a run: operations of each area, faults, and what the checkers found."""

import itertools
from collections import Counter, defaultdict

from tests.lab.checkers.catalogue import CHECKERS
from tests.lab.history import Histories

SHOWN_VIOLATIONS = 5


def operations_table(history: Histories, began_s: float, ended_s: float) -> list[str]:
    """Returns a line for each area: operations by outcome, and the longest time without a success during the run."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    successes: dict[str, list[float]] = defaultdict(list)
    for row in history:
        if row["area"] != "faults" and began_s <= row["begin"] <= ended_s:
            outcomes[row["area"]][row["outcome"]] += 1
            if row["outcome"] == "ok":
                successes[row["area"]].append(row["end"])
    lines = [f"{'area':<12} {'ok':>7} {'fail':>7} {'unknown':>7}   longest time without a success"]
    for area, counts in outcomes.items():
        times = [began_s, *sorted(successes[area]), max(ended_s, *successes[area], began_s)]
        longest = max(later - earlier for earlier, later in itertools.pairwise(times))
        lines.append(f"{area:<12} {counts['ok']:>7} {counts['fail']:>7} {counts['unknown']:>7}   {longest:.1f} s")
    return lines


def faults_table(history: Histories) -> list[str]:
    """Returns a line for each fault, and how often it was injected."""
    counts = Counter(row["operation"] for row in history if row["area"] == "faults")
    return [f"{'fault':<12} {'count':>7}", *(f"{name:<12} {count:>7}" for name, count in counts.items())]


def checks_table(history: Histories) -> tuple[list[str], int]:
    """Runs every checker. Returns a line for each, the first violations, and the number of violations."""
    lines, total = [f"{'checker':<36} {'judged':>8} {'violations':>10}"], 0
    for name, checker in CHECKERS.items():
        verdict = checker(history)
        total += len(verdict.violations)
        lines.append(f"{name:<36} {verdict.judged:>8} {len(verdict.violations):>10}")
        lines += [f"    {violation[:300]}" for violation in verdict.violations[:SHOWN_VIOLATIONS]]
    return lines, total
