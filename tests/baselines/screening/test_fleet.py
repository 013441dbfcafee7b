"""What the tests of a class do together."""

from baselines.screening.fleet import Move, view_fleet


def moves(count, onset=-1, larger=True, first=0):
    return [Move(f"t{first + number}", onset, larger) for number in range(count)]


def test_many_tests_that_move_alike_within_two_nights_are_a_reason():
    found = view_fleet([*moves(3, -1), *moves(4, -2, first=3), *moves(2, -9, first=7)], 20)
    assert (found.alike, found.larger, round(found.share, 2)) == (7, True, 0.35)
    assert found.reasons == ("7 of 20 tests moved alike (slower, or more) within 2 nights",)


def test_moves_of_both_directions_nights_apart_or_of_few_tests_are_none():
    assert view_fleet([*moves(5), *moves(5, larger=False, first=5)], 20).reasons == ()
    assert view_fleet([*moves(5, -1), *moves(5, -4, first=5)], 20).reasons == ()
    assert view_fleet(moves(5), 5).reasons == ()
    assert view_fleet([], 0).reasons == ()


def test_a_frozen_build_that_moves_and_a_new_fingerprint_are_reasons():
    found = view_fleet(moves(2), 100, canaries="the frozen build moved", fingerprint={"driver": "1 -> 2"})
    assert found.reasons == ("the environment differs: driver 1 -> 2", "the frozen build moved")


def test_a_fleet_that_moves_as_one_over_a_fortnight_is_counted_by_its_fullest_nights():
    found = view_fleet([Move(f"t{number}", -number % 14, True) for number in range(200)], 200)
    assert found.alike == 30
