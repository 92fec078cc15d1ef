"""The tables of a run: operations of each area, faults, and the results of the checkers."""

import itertools
from collections import Counter, defaultdict

from tests.lab.checkers.catalogue import CHECKERS
from tests.lab.history import History

SHOWN_VIOLATIONS = 5


def operations_table(history: History, began_s: float, ended_s: float) -> list[str]:
    """Returns a line for each area: operations by outcome, and the longest time without a success during the run."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    successes: dict[str, list[float]] = defaultdict(list)
    for operation in history:
        if operation["area"] != "faults" and began_s <= operation["begin"] <= ended_s:
            outcomes[operation["area"]][operation["outcome"]] += 1
            if operation["outcome"] == "ok":
                successes[operation["area"]].append(operation["end"])
    lines = [f"{'area':<12} {'ok':>7} {'fail':>7} {'unknown':>7}   longest time without a success"]
    for area, counts in outcomes.items():
        times = [began_s, *sorted(successes[area]), max(ended_s, *successes[area], began_s)]
        longest = max(later - earlier for earlier, later in itertools.pairwise(times))
        lines.append(f"{area:<12} {counts['ok']:>7} {counts['fail']:>7} {counts['unknown']:>7}   {longest:.1f} s")
    return lines


def faults_table(history: History) -> list[str]:
    """Returns a line for each fault, and how often it was injected."""
    counts = Counter(operation["operation"] for operation in history if operation["area"] == "faults")
    return [f"{'fault':<12} {'count':>7}", *(f"{name:<12} {count:>7}" for name, count in counts.items())]


def checks_table(history: History) -> tuple[list[str], int]:
    """Runs every checker. Returns a line for each checker with its first violations, and the total of violations."""
    lines, total = [f"{'checker':<36} {'checked':>8} {'violations':>10}"], 0
    for name, checker in CHECKERS.items():
        result = checker(history)
        total += len(result.violations)
        lines.append(f"{name:<36} {result.checked:>8} {len(result.violations):>10}")
        lines += [f"    {violation[:300]}" for violation in result.violations[:SHOWN_VIOLATIONS]]
    return lines, total
