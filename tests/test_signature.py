"""Signatures have a text form that parses back, and say what is wrong with other texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tack.model.dtypes import DTYPES, promote
from tack.model.signature import MAX_RANK, ArraySpec, ScalarSpec, Signature
from tack.model.targets import CPU_LEVELS, Target

dims = st.lists(st.none() | st.integers(0, 2**40), max_size=MAX_RANK).map(tuple)
specs = st.builds(ScalarSpec, st.sampled_from(list(DTYPES.values()))) | st.builds(
    ArraySpec,
    st.sampled_from(list(DTYPES.values())),
    dims,
    st.sampled_from(["contiguous", "strided"]),
)
signatures = st.lists(specs, max_size=6).map(lambda s: Signature(tuple(s)))


@given(signatures)
def test_the_text_form_parses_back(signature):
    assert Signature.parse(str(signature)) == signature


@given(signatures, st.data())
def test_white_space_does_not_count(signature, data):
    spaced = "".join(
        c + data.draw(st.sampled_from(["", " ", "  "])) if c in ",[]():;" else c
        for c in str(signature)
    )
    assert Signature.parse(spaced) == signature


@given(st.text(alphabet="f32i6u8[]():,; x-+.éstrided\n", max_size=20))
def test_any_text_parses_or_is_refused_with_its_words(text):
    try:
        signature = Signature.parse(text)
    except ValueError as error:
        assert repr(text) in str(error)  # noqa: PT017
    else:
        assert Signature.parse(str(signature)) == signature


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f23[:]", "did you mean 'f32'?"),
        ("float", "unknown type 'float'"),
        ("f32[]", "a dimension is ':' or a number"),
        ("f32[-1]", "a dimension is ':' or a number, not '-1'"),
        (f"f32[{', '.join(':' * 9)}]", "has 9 dimensions; at most 8"),
        ("f32[:; stride]", "after ';' stands 'strided', not 'stride'"),
        ("f32[:;]", "after ';' stands 'strided', not ''"),
        ("f32[; strided]", "a dimension is ':' or a number"),
        ("f32[(:)]", "a dimension is ':' or a number, not '(:)'"),
        ("f32[:],", "'' is neither"),
        ("f32[:", "neither a scalar"),
    ],
)
def test_a_wrong_text_is_named(text, words):
    with pytest.raises(ValueError, match="signature") as error:
        Signature.parse(text)
    assert words in str(error.value)


@pytest.mark.parametrize("left", DTYPES.values())
@pytest.mark.parametrize("right", DTYPES.values())
def test_promotion_holds_both_ranges_and_is_the_narrowest_that_does(left, right):
    both = promote(left, right)
    assert both is promote(right, left)
    if left.is_float or right.is_float:
        assert both is not None
        assert both.is_float
        # What is only stored is f32 beside anything else.
        stored = left is not right and (left.is_stored_float or right.is_stored_float)
        floats = {d.name: d.bits for d in (left, right) if d.is_float}
        neither = set(floats) == {"f16", "bf16"}  # has the other's precision and range
        least = 32 if neither or stored else 0
        assert both.bits == max(least, *floats.values())
        return
    holding = [
        d
        for d in DTYPES.values()
        if not d.is_float
        and d.minimum <= min(left.minimum, right.minimum)
        and d.maximum >= max(left.maximum, right.maximum)
    ]
    if both is None:
        assert not holding
    else:
        assert both in holding
        assert both.bits == min(d.bits for d in holding)


def test_a_level_runs_on_itself_and_above():
    names = [name for name in CPU_LEVELS if name.startswith("x86-64")]
    for low, name in enumerate(names):
        for high, device in enumerate(names):
            assert Target("cpu", name).runs_on(device) == (low <= high)
    assert not Target("cpu", "aarch64").runs_on("x86-64-v4")
    assert not Target("cpu", "x86-64").runs_on("")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x86-64-v3", "not <backend>:<architecture>"),
        ("cpu:x86_64-v3", "did you mean 'cpu:x86-64-v3'?"),
        ("gpu:sm_90", "not <backend>:<architecture>"),
    ],
)
def test_a_wrong_target_is_named(text, words):
    with pytest.raises(ValueError, match="target") as error:
        Target.parse(text)
    assert words in str(error.value)


@pytest.mark.parametrize("name", CPU_LEVELS)
def test_targets_parse_back(name):
    assert str(Target.parse(f"cpu:{name}")) == f"cpu:{name}"
