import contextlib
import io
import os
import pickle
import pickletools
import warnings

import numpy as np
import pytest

from carpediem.lab.data import DataError
from carpediem.lab.data.pickles import read_pickled_dict
from lab.data.makers import hostile_pickle, python2_pickle

PLAIN = (bytes, str, int, float, list, tuple, dict, type(None))
VALUE = {b"data": np.arange(12, dtype=np.uint8).reshape(3, 4), b"labels": [1, 2, 3], b"name": b"batch"}


def test_the_tests_write_what_python_2_wrote():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the old name numpy.core is deprecated
        found = pickle.loads(python2_pickle(VALUE), encoding="bytes")
    assert np.array_equal(found[b"data"], VALUE[b"data"])
    assert found[b"labels"] == [1, 2, 3]


def test_python_2_s_pickles_are_read_with_text_keys():
    found = read_pickled_dict(python2_pickle(VALUE), where="batch")
    assert np.array_equal(found["data"], VALUE[b"data"])
    assert found["data"].dtype == np.uint8
    assert found["data"].flags.writeable
    assert (found["labels"], found["name"]) == ([1, 2, 3], b"batch")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4", "f4", "?"])
def test_every_protocol_of_python_3_is_read(protocol, order, dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype, order=order)
    value = {"data": array, "text": "é", "parts": (1, 2.5, None, True, b"x", {"a": [1]})}
    found = read_pickled_dict(pickle.dumps(value, protocol=protocol), where="batch")
    assert np.array_equal(found["data"], array)
    assert found["text"] == "é"
    assert found["parts"] == value["parts"]


def test_the_older_and_the_newer_name_of_numpy_s_core_are_both_known():
    old = pickle.dumps({"data": np.arange(3)}, protocol=2)
    for before, after in ((b"numpy._core", b"numpy.core"), (b"numpy.core", b"numpy._core")):
        found = read_pickled_dict(old.replace(before, after), where="batch")
        assert found["data"].tolist() == [0, 1, 2]


def test_a_pickle_that_runs_a_command_is_refused_by_name(monkeypatch):
    blob, called = hostile_pickle(), []
    monkeypatch.setattr(os, "system", called.append)
    with pytest.raises(DataError, match=r"batch asks for (nt|posix)\.system, .*do not trust this file"):
        read_pickled_dict(blob, where="batch")
    assert called == []


@pytest.mark.parametrize(
    "name",
    [
        "builtins eval",
        "__builtin__ eval",
        "builtins getattr",
        "os system",
        "subprocess Popen",
        "functools partial",
        "collections OrderedDict",
        "numpy load",
        "numpy ndarray.tofile",
        "numpy.core.multiarray scalar",
    ],
)
def test_every_other_name_is_refused(name):
    module, _, attribute = name.partition(" ")
    blob = b"c" + module.encode() + b"\n" + attribute.encode() + b"\n."
    with pytest.raises(DataError, match="asks for"):
        read_pickled_dict(blob, where="batch")


def test_a_name_off_the_stack_is_refused_as_well():
    blob = b"\x80\x04\x8c\x02os\x8c\x06system\x93."
    with pytest.raises(DataError, match=r"asks for os\.system"):
        read_pickled_dict(blob, where="batch")


def test_arrays_of_objects_are_refused():
    with pytest.raises(DataError, match="array of object, not of numbers"):
        read_pickled_dict(pickle.dumps({"data": np.array([{}, []], dtype=object)}), where="batch")


def test_a_pickle_cannot_change_the_reader_s_own_functions():
    # BUILD with a pair sets attributes: on a plain function it could replace the defaults.
    blob = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(N}X\x0c\x00\x00\x00__defaults__K\x01stb."
    pickletools.dis(blob, out=io.StringIO())
    with pytest.raises(DataError, match="tries to change"):
        read_pickled_dict(blob, where="batch")


def test_a_dtype_s_flags_are_not_taken_from_the_file():
    array = python2_pickle({b"data": np.arange(3, dtype=np.uint8)})
    flags = b"J\xff\xff\xff\xffJ\xff\xff\xff\xffJ\x00\x00\x00\x00"
    assert flags in array
    hostile = array.replace(flags, flags[:-4] + b"\x3f\x00\x00\x00")
    assert read_pickled_dict(hostile, where="batch")["data"].tolist() == [0, 1, 2]


def test_a_persistent_object_is_refused():
    with pytest.raises(DataError, match="outside of the file"):
        read_pickled_dict(b"Pthing\n.", where="batch")


@pytest.mark.parametrize(
    "blob", [b"}r\xff\xff\xff\x7f.", b"}p2147483647\n.", b"\x96" + b"\xff" * 7 + b"\x00."]
)
def test_lengths_beyond_the_file_cost_no_memory(blob):
    with pytest.raises(DataError, match=r"beyond its own length|not a whole pickle"):
        read_pickled_dict(blob, where="batch")


def test_a_frame_that_ends_inside_of_an_instruction_is_refused():
    blob = bytearray(pickle.dumps(VALUE, protocol=5))
    blob[3] = 57
    with pytest.raises(DataError, match="is framed wrongly"):
        read_pickled_dict(bytes(blob), where="batch")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_of_many_frames_are_read(protocol):
    value = {"data": np.zeros((100, 3072), dtype=np.uint8), "labels": list(range(50_000)), "names": ["x"] * 9}
    found = read_pickled_dict(pickle.dumps(value, protocol=protocol), where="batch")
    assert np.array_equal(found["data"], value["data"])
    assert found["labels"] == value["labels"]


def test_only_a_dictionary_will_do():
    with pytest.raises(DataError, match="must hold a pickled dict, got list"):
        read_pickled_dict(pickle.dumps([1]), where="batch")


def test_an_array_with_too_few_bytes_is_refused():
    blob = python2_pickle({b"data": np.zeros((3, 4), dtype=np.uint8)})
    lie = blob.replace(b"J\x03\x00\x00\x00J\x04", b"J\x05\x00\x00\x00J\x04")
    with pytest.raises(DataError, match="not a whole pickle"):
        read_pickled_dict(lie, where="batch")


def test_no_cut_of_a_pickle_passes():
    blob = python2_pickle(VALUE)
    for length in range(len(blob)):
        with pytest.raises(DataError, match=r"^batch "):
            read_pickled_dict(blob[:length], where="batch")


def test_random_damage_ends_in_a_data_error_or_in_plain_values():
    blob, generator = python2_pickle(VALUE), np.random.default_rng(0)
    for _ in range(2000):
        damaged = bytearray(blob)
        for place in generator.integers(2, len(blob), size=3):
            damaged[place] = generator.integers(0, 256)
        with contextlib.suppress(DataError):
            found = read_pickled_dict(bytes(damaged), where="batch")
            assert all(isinstance(value, (np.ndarray, *PLAIN)) for value in found.values())
