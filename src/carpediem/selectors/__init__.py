"""The methods, behind one interface."""

from carpediem.selectors.active_bias import ActiveBias
from carpediem.selectors.base import Selector
from carpediem.selectors.online_batch import OnlineBatch
from carpediem.selectors.random_batch import RandomBatch
from carpediem.selectors.recency_bias import RecencyBias
from carpediem.selectors.weighted_batch import WeightedBatch

__all__ = ["ActiveBias", "OnlineBatch", "RandomBatch", "RecencyBias", "Selector", "WeightedBatch"]
