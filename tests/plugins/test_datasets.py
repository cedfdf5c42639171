"""Hugging Face datasets: tables of the chosen rows and columns, shared where Arrow allows it."""

from __future__ import annotations

import numpy as np
import pytest

import interop
from interop.errors import RefusedError, UnknownValueError

pytestmark = pytest.mark.extra("datasets")

X = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.fixture
def dataset():
    import datasets

    return datasets.Dataset.from_dict({"x": X, "y": [1, 2, 3], "t": ["a", "b", "c"]})


def address(column, depth):
    """Return the address of the numbers of a column of a table, under so many lists."""
    values = column.chunk(0)
    for _ in range(depth):
        values = values.values
    return values.buffers()[1].address


def test_columns_are_shared(dataset):
    """A column of numbers, or of lists of one length, has the memory of the dataset's table."""
    for name, expected, depth in (("x", X, 1), ("y", [1, 2, 3], 0)):
        result = interop.convert(dataset[name], to="numpy", copy=False)
        assert result.tolist() == expected
        assert result.ctypes.data == address(dataset.data.table.column(name), depth)
        assert not result.flags.writeable
    assert interop.convert(dataset["x"], to="torch", dtype="float32").tolist() == X
    assert interop.spec(dataset["x"]).shape == (3, 2)


def test_a_dataset_is_the_table_of_its_columns(dataset):
    """Columns of one dtype are one array; the format chooses columns, and texts are refused."""
    numbers = dataset.select_columns(["y"])
    assert interop.convert(numbers, to="numpy", copy=False).tolist() == [[1], [2], [3]]
    chosen = dataset.with_format("torch", columns=["x"])
    assert interop.convert(chosen, to="numpy", copy=False).tolist() == X
    with pytest.raises(RefusedError):
        interop.convert(dataset, to="numpy")


def test_selected_rows_are_the_selected_ones(dataset):
    """Rows that are selected, shuffled or filtered are those, in their order."""
    for chosen, rows in (
        (dataset.select([2, 0]), [2, 0]),
        (dataset.filter(lambda row: row["y"] > 1), [1, 2]),
        (dataset.select([1, 1]), [1, 1]),
    ):
        expected = [X[row] for row in rows]
        assert interop.convert(chosen["x"], to="torch").tolist() == expected
        assert interop.convert(chosen.with_format("numpy", columns=["x"]), to="numpy").tolist() == (
            expected
        )


def test_selected_rows_are_found_by_public_ways_alone(dataset):
    """Without the private table of their numbers the rows are the same, if more slowly."""
    import datasets

    from interop_plugins.datasets import table_of

    class Public:
        """What is public of a dataset."""

        def __init__(self, hidden):
            self.hidden = hidden

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            return getattr(self.hidden, name)

    squares = datasets.Dataset.from_dict(
        {"x": [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]},
        features=datasets.Features({"x": datasets.Array2D((2, 2), "float32")}),
    )
    for whole in (dataset, squares):
        for chosen in (whole, whole.select([1, 0]), whole.select([1, 1]).with_format("numpy")):
            table = table_of(Public(chosen))
            assert table.schema == table_of(chosen).schema
            assert table.equals(table_of(chosen))
            assert table.num_rows == len(chosen)


def test_fixed_sizes_and_arrays_of_two_axes():
    """Lists of a fixed length and the arrays of datasets' own types keep their axes."""
    import datasets

    matrices = np.arange(12.0).reshape(3, 2, 2)
    features = datasets.Features(
        {
            "m": datasets.Array2D((2, 2), "float32"),
            "x": datasets.List(datasets.Value("float32"), length=2),
        }
    )
    dataset = datasets.Dataset.from_dict({"m": matrices.tolist(), "x": X}, features=features)
    for name, expected in (("m", matrices), ("x", X)):
        result = interop.convert(dataset[name], to="numpy", copy=False)
        assert result.dtype == np.float32
        assert result.tolist() == np.asarray(expected).tolist()


def test_ragged_nulls_and_fields():
    """Rows of several lengths are padded on consent, nulls refused, and fields are columns."""
    import datasets

    dataset = datasets.Dataset.from_dict(
        {"r": [[1.0], [2.0, 3.0]], "n": [1, None], "s": [{"a": 1}, {"a": 2}]}
    )
    assert interop.convert(dataset["r"], to="torch.jagged").values().tolist() == [1, 2, 3]
    padded = interop.convert(dataset["r"], to="numpy", allow="pad")
    assert padded.tolist() == [[1, 0], [2, 3]]
    with pytest.raises(RefusedError):
        interop.convert(dataset["n"], to="numpy")
    assert interop.convert(dataset["s"]["a"], to="numpy").tolist() == [1, 2]


def test_batches_and_transforms(dataset):
    """A formatted batch is a tree whose texts pass; a dataset with a transform is no array."""
    batch = interop.convert_tree(dataset.with_format("numpy")[:2], to="torch")
    assert batch["x"].tolist() == X[:2]
    assert list(batch["t"]) == ["a", "b"]
    transformed = dataset.with_transform(lambda batch: batch)
    for value in (transformed, transformed["x"]):
        with pytest.raises(UnknownValueError):
            interop.convert(value, to="numpy")


def test_a_file_that_is_mapped_is_shared_read_only(dataset, tmp_path):
    """A dataset on disk is mapped: NumPy shares it, and torch copies unless that is permitted."""
    import datasets

    dataset.save_to_disk(tmp_path / "rows")
    column = datasets.load_from_disk(tmp_path / "rows")["y"]
    result = interop.convert(column, to="numpy", copy=False)
    assert (result.tolist(), result.flags.writeable) == ([1, 2, 3], False)
    with pytest.raises(RefusedError):
        interop.convert(column, to="torch", copy=False)
    assert interop.convert(column, to="torch").tolist() == [1, 2, 3]
