"""What training has shown of each sample: a record, and the columns that it holds."""

from carpediem.record.column import Column
from carpediem.record.columns.first_learnt import FirstLearnt
from carpediem.record.columns.forgetting import Forgetting
from carpediem.record.columns.given_label import GivenLabel
from carpediem.record.columns.last_labels import LastLabels
from carpediem.record.columns.last_loss import LastLoss
from carpediem.record.columns.last_turn import LastTurn
from carpediem.record.columns.latest import Latest
from carpediem.record.columns.mean_margin import MeanMargin
from carpediem.record.columns.moments import Moments
from carpediem.record.columns.running_margin import RunningMargin
from carpediem.record.columns.times_right import TimesRight
from carpediem.record.columns.times_seen import TimesSeen
from carpediem.record.observed import Observed
from carpediem.record.record import Record
from carpediem.record.step import Step

__all__ = [
    "Column",
    "FirstLearnt",
    "Forgetting",
    "GivenLabel",
    "LastLabels",
    "LastLoss",
    "LastTurn",
    "Latest",
    "MeanMargin",
    "Moments",
    "Observed",
    "Record",
    "RunningMargin",
    "Step",
    "TimesRight",
    "TimesSeen",
]
