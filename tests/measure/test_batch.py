"""What a sample is: long enough for the timer, cold as a whole, the same on both sides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci.measure.batch import Survey, cold, cold_parts, event_tick, hot, pair_count, survey_launches

H200_L2 = 60 << 20
H200_TICK_S = 32e-9

surveys = st.lists(
    st.builds(
        Survey,
        launch_s=st.floats(min_value=1e-6, max_value=1.0),
        set_bytes=st.integers(min_value=1 << 15, max_value=1 << 34),
    ),
    min_size=1,
    max_size=2,
)


@given(surveys, st.sampled_from([H200_TICK_S, 1.024e-6]))
def test_a_cold_batch_is_long_enough_and_leaves_the_cache_behind(
    found: list[Survey], tick_s: float
) -> None:
    batch = cold(found, l2_bytes=H200_L2, tick_s=tick_s)
    fastest = min(survey.launch_s for survey in found)
    smallest = min(survey.set_bytes for survey in found)
    assert batch.launches * fastest >= max(0.5e-3, 1000 * tick_s) * (1 - 1e-12)
    assert batch.sets >= 2
    assert batch.sets * smallest >= 2 * H200_L2
    assert set(batch.orders()[0]) == set(range(batch.sets))


@given(surveys, st.sampled_from([H200_TICK_S, 1.024e-6]))
def test_the_parts_of_a_cold_batch_go_round_more_than_the_cache_before_a_set_comes_again(
    found: list[Survey], tick_s: float
) -> None:
    batch = cold_parts(found, l2_bytes=H200_L2, tick_s=tick_s)
    fastest = min(survey.launch_s for survey in found)
    smallest = min(survey.set_bytes for survey in found)
    assert batch.launches * fastest >= max(0.5e-3, 1000 * tick_s) * (1 - 1e-12)
    used = [number for order in batch.orders() for number in order]
    assert len(used) % batch.sets == 0
    assert used == [launch % batch.sets for launch in range(len(used))]
    assert batch.sets * smallest >= 2 * H200_L2 or batch.sets >= 4096
    assert batch.sets < 2 * cold(found, l2_bytes=H200_L2, tick_s=tick_s).sets


def test_a_slow_kernel_on_small_operands_is_not_sampled_over_all_sets_at_once() -> None:
    found = [Survey(launch_s=75e-6, set_bytes=3 << 18)]
    batch = cold_parts(found, l2_bytes=H200_L2, tick_s=H200_TICK_S)
    assert (batch.launches, batch.sets, batch.parts) == (7, 161, 23)
    micro = [Survey(launch_s=3e-6, set_bytes=3 << 18)]
    assert cold_parts(micro, l2_bytes=H200_L2, tick_s=H200_TICK_S).parts == 1


@given(surveys)
def test_a_hot_batch_stays_on_one_set(found: list[Survey]) -> None:
    assert set(hot(found, tick_s=H200_TICK_S).orders()[0]) == {0}


def test_the_cold_batch_of_a_small_and_of_a_large_product() -> None:
    small = cold([Survey(launch_s=3e-6, set_bytes=3 << 18)], l2_bytes=H200_L2, tick_s=H200_TICK_S)
    assert (small.launches, small.sets) == (320, 160)
    large = cold([Survey(launch_s=3e-3, set_bytes=3 << 26)], l2_bytes=H200_L2, tick_s=H200_TICK_S)
    assert (large.launches, large.sets) == (2, 2)


@given(st.floats(min_value=1e-4, max_value=1.0))
def test_the_number_of_pairs_is_even_and_within_its_limits(sample_s: float) -> None:
    pairs = pair_count(sample_s)
    assert pairs % 2 == 0
    assert 10 <= pairs <= 300


def test_tiny_operands_do_not_make_endless_batches() -> None:
    tiny = cold([Survey(launch_s=1.0, set_bytes=4)], l2_bytes=H200_L2, tick_s=H200_TICK_S)
    assert tiny.sets == 4096


def test_short_samples_are_taken_more_often() -> None:
    assert pair_count(0.1e-3) > pair_count(0.5e-3) > pair_count(5e-3) == 10


def test_a_launch_is_surveyed_over_half_a_millisecond() -> None:
    assert survey_launches(1e-4) == 5
    assert survey_launches(1.0) == 1


@given(st.sampled_from([H200_TICK_S, 1.024e-6]), st.lists(st.integers(50, 90), min_size=60))
def test_the_tick_is_the_commonest_step(tick_s: float, lengths: list[int]) -> None:
    steps = {b - a for a in lengths for b in lengths if b > a}
    found = event_tick([length * tick_s for length in lengths])
    if 1 in steps and len(set(lengths)) > 30:
        assert abs(found - tick_s) < 2e-9


def test_times_without_a_step_give_the_coarsest_tick() -> None:
    assert event_tick([5e-6] * 64) == event_tick([]) == event_tick([5e-6, 5e-3]) == 1.024e-6
