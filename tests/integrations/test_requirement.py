import pytest
import torch

from carpediem.integrations.requirement import require


def test_a_framework_that_is_not_there_is_asked_for_with_the_command_that_installs_it():
    with pytest.raises(ImportError) as refused:
        require("nosuchframework", ">=1")
    assert str(refused.value) == (
        "this integration needs nosuchframework >=1, which is not installed: "
        "pip install 'carpediem[nosuchframework]'"
    )


def test_a_version_outside_the_range_is_refused_with_both():
    with pytest.raises(ImportError) as refused:
        require("torch", ">=99")
    installed = str(torch.__version__).split("+")[0]
    assert f"supports torch >=99, installed is {installed}" in str(refused.value)


def test_a_version_in_the_range_is_accepted():
    require("torch", ">=2,<99")
