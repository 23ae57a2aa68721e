import pytest

from carpediem.lab.recipes import recipe
from carpediem.lab.titles import config_title, recipe_title, setting_name

OWN = recipe("paper") | {"recipe": "paper", "data": "cifar10", "net": "resnet-50", "optimizer": "sgd"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "paper"),
        ({"dropout": 0.0}, "paper with dropout 0"),
        ({"batch_size": 64, "warm_up": 3, "decay": "none"}, "paper with batch size 64, decay none and warm-up 3"),
        ({"image_size": 64, "normalisation": "imagenet"}, "paper with normalisation imagenet and images of 64 px"),
        ({"pressure": 7.0, "draws": "systematic", "iterations": 5}, "paper"),  # told elsewhere
    ],
)  # fmt: skip
def test_what_differs_from_the_recipe_is_named(changes, expected):
    assert recipe_title(OWN | changes) == expected


def test_settings_may_be_passed_over_and_a_recipe_or_a_setting_may_be_unknown():
    assert recipe_title(OWN | {"warm_up": 15}, but=("warm_up",)) == "paper"
    assert recipe_title(OWN | {"recipe": "of tomorrow"}) == "of tomorrow"
    assert recipe_title({"recipe": "paper"}) == "paper"


def test_fine_tuning_names_what_differs_from_the_study_of_its_data():
    named = {"recipe": "fine-tuning", "data": "flowers-102", "net": "efficientnet-lite0"}
    own = OWN | recipe("fine-tuning", data="flowers-102", net="efficientnet-lite0") | named
    assert config_title(own) == "Flowers-102, EfficientNet-Lite0, SGD, recipe fine-tuning"
    assert recipe_title(own | {"dropout": 0.5}) == "fine-tuning with dropout 0.5"
    assert recipe_title(own | {"image_size": 48}) == "fine-tuning with images of 48 px"
    assert recipe_title(own | {"weights": None}) == "fine-tuning with random first weights"
    assert config_title(own | {"iterations": 2_448}).endswith("recipe fine-tuning, 2,448 iterations")


def test_a_title_names_the_length_where_it_is_not_the_recipes():
    assert config_title(OWN) == "CIFAR-10, ResNet (L=50), SGD, recipe paper"
    assert config_title(OWN | {"iterations": 2000}).endswith("recipe paper, 2,000 iterations")
    assert config_title(OWN | {"iterations": 1}).endswith("recipe paper, 1 iteration")


def test_the_name_of_a_file_has_letters_that_every_system_takes():
    assert setting_name(OWN) == "cifar10_resnet-50_sgd_paper"
    own = OWN | {"data": "./my photos", "dropout": 0.0, "iterations": 2000}
    assert setting_name(own) == "my-photos_resnet-50_sgd_paper-with-dropout-0_2000-iterations"
