"""What the product has to do, by number, and where that comes from. Each has a test that names it in its docstring.

`Case 12` is a behaviour of the reference system that is kept, or beaten where it says so; `BR-07` a fault that was
reported against a program of this kind; `F1`, `L1` and `S4` a fault, a load and an attack of the reliability matrix.
"""

from typing import Final

CASES: Final[dict[int, str]] = {
    1: "a provider that learns from one run tells the next one, in its session only",
    2: "providers are called in order before a run, and in reverse after it",
    3: "a provider that fails before the model fails the run, by name; those that had begun are told",
    4: "a run whose model fails before any tool was started leaves nothing in the history",
    5: "what a provider adds is its own, is not stored by default, and leaves the caller's object alone",
    6: "attribution that is there already stays",
    7: "origin sessions are listed once each, in the order in which they were seen",
    8: "tools and instructions of a provider are there for its run only",
    9: "a provider's chat middleware stands inside the agent's, around every model call",
    10: "a provider cannot stand around runs",
    11: "two providers of one id are refused, naming both; the history that is added by itself counts",
    12: "a session without a history gets one; one that loads is enough",
    13: "a history that only stores does not take the place of the one that is added",
    14: "who keeps the conversation, the sidecar or the model's service, is decided per run",
    15: "an audit beside the primary history may keep what providers added; the primary does not",
    16: "an audit may name whose messages it keeps",
    17: "a history may keep inputs only, or outputs only",
    18: "two histories that load are refused",
    19: "the same words said three times are three turns",
    20: "a transcript that is sent again, with its ids, is stored once",
    21: "history kept call by call is whole after each call, and no call is ever left dangling before the model",
    22: "history kept call by call and a service that keeps it too is an error that says so",
    23: "any session id is one file inside its folder, also where case does not count",
    24: "a corrupt line names file and line, hurts no other session, and a torn end can be gone on from",
    25: "state comes back as it was; tuples come back as lists",
    26: "state that is no JSON is refused with its path; an object with a type key is data",
    27: "what is done to a session that was handed out does not change what is stored",
    28: "two runs on one session: the second is refused, or waits",
    29: "a tool reads the run's values through its context, which its schema does not show",
    30: "what function middleware sets is seen by that call only",
    31: "what is for the chat client never reaches a tool",
    32: "a tool writes session state that the host reads; without a session it is told there is none",
    33: "what run middleware writes into the session's state is read by that run's tools",
    34: "a delegated agent shares state if it is asked to, gets the values of the run, and never mixes histories",
    35: "an unannotated ctx is the context only where the schema is given",
    36: "three fixed error results; details only where they are allowed",
    37: "three rounds that fail close the run with one more call without tools",
    38: "at the cap of model calls one more closes the run, with a fixed text if it says nothing",
    39: "calls of one answer overlap in time, and their results keep the order",
    40: "one call that needs consent holds its whole answer, which goes on after a restart, in its order",
    41: "a rejection is told in fixed words; another input leaves the calls out, and they can still be answered",
    42: "an answer that matches no recorded request, or comes twice, runs nothing",
    43: "a rule for exact arguments counts for those alone, one for a tool for every call of it",
    44: "function middleware may answer in a tool's place, or end the loop",
    45: "a stream is stored once; a cancelled one tells failure hooks its text, and frees the session",
    46: "a value is read from the last assistant text only",
    47: "files of one scope are shared by its sessions; without a scope each session has its own",
    48: "a memory's files have flat names; its index and descriptions are hidden, and the index lists fifty at most",
    49: "what a user said comes back in that user's next session, behind the input, and in nobody else's",
    50: "memory on demand injects nothing and offers one tool with one required text",
    51: "what providers and histories say is neither searched with nor kept, unless a filter says so",
    52: "a memory that cannot be searched or written costs no run",
    53: "facts about the user are learnt, asked for, kept, and never invented",
    54: "the last messages of runs that succeeded stand before the query of a search",
}
"""Behaviours, by their number."""

FAULTS: Final[frozenset[str]] = frozenset(
    {"BR-01", "BR-02", "BR-03", "BR-04", "BR-05", "BR-06", "BR-07", "BR-08", "BR-09", "BR-10", "BR-11", "BR-12",
     "BR-13", "BR-14", "BR-15", "BR-16", "BR-18", "BR-19", "BR-20", "BR-21", "BR-22", "BR-23", "BR-25"}
)  # fmt: skip
"""Reported faults, each for its whole kind."""

MATRIX: Final[frozenset[str]] = frozenset(
    {"F1", "F2", "F5", "F6", "F7", "F8", "F11", "F12", "F15", "F16", "L1", "L5", "L7", "S4"}
)
"""Rows of the reliability matrix that have their part in the suite."""
