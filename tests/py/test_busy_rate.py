"""The measure of a busy gateway, on calls made up for it."""

from billing_shell.books.gateway_book import Arrival, most_in_a_second
from billing_shell.busy_rate import BusyRate, ChargeCall, measure

SECOND = 1_000_000


def calls(*instants: float, refused: tuple[float, ...] = ()) -> list[ChargeCall]:
    return [
        ChargeCall(round(at * SECOND), f"key {number}", at in refused)
        for number, at in enumerate(instants)
    ]


def measured(made: list[ChargeCall], deaths: tuple[float, ...] = ()) -> BusyRate:
    return measure(
        made,
        until_us=1_000 * SECOND,
        retry_after=2.0,
        longest_answer=0.8,
        deaths_us=[round(at * SECOND) for at in deaths],
    )


def test_arrivals_after_the_first_are_divided_by_the_time_since() -> None:
    rate = measured(calls(*(number / 10 for number in range(101))))

    assert (rate.arrivals, rate.work, rate.gross, rate.net) == (100, 10.0, 10.0, 10.0)


def test_a_silence_that_nobody_ordered_counts_as_work() -> None:
    assert measured(calls(0.0, 5.0)).net_seconds == 5.0


def test_of_a_silence_after_a_429_no_more_is_taken_off_than_it_ordered() -> None:
    assert measured(calls(0.0, 0.1, 2.1, refused=(0.0,))).paused == 2.0
    assert measured(calls(0.0, 0.1, 5.1, refused=(0.0,))).paused == 2.0


def test_a_429_long_before_a_silence_did_not_order_it() -> None:
    made = calls(*(number / 5 for number in range(10)), 5.0, refused=(0.0,))

    assert measured(made).paused == 0.0


def test_death_is_taken_off_up_to_the_longest_start() -> None:
    assert measured(calls(0.0, 3.0), deaths=(0.1,)).dead == 3.0
    assert measured(calls(0.0, 30.0), deaths=(0.1,)).dead == 10.0


def test_work_ends_with_the_last_new_key() -> None:
    again = ChargeCall(9 * SECOND, "key 0", refused=False)

    assert measured([*calls(0.0, 1.0), again]).work == 1.0


def test_no_calls_are_no_rate() -> None:
    assert measured([]).net == 0.0


def test_the_busiest_second_is_half_open_and_starts_anywhere() -> None:
    def most(*instants: float) -> int:
        return most_in_a_second(
            Arrival(round(at * SECOND), "charge", "", refused=False) for at in instants
        )

    assert most() == 0
    assert most(0.0, 1.0) == 1
    assert most(0.0, 0.999999) == 2
    assert most(0.0, 0.6, 0.9, 1.2, 1.59) == 4
