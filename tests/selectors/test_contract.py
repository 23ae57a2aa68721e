import pytest

from carpediem.testing import CONTRACT
from reference.selectors import SELECTORS


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", SELECTORS, ids=lambda make: make.__name__)
def test_selector_keeps_the_contract(make, check):
    check(make)


def test_every_check_says_in_one_sentence_what_is_promised():
    for check in CONTRACT:
        assert check.__doc__
        assert check.__doc__.strip().endswith(".")
        assert "\n" not in check.__doc__.strip()
