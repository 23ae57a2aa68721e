"""What a run leaves about single samples: how it is kept, read back and sorted."""

import math

import numpy as np
import pytest

from carpediem.lab.gallery import against_label, gallery_rows, most_uncertain, recently_changed
from carpediem.lab.records import RecordError
from carpediem.lab.samples import (
    GALLERY,
    SAMPLES,
    TRAILS,
    read_gallery,
    read_samples,
    read_trails,
    sample_record,
    write_record,
)


def small_record():
    """Six samples: settled, torn, contradicted, contradicted less surely, changed late, never drawn."""
    window = np.array([[0] * 4, [0, 1, 0, 1], [2] * 4, [2, 2, 1, 2], [0, 0, 0, 1], [-1] * 4], dtype=np.int16)
    return sample_record(
        epochs=9,
        classes=("a", "b", "<script>"),
        label=np.array([0, 1, 1, 0, 1, 2]),
        window=window,
        times_drawn=np.array([4, 9, 7, 8, 5, 0]),
        last_change=np.array([-1, 7, 2, 5, 8, -1]),
        last_loss=np.array([0.1, 0.7, 3.0, 2.0, 0.4, np.nan], dtype=np.float32),
    )


def test_what_follows_from_the_windows_is_in_the_record():
    record = small_record()
    assert record.majority.tolist() == [0, 1, 2, 2, 0, -1]
    np.testing.assert_allclose(record.agreement, [1, 0.5, 0, 0, 0.25, np.nan])
    np.testing.assert_allclose(record.uncertainty[[0, 1, 5]], [0, math.log(2) / math.log(3), 1], rtol=1e-6)


def test_samples_worth_a_look_come_in_order():
    record = small_record()
    assert most_uncertain(record).tolist() == [1, 3, 4]
    assert most_uncertain(record, 1, label=0).tolist() == [3]
    assert recently_changed(record).tolist() == [4, 1, 3, 2]
    assert against_label(record).tolist() == [2, 3, 4]
    assert against_label(record, label=2).tolist() == []
    assert gallery_rows(record, np.array([5])).tolist() == [1, 2, 3, 4, 5]


def test_a_record_reads_back_as_it_was_written(tmp_path):
    record = small_record()
    write_record(tmp_path / SAMPLES, record)
    found = read_samples(tmp_path)
    assert found is not None
    assert (found.epochs, found.num_samples, found.classes) == (9, 6, ("a", "b", "<script>"))
    assert found.images is None
    for name in ("index", "label", "window", "uncertainty", "agreement", "times_drawn", "last_loss"):
        np.testing.assert_array_equal(getattr(found, name), getattr(record, name))


def test_what_was_not_written_is_none(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert read_samples(folder) is read_gallery(folder) is read_trails(folder) is None


@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: b"", lambda c: b"PK" + c[5:]])
def test_a_damaged_file_is_named(tmp_path, damage):
    for name, read in ((SAMPLES, read_samples), (GALLERY, read_gallery), (TRAILS, read_trails)):
        write_record(tmp_path / name, small_record())
        (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
        with pytest.raises(RecordError, match=f"{name} is damaged"):
            read(tmp_path)
