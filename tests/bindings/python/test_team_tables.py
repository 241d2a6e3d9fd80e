"""Parameters whose rows the processes of a team own. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import pytest

import tenon
from test_team import needs_engine, together


def test_tables_give_the_model_of_one_process(tmp_path):
    needs_engine()
    ids = np.arange(60, dtype=np.int32) * 53 % 600
    samples = {"item": ids, "rating": (ids % 5).astype(np.float32)}

    def trained_with(path, team=None, tables=()):
        item = tenon.layer.data("item", tenon.data_type.integer_value(600))
        rating = tenon.layer.data("rating", tenon.data_type.dense_vector(1))
        vector = tenon.layer.embedding(item, vocabulary=600, size=4, name="items")
        cost = tenon.layer.square_error(tenon.layer.fc(vector, size=1, name="prediction"), rating, name="cost")
        parameters = tenon.parameters.create(cost, seed=1, tables=tables, team=team)
        arrays = samples | {"rating": samples["rating"][:, None]}
        tenon.train(cost, parameters, arrays, updater="adam", batch_size=8, passes=2, shards=3, team=team)
        parameters.save(path)
        return parameters

    trained_with(tmp_path / "one.safetensors")

    def work(rank, team):
        parameters = trained_with(tmp_path / f"{rank}.safetensors", team, "items.weight")
        with pytest.raises(tenon.error.UnsupportedError, match="items.weight"):
            parameters["items.weight"]

    together(work, tmp_path)
    assert (tmp_path / "0.safetensors").read_bytes() == (tmp_path / "one.safetensors").read_bytes()
    assert not (tmp_path / "1.safetensors").exists()
    with pytest.raises(tenon.error.InvalidError, match="a tenon.Team"):
        trained_with(tmp_path / "x", team="two", tables="items.weight")
