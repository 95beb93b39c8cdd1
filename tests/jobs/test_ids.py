"""Ids encode numbers: each number has one id, and no other text is an id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.jobs.model import ALPHABET, job_id, seq_of


@pytest.mark.req("JOB-OBJ-3")
@given(st.integers(0, (1 << 60) - 1))
def test_an_id_decodes_to_its_number(seq: int) -> None:
    assert seq_of(job_id(seq)) == seq


@pytest.mark.req("JOB-OBJ-3")
@given(st.lists(st.integers(0, (1 << 60) - 1), min_size=2, max_size=5))
def test_ids_sort_like_their_numbers(numbers: list[int]) -> None:
    assert sorted(map(job_id, numbers)) == [job_id(seq) for seq in sorted(numbers)]


@pytest.mark.req("JOB-API-3")
@given(st.text(st.sampled_from(ALPHABET + "ILOUabil_- +٣"), min_size=12, max_size=12))
def test_only_characters_of_the_alphabet_make_an_id(digits: str) -> None:
    assert (seq_of(f"job_{digits}") is not None) == all(digit in ALPHABET for digit in digits)


@pytest.mark.parametrize(
    "text", ["", "job_", "job_00000000001", "job_0000000000001", "Job_000000000001", "aud_000000000001"]
)
def test_text_of_another_shape_is_not_an_id(text: str) -> None:
    assert seq_of(text) is None
