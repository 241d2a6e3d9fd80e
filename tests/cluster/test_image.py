"""The image of pods, by `tenon dist image`: its files run alone. SPDX-License-Identifier: Apache-2.0"""

import os
import subprocess

import pytest

import fake_user
import training


def image(*words, path=None):
    environment = {**os.environ, **({} if path is None else {"PATH": path})}
    done = subprocess.run([training.TENON, "dist", "image", *words], check=False, env=environment, capture_output=True,
                          text=True, timeout=100, stdin=subprocess.DEVNULL)  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_pods_train_from_its_files(tmp_path, laptop):
    context = laptop.cluster.folder.parent / "context"
    code, output = image("team/tenon:1", "--context", str(context))
    assert code == 0 and f"{context} has the Containerfile of team/tenon:1" in output, output
    lines = (context / "Containerfile").read_text().splitlines()
    assert lines[1:3] == ["FROM scratch", "COPY root/ /"] and "USER 65532:65532" in lines
    assert not list((context / "root").rglob("*test*")), "nothing but what is needed"
    place = laptop.cluster.folder.parent / "other"
    place.mkdir()
    with fake_user.running(place, "--image", f"{training.IMAGE}={context / 'root/usr'}") as cluster:
        other = training.Laptop(tmp_path, cluster)
        code, output = other.run("--processes", "2")
        assert code == 0, output
        assert other.trained() == other.trained_alone()


def test_a_base_and_further_files(tmp_path):
    (tmp_path / "words.txt").write_text("words\n")
    context = tmp_path / "context"
    more = ("--from", "python:3.11-slim", "--file", f"{tmp_path}/words.txt:/data/w.txt")
    code, output = image("t", "--context", str(context), *more)
    assert code == 0, output
    assert "FROM python:3.11-slim\n" in (context / "Containerfile").read_text()
    assert (context / "root/data/w.txt").read_text() == "words\n"
    assert not (context / "root/etc/passwd").exists(), "that of the base stays"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 64, "TAG is missing"),
        (("a", "b"), 64, 'expected one TAG, got "a" and "b"'),
        (("-t",), 64, "unknown option '-t'"),
        (("A b",), 64, 'expected the name of an image, got "A b"'),
        (("t", "--from"), 64, "--from: a value is missing"),
        (("t", "--context", "/tmp"), 64, "--context: /tmp exists"),
        (("t", "--plugin-set", "/nowhere.toml"), 78, "the plugins cannot be listed"),
        (("t", "--file", "/nowhere"), 66, "--file: there is no /nowhere"),
    ],
)
def test_mistakes(words, code, said):
    refused, output = image(*words)
    assert refused == code and said in output, output


def test_without_a_builder_the_folder_is_left(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "env", "basename", "chmod", "cp", "cut", "dirname", "du", "grep", "ldd", "mkdir", "mktemp", "readlink",
                 "rm", "sed", "sort", "cat"):  # fmt: skip
        (tools / name).symlink_to(f"/usr/bin/{name}")
    code, output = image("t", path=str(tools))
    assert code == 66 and "there is no podman, buildah or docker; /tmp/" in output, output
    folder = output.split("docker; ")[1].split(" has")[0]
    assert os.path.exists(folder + "/Containerfile")
    subprocess.run(["rm", "-rf", folder], check=True)
