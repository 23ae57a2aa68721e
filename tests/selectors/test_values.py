import torch

from carpediem.selectors.values import placed_values


def test_of_an_index_that_repeats_only_the_last_value_is_placed():
    indices, scores = torch.tensor([3, 1, 3, 0, 3]), torch.tensor([9.0, 2.0, 8.0, 4.0, 7.0])
    values, where = placed_values("values", scores, indices, 5, torch.device("cpu"))
    assert sorted(zip(where.tolist(), values.tolist(), strict=True)) == [(0, 4.0), (1, 2.0), (3, 7.0)]
