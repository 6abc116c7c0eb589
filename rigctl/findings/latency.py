"""Sentences on round trips: under load, between traffic classes, of messages that wait for a TCP timer, of requests."""

from typing import Final

from rigctl.findings import Weight, error, good, note, warning

LATENCY_SHORT: Final = good(
    "latency-short",
    "Under load the round trip of {stream} stays short in test {test}: {loaded} (p50), against {idle} when idle{most}.",
    weight=Weight.DETAIL,
)
LATENCY_RISE: Final = note(
    "latency-rise",
    "Under load the round trip of {stream} grows from {idle} to {loaded} (p50) in test {test}{queue}{most}.",
    "A smaller window, a lower rate or a queue that drops earlier (fq_codel) shortens the round trip.",
    Weight.COMPARISON,
)
MARKED: Final = note(
    "classes-alike",
    "No class has priority, although some are marked (DSCP).",
    "Check that the path keeps the marks, and that its slowest device has a queue for each mark.",
    Weight.BOTTLENECK,
)
UNMARKED: Final = note(
    "classes-unmarked",
    "No class has priority, because none is marked (DSCP).",
    "Mark the classes, as with dscp: EF, and give the slowest device of the path a queue for each mark.",
    Weight.BOTTLENECK,
)
OTHER_SETTINGS: Final = note(
    "round-trip-other", "With {settings}, the median round trip of {size} is {trip}.", weight=Weight.COMPARISON
)
WAIT: Final = warning(
    "round-trip-waits",
    "{trips} of size {size} took about {time} in test {test}: {cause}.",
    "Measure with nodelay: true to see whether this is the cause.",
)
PEAKS: Final = note(
    "round-trip-peaks",
    "Round trips have two peaks in {tests}, {worst}at about {low} and {high}.",
    "Measure with busy_poll: true to see whether processors that sleep and wake up late are the cause.",
)
VARY: Final = warning(
    "repetitions-vary",
    "Repetitions vary by more than {bound:.0f} % of their mean in {tests}.",
    "Measure them again with `retest: {{when: variation > 5%}}`.",
)
_BUCKETS: Final = "The virtual links are shaped by token buckets, which do not delay a burst that fits into the bucket:"
SHAPED_TRIPS: Final = note(
    "messages-shaped",
    f"{_BUCKETS} on a real link, a short message also takes the time to send its frames.",
    weight=Weight.RIG,
)
SHAPED_BLASTS: Final = note("messages-shaped", f"{_BUCKETS} short tests may exceed the ceiling.", weight=Weight.RIG)
SENDER_LATE: Final = warning(
    "requests-late",
    "{stream}: the sender itself was late in {tests}: it came to {pct} % of the requests more than 1 ms after their "
    "time, at most {most} after it. Its lateness is part of these times.",
    "Give its thread a processor of its own (placement), more flows (parallel), or a lower per_second.",
    Weight.SUSPECT,
)
REQUESTS_HELD_BACK: Final = note(
    "requests-held",
    "{stream}: {pct} % of the requests waited in {tests} until their connection took more bytes.",
    "Give the pair more flows (parallel), a larger window, or a lower per_second.",
    Weight.COMPARISON,
)
REQUESTS_LOST: Final = warning(
    "requests-unanswered",
    "{stream}: {count} of {due} requests had no answer 2 s after the end of {tests}. Percentiles take them as longest.",
    "Look at {receiver} and the path to it; or lower per_second.",
    Weight.LOSS,
)
REQUEST_SEARCH: Final = note(
    "requests-search",
    "{which}: the highest rate is {rate} requests/s{pairs} {within}, found in {trials}{beyond}.",
    weight=Weight.COMPARISON,
)
REQUEST_SEARCH_SENDER: Final = warning(
    "requests-search",
    "{which}: {rate} requests/s{pairs} passed {within}, in {trials}{beyond}.",
    "Give the sender's thread a processor of its own (placement) or more flows (parallel), and search again.",
    Weight.COMPARISON,
)
REQUEST_SEARCH_NONE: Final = warning(
    "requests-search-none",
    "{which}: no rate down to {tried} requests/s{pairs} passed within {bound} in {trials}; there {why}.",
    weight=Weight.COMPARISON,
)
REQUEST_SEARCH_UNMEASURED: Final = error(
    "requests-search-unmeasured",
    "{which}: no rate was found, because no trial could be measured ({trials}); the notes give the reasons.",
    weight=Weight.COMPARISON,
)
REQUESTS_STALLED: Final = warning(
    "requests-stalled",
    "{stream}: replies stopped for up to {time} in {tests}: {count} requests took over 50 ms longer than half of all, "
    "and not because the sender itself was late.",
    "Look at what else {receiver} did meanwhile, and for an outage or losses on the path.",
    Weight.LOSS,
)
RATE_NOT_REACHED: Final = warning(
    "requests-rate-not-reached",
    "{stream}: requests came faster than they were answered in {tests}, {offered} of them a second and {rate} answers"
    "{which}: times rise for as long as such a test lasts.",
    "Compare times at a per_second that is answered.",
    Weight.BOTTLENECK,
)
