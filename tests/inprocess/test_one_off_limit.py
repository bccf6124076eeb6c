"""Where one-off runs can be found afterwards: the oldest ones are forgotten, but none that is still at work."""

from sidecar.sessions.tickets import KEPT_ONE_OFF_RUNS, Tickets


def test_the_oldest_run_is_forgotten_first() -> None:
    tickets = Tickets()
    forgotten = [tickets.remember_one_off(f"r{i}", f"s{i}") for i in range(KEPT_ONE_OFF_RUNS + 2)]

    assert [*filter(None, forgotten)] == [["s0"], ["s1"]]
    assert [tickets.one_off_session(f"r{i}") for i in range(3)] == [None, None, "s2"]


def test_a_run_that_is_still_at_work_is_kept_and_is_the_next_to_go_once_it_has_ended() -> None:
    tickets = Tickets()
    at_work = tickets.register(None, "r0")
    forgotten = [tickets.remember_one_off(f"r{i}", f"s{i}") for i in range(KEPT_ONE_OFF_RUNS + 1)]
    assert [*filter(None, forgotten)] == [["s1"]]
    assert tickets.one_off_session("r0") == "s0"

    tickets.forget(at_work)

    assert tickets.remember_one_off("last", "s") == ["s0"]


def test_runs_that_were_too_many_while_they_worked_are_forgotten_together() -> None:
    tickets = Tickets()
    at_work = [tickets.register(None, f"r{i}") for i in range(KEPT_ONE_OFF_RUNS + 2)]
    for i, ticket in enumerate(at_work):
        assert tickets.remember_one_off(ticket.run_id, f"s{i}") == []
    for ticket in at_work:
        tickets.forget(ticket)

    assert tickets.remember_one_off("last", "s") == ["s0", "s1", "s2"]
