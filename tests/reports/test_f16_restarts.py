"""F16: resumes with other values, and the best model. Each case is a line of docs/reports.md.

SPDX-License-Identifier: Apache-2.0
"""

import json
import re
import shutil

import pytest


def data(scratch, rows=40):
    scratch.write("data.csv", "a,b,label\n" + "".join(f"{i % 7},{i % 5},{(i % 7 > 3) * 1}\n" for i in range(rows)))


def started(scratch, passes=2, **keys):
    data(scratch)
    reader = {"type": "csv", "files": ["data.csv"], "columns": ["x = a, b: f32", "label: i32 < 2"], "batch": 8, "shuffle": True}
    scratch.job(reader, passes=passes, checkpoint={"folder": "kept"}, **keys)
    scratch.run("train", "job.toml")


def change(scratch, before, after):
    text = (scratch.folder / "job.toml").read_text()
    assert before in text
    scratch.write("job.toml", text.replace(before, after))


def test_a_schedule_instead_of_a_rate(scratch):
    """A schedule that the first training had not: refused with the keys that --resume-with takes, then taken"""
    started(scratch)
    change(scratch, "learning_rate = 0.01", 'learning_rate = 0.01\nschedule = { type = "cosine", steps = 100 }')
    message = scratch.run("train", "job.toml", "--resume", "--passes", "4", code=78)
    assert "resume_with accepts these: updater.schedule" in message, message
    scratch.run("train", "job.toml", "--passes", "4", "--resume-with", "updater.schedule")


def test_an_edited_job(scratch):
    """The rate was edited in the job: --resume-with KEY takes it, and the change stays in the model's metadata"""
    started(scratch)
    change(scratch, "learning_rate = 0.01", "learning_rate = 0.001")
    message = scratch.run("train", "job.toml", "--resume", "--passes", "4", code=78)
    assert "updater.learning_rate" in message and "0.01 in the checkpoint" in message
    shown = scratch.run("train", "job.toml", "--passes", "4", "--resume-with", "updater.learning_rate")
    assert "0.01 in the checkpoint, 0.001 now" in shown
    names = sorted(path.name for path in (scratch.folder / "kept").glob("checkpoint-*.safetensors"))
    assert "0.001 now" in scratch.run("model", "show", f"kept/{names[-1]}")


def test_a_batch_in_the_middle(scratch):
    """Another minibatch size, first larger, then back, by the key of the job and by the name in messages"""
    started(scratch)
    for passes, change in ((3, "reader.train.batch=16"), (4, "reader.batch=8")):
        out = scratch.run("train", "job.toml", "--passes", str(passes), "--resume-with", change, "--log-format", "json")
        ends = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        assert any(end.get("event") == "end_pass" for end in ends), out


@pytest.mark.parametrize("key, words", [
    ("layer.score.size=3", "cannot change"), ("updater.type=adam", "cannot change"), ("seed=2", "cannot change"),
    ("updater.learning_rat=1", 'did you mean "learning_rate"')])  # fmt: skip
def test_keys_that_cannot_change(scratch, key, words):
    """A layer, another updater, another seed or a misspelt key is refused by its name"""
    started(scratch)
    message = scratch.run("train", "job.toml", "--passes", "3", "--resume-with", key, code=78)
    assert words in message, message


def test_the_best_is_saved(scratch):
    """[save_best] with early stopping saves the model of the best test, and says which pass that was"""
    data(scratch)
    reader = {"type": "csv", "files": ["data.csv"], "columns": ["x = a, b: f32", "label: i32 < 2"], "batch": 8}
    scratch.job(reader, passes=30)
    text = (scratch.folder / "job.toml").read_text() + "[reader.test]\n" + "".join(
        f"{key} = {value}\n" for key, value in (("type", '"csv"'), ("files", '["data.csv"]'), ("batch", 8),
                                                ("columns", '["x = a, b: f32", "label: i32 < 2"]')))  # fmt: skip
    scratch.write("job.toml", text + '[early_stop]\npatience = 2\n[save_best]\nmetric = "cost"\n')
    out = scratch.run("train", "job.toml", "--set", "updater.learning_rate=2.5", "--log-format", "json")
    events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    tests = [event["test"]["cost"] for event in events if event["event"] == "test"]
    saved = next(event for event in events if event["event"] == "saved")
    assert saved["best"]["value"] == min(tests)
    cost = re.search(r'"cost":([0-9.eE+-]+)', scratch.run("test", "job.toml", "--log-format", "json"))
    assert float(cost.group(1)) == pytest.approx(min(tests), rel=1e-5)


def test_a_folder_that_is_gone(scratch):
    """One command for the first start and all others: the folder was deleted between, so it begins anew and says so"""
    started(scratch)
    shutil.rmtree(scratch.folder / "kept")
    out = scratch.run("train", "job.toml", "--resume")
    assert (scratch.folder / "kept").exists(), out
