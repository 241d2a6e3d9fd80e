"""Trainings in a cluster: results, and what becomes of faults. SPDX-License-Identifier: Apache-2.0"""

import base64
import json
import re
import signal
import time

import pytest
import yaml

import fake_user
import training


def test_the_model_of_one_process_comes_back(laptop):
    began = time.monotonic()
    code, output = laptop.run("--processes", "3")
    assert code == 0, output
    assert time.monotonic() - began < 60
    assert laptop.trained() == laptop.trained_alone()
    assert "3 pods in the namespace \"default\"" in output and "pass 3/3" in output and "fetched model.safetensors" in output


def test_without_jobsets(tmp_path, tmp_path_factory, laptop):
    folder = tmp_path_factory.mktemp("plain")
    folder.chmod(0o755)
    with fake_user.running(folder, "--image", f"{training.IMAGE}={training.BUILD}", "--no-jobset") as cluster:
        other = training.Laptop(tmp_path, cluster)
        other.data = laptop.data
        code, output = other.run("--processes", "2", "--quiet")
        assert code == 0 and "epoch 1" not in output, output
        assert other.trained() == other.trained_alone()
        assert other.left() == {}


@pytest.mark.parametrize("context", ["certificate", "exec-v1", "token-file", "certificate-files", "exec-v1beta1"])
def test_credentials(laptop, context):
    code, output = laptop.run("--dry-run", context=context)
    assert code == 0 and "kind: \"JobSet\"" not in output, output
    code, output = laptop.run(context=context)
    assert code == 0, output


def test_a_credential_plugin_with_a_certificate(laptop):
    config = yaml.safe_load((laptop.cluster.folder / "kubeconfig").read_text())
    user = fake_user.Client(laptop.cluster.folder, "certificate").user
    texts = {name: base64.b64decode(user[f"client-{name.lower()}-data"]).decode() for name in ("Certificate", "Key")}
    status = {f"client{name}Data": text for name, text in texts.items()}
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    (laptop.folder / "answer").write_text(json.dumps(answer))
    plugin = {"apiVersion": version, "command": "cat", "args": [str(laptop.folder / "answer")], "interactiveMode": "Never"}
    config["users"].append({"name": "plugin", "user": {"exec": plugin}})
    cluster = next(each["context"]["cluster"] for each in config["contexts"] if each["name"] == "certificate")
    config["contexts"].append({"name": "plugin", "context": {"cluster": cluster, "user": "plugin"}})
    (laptop.folder / "kubeconfig").write_text(yaml.safe_dump(config))
    code, output = laptop.run("--quiet", context="plugin", KUBECONFIG=str(laptop.folder / "kubeconfig"))
    assert code == 0, output


@pytest.mark.parametrize(
    ("context", "code", "words"),
    [
        ("wrong-token", 77, r'the credentials of context "wrong-token" are not accepted \(401\): '),
        ("expired-certificate", 77, r"401|certificate"),
        ("exec-missing", 77, r'user \S+ of \S+kubeconfig: the credential plugin "\S+" is not found'),
        ("http", 64, r'context "http": credentials do not go to http://\S+, whose connection is not encrypted'),
        ("other-ca", 77, r"the certificate is not good: "),
        ("nowhere", 66, r'there is no context "nowhere"; there are: '),
    ],
)
def test_refused_access(laptop, context, code, words):
    refused, output = laptop.run(context=context)
    assert refused == code and re.search(words, output), output


def test_a_laptop_without_kubeconfig(laptop):
    code, output = laptop.run(context="", KUBECONFIG="/nowhere", HOME="/nowhere")
    assert code == 66 and "there is no kubeconfig" in output


def test_forbidden(laptop):
    laptop.cluster.control("forbid", verb="create", resource="secrets")
    code, output = laptop.run()
    assert code == 77, output
    assert re.search(r'cannot create secrets in the namespace "default" \(403\): secrets .*is forbidden: User ', output), output
    laptop.cluster.control("allow")
    laptop.cluster.control("forbid", verb="*", resource="pods/exec")
    code, output = laptop.run()
    assert code == 77 and "cannot create exec" in output, output
    laptop.cluster.control("allow")


def test_an_image_that_is_not_there(laptop):
    code, output = laptop.run("--image", "registry.example/absent:1")
    assert code == 78 and re.search(r"pod \S+ cannot begin \(\w+\): .*absent", output), output


def test_images_without_this_tenon(laptop, tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    folder.chmod(0o755)
    (folder / "empty/bin").mkdir(parents=True)
    (folder / "other/bin").mkdir(parents=True)
    other = folder / "other/bin/tenon-launch"
    other.write_text(f'#!/bin/sh\nTENON_POD_VERSION=0.0.9 exec "{training.BUILD}/bin/tenon-launch" "$@"\n')
    other.chmod(0o755)
    place = folder / "fake"
    place.mkdir()
    images = [f"--image={name}={folder / name}" for name in ("empty", "other")]
    with fake_user.running(place, *images) as cluster:
        laptop.cluster, cluster_before = cluster, laptop.cluster
        code, output = laptop.run("--image", "empty", "--processes", "2")
        assert code == 128 and re.search(r"its process has ended with code 128 \(StartError: .*tenon-launch", output), output
        code, output = laptop.run("--image", "other")
        assert code == 78 and "and who has started this training 0.0.9; they must be the same" in output, output
        laptop.cluster = cluster_before


def test_an_image_with_other_plugins(laptop, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugins")
    folder.chmod(0o755)
    (folder / "other/bin").mkdir(parents=True)
    (folder / "other/bin/fc.so").write_bytes(b"another build")
    tenon = folder / "other/bin/tenon"
    change = 's|"file": ".*/layers/fc.so"|"file": "/image/bin/fc.so"|; s|"id": "tenon.adam"|"id": "tenon.eve"|'
    tenon.write_text(f"""#!/bin/sh
[ "$1" = plugins ] || exec {training.TENON} "$@"
{training.TENON} "$@" | sed '{change}'
""")
    launcher = folder / "other/bin/tenon-launch"
    launcher.write_text(f'#!/bin/sh\nTENON_PROGRAM=/image/bin/tenon exec "{training.BUILD}/bin/tenon-launch" "$@"\n')
    for each in (tenon, launcher):
        each.chmod(0o755)
    place = folder / "fake"
    place.mkdir()
    with fake_user.running(place, f"--image=other={folder / 'other'}") as cluster:
        other = training.Laptop(laptop.folder, cluster)
        other.data = laptop.data
        code, output = other.run("--image", "other")
    told = re.search("the image has other builds of plugins than this machine: (.*)", output)
    assert code == 0 and told, output
    words = r"tenon.adam is not in the image; tenon.fc is [0-9a-f]{8} in the image, [0-9a-f]{8} here"
    assert re.fullmatch(words, told[1]), told[1]
    assert output.count("other builds") == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"count": 3, "code": 429, "retryAfter": 1}, ""),
        ({"count": 5, "code": 500}, r"does not answer \(500: "),
        ({"count": 2, "code": "lost", "verb": "create"}, ""),
        ({"count": 1, "code": "lost", "resource": "jobsets", "verb": "create"}, ""),
    ],
)
def test_a_bad_server(laptop, fault, words):
    laptop.cluster.control("fail", **fault)
    code, output = laptop.run("--processes", "2")
    assert code == 0 and re.search(words, output), output
    assert laptop.trained() == laptop.trained_alone()


def test_a_server_that_goes_away(laptop):
    laptop.write("job.toml", passes=400)
    process = laptop.begin("--processes", "2")
    laptop.wait_for(process, "pass  *5/400")
    laptop.cluster.control("drop", streams="log")
    laptop.cluster.control("drop", streams="exec")
    laptop.cluster.control("gone", seconds=3)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    passes = re.findall(r"pass +(\d+)/400", output)
    assert passes == [str(number) for number in range(int(passes[0]), 401)], "each line of the log comes once"
    assert laptop.trained() == laptop.trained_alone(400)


@pytest.mark.parametrize("role", ["launcher", "trainer"])
def test_a_lost_pod_is_replaced(laptop, role):
    laptop.write("job.toml", passes=400, more=f'[checkpoint]\nfolder = "kept-{role}"\nevery_batches = 50\n')
    process = laptop.begin("--processes", "2", "--claim", "work")
    output = laptop.wait_for(process, r"pass  *5/400")
    laptop.cluster.control("lose", pod=laptop.pods(role)[0])
    output += process.communicate(timeout=100)[0]
    assert process.returncode == 0, output
    assert laptop.trained() == laptop.trained_alone(400)
    assert re.search("starts again|resumed from", output), output


BOUNDED = '[checkpoint]\nfolder = "bounded"\nevery_batches = 200\n'


def test_a_trainer_of_the_bounded_mode_comes_back(laptop):
    laptop.write("job.toml", passes=800, more=BOUNDED)
    options = ("--processes", "3", "--servers", "1", "--claim", "work", "--set", "staleness=3")
    process = laptop.begin(*options)
    output = laptop.wait_for(process, r"pass +5/800")
    laptop.cluster.control("pull", image=training.IMAGE)
    laptop.cluster.control("lose", pod=laptop.pods("trainer")[0])
    output += laptop.wait_for(process, r"pod \S+-trainer\S+ cannot begin \(ImagePullBackOff\): .*the training waits for it", 90)
    laptop.cluster.control("pull", image=training.IMAGE, folder=str(training.BUILD))
    output += laptop.wait_for(process, "-trainer-\\S+ has another pod", 90)
    output += process.communicate(timeout=200)[0]
    assert process.returncode == 0, output
    assert "the training goes on without it, and starts it again (restart 1 of at most 20)" in output
    assert "starts again from" not in output and "has ended with" not in output, "the others have gone on"


def test_two_trainings_that_save_to_one_file(laptop):
    laptop.write("other.toml", passes=4)
    both = [laptop.begin("--processes", "2", job=job) for job in ("job.toml", "other.toml")]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert laptop.trained() in (laptop.trained_alone(3), laptop.trained_alone(4)), "one of the two, and no mixture"
    assert not list(laptop.folder.glob("*.part*"))


def test_a_model_that_cannot_be_written_is_not_lost(laptop):
    process = laptop.begin()
    output = laptop.wait_for(process, "1 pod in the namespace")
    (laptop.folder / "model.safetensors").mkdir()
    output += laptop.wait_for(process, 'cannot be fetched so far: cannot write "model.safetensors": Is a directory')
    (laptop.folder / "model.safetensors").rmdir()
    output += process.communicate(timeout=60)[0]
    assert process.returncode == 0, output
    assert laptop.trained() == laptop.trained_alone()
    assert not list(laptop.folder.glob("*.part*"))


def test_the_help_of_dist(laptop):
    for words, code in ((("--help",), 0), (("-h",), 0), ((), 64)):
        assert (said := laptop.dist(*words))[0] == code and said[1].startswith("usage: tenon dist status | logs | stop"), said


def test_stop_removes_what_is_tenons_alone(laptop):
    labels = {"app.kubernetes.io/instance": "mysql", "app.kubernetes.io/managed-by": "Helm"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mysql", "labels": labels}, "data": {}}
    path = f"{fake_user.ROOT}/configmaps"
    laptop.cluster("POST", path, config)
    assert laptop.dist("stop", "mysql") == (66, 'tenon: there is no training "mysql" in the namespace "default"\n')
    assert laptop.cluster("GET", f"{path}/mysql")
    laptop.cluster("DELETE", f"{path}/mysql")


USER = "users: [{{name: me, user: {{{}}}}}]"
CONFIG = """apiVersion: v1
current-context: here
contexts: [{{name: here, context: {{cluster: there, user: me}}}}]
clusters: [{{name: there, cluster: {{server: "{server}"}}}}]
{users}
"""


@pytest.mark.parametrize(
    ("server", "user", "code", "words"),
    [
        ("https://127.0.0.1:1", "token: 12345", 78, 'key "token": expected a text, got number'),
        ("https://ann:secret@127.0.0.1:1", "token: a", 78, 'key "server": expected https://HOST:PORT, got one with a user'),
        ("ftp://127.0.0.1:1", "token: a", 78, 'key "server": expected https://HOST:PORT'),
        ("https://127.0.0.1:1", "exec: {command: 5}", 77, 'the credential plugin "" has no command'),
        ("https://127.0.0.1:1", 'exec: {command: echo, args: ["{}"]}', 77, "has not answered an ExecCredential"),
        ("https://127.0.0.1:1", 'exec: {command: sh, args: ["-c", "exit 3"]}', 77, "has ended with exit code 3"),
        ("https://127.0.0.1:1", "token: &a [*a]", 78, "kubeconfig"),
        ("https://127.0.0.1:1", 'client-certificate-data: "%%%"', 78, "this is no base64"),
        ("https://127.0.0.1:1", "client-certificate: nowhere.pem", 66, "nowhere.pem"),
        ("https://127.0.0.1:1", "auth-provider: {name: gcp}", 78, 'has given up "auth-provider"'),
    ],
)
def test_kubeconfigs_with_mistakes(laptop, server, user, code, words):
    (laptop.folder / "kubeconfig").write_text(CONFIG.format(server=server, users=USER.format(user)))
    refused, output = laptop.run(context="", KUBECONFIG=str(laptop.folder / "kubeconfig"))
    assert refused == code and words in output, output
    assert "secret" not in output and "12345" not in output


def test_ctrl_c_removes_all(laptop):
    laptop.write("job.toml", passes=100000)
    for delay in (0, 0.1, 0.3, 0.6, 1, 1.5):
        process = laptop.begin("--processes", "2")
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        assert process.returncode in (130, -2), output
        assert laptop.left() == {"persistentvolumeclaims": 1}, (delay, output)


def test_ctrl_c_while_the_first_process_of_a_pod_has_no_handlers(laptop, tmp_path_factory):
    """The kernel drops a signal to such a process, and Kubernetes sends it once."""
    folder = tmp_path_factory.mktemp("slow")
    folder.chmod(0o755)
    (folder / "image/bin").mkdir(parents=True)
    slow = folder / "image/bin/tenon-launch"
    slow.write_text(f'#!/bin/sh\n[ "$1" != --pod ] || sleep 3\nexec "{training.BUILD}/bin/tenon-launch" "$@"\n')
    slow.chmod(0o755)
    with fake_user.running(folder / "fake", f"--image=slow={folder / 'image'}") as cluster:
        other = training.Laptop(laptop.folder, cluster)
        other.write("job.toml", passes=100000)
        process = other.begin("--image", "slow", "--processes", "2")
        cluster.until(f"{fake_user.ROOT}/pods", lambda _: len(other.pods()) == 2, 30)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 130, output
        assert time.monotonic() - began < 20, "and not after the grace period"
        assert other.left() == {}


def test_ctrl_c_leaves_a_checkpoint_in_the_claim(laptop):
    laptop.write("job.toml", passes=100000, more='[checkpoint]\nfolder = "interrupted"\nevery_batches = 1000000\n')
    process = laptop.begin("--processes", "2", "--claim", "work")
    laptop.wait_for(process, "pass  *5/100000")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "removes what was created" in output
    assert laptop.left() == {"persistentvolumeclaims": 1}
    kept = laptop.cluster.folder / "claims/default/work/interrupted"
    assert list(kept.glob("checkpoint-*.safetensors")), output


def test_a_claim_that_is_not_there(laptop):
    code, output = laptop.run("--claim", "absent")
    words = r'cannot begin \(Unschedulable\): .*persistentvolumeclaim "absent" not found'
    assert code == 78 and re.search(words, output), output


def test_detached(laptop):
    laptop.write("job.toml", passes=30)
    code, output = laptop.run("--processes", "2", "--claim", "work", "--detach")
    assert code == 0, output
    name = re.search(r"tenon dist stop (\S+)", output)[1]
    end = time.monotonic() + 30
    while "Succeeded" not in (status := laptop.dist("status", name)[1]):
        assert time.monotonic() < end, status
        time.sleep(0.2)
    code, output = laptop.dist("logs", name)
    assert code == 0 and "pass 30/30" in output, output
    assert (laptop.cluster.folder / "claims/default/work/model.safetensors").read_bytes() == laptop.trained_alone(30)
    assert laptop.dist("stop", name)[0] == 0
    assert laptop.dist("status", name) == (66, f'tenon: there is no training "{name}" in the namespace "default"\n')


def test_dry_run_says_the_same_in_yaml_and_json(laptop):
    options = ("--dry-run", "--processes", "3", "--claim", "work", "--namespace", "team")
    options += ("--label", "kueue.x-k8s.io/queue-name=q")
    texts = [laptop.run(*options)[1], laptop.run(*options, "-o", "json")[1]]
    names = [re.search("job-[a-z0-9]{5}", text)[0] for text in texts]
    documents = list(yaml.safe_load_all(texts[0].replace(names[0], "job")))
    assert documents == json.loads(texts[1].replace(names[1], "job"))["items"]


def test_what_pods_ask_for(laptop):
    code, output = laptop.run("--dry-run", "-o", "json", "--processes", "2", "--threads", "3")
    assert code == 0, output
    pods = [item["spec"]["template"]["spec"] for item in json.loads(output)["items"] if item["kind"] == "Job"]
    assert len(pods) == 2
    for pod in pods:  # the data is not here
        resources = pod["containers"][0]["resources"]
        assert resources["requests"] == resources["limits"] == {"cpu": "3", "memory": str(1 << 30)}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--image", ""), 64, "--image is missing"),
        (("--nodes", "a,b"), 64, "--cluster and --nodes exclude each other"),
        (("--memory", "2 GB"), 64, "--memory: expected a number of bytes such as 2Gi"),
        (("--claim", "A_B"), 64, "--claim: expected lower-case letters"),
        (("--claim", "work:data"), 64, 'expected a whole path behind ":"'),
        (("--label", "queue"), 64, "--label: expected KEY=VALUE"),
        (("--detach",), 64, "--detach: nobody is there to fetch the model; state a --claim"),
        (("--detach", "--claim", "work:/other"), 64, "--detach: the model stays in the folder of the job, /training"),
        (("--label", "tenon.dev/role=x"), 64, "tenon.dev/role is a label of Tenon's own"),
        (("--pull-secret", "A_B"), 64, "--pull-secret: expected lower-case letters"),
        (("--node-selector", "ssd"), 64, "--node-selector: expected KEY=VALUE"),
        (("--node-selector", "disk=a b"), 64, "--node-selector: expected letters, digits"),
        (("--toleration", "=yes"), 64, "--toleration: expected KEY=VALUE"),
        (("--toleration", "gpu:Never"), 64, '--toleration: expected NoSchedule, PreferNoSchedule or NoExecute behind ":"'),
        (("--save", "folder/"), 64, "--save: expected the path of a file"),
        (("--namespace", "A/B"), 64, "namespace: expected lower-case letters"),
        (("--plugins", "."), 64, "the image has the plugins of its pods"),
        (("--processes", "0"), 64, "--processes: expected 1 to"),
        (("-o", "xml"), 64, "--output: expected yaml or json"),
        (("--dry-run=pods",), 64, "--dry-run: expected jobs or jobset"),
        (("--save", "nofolder/m.safetensors"), 66, 'cannot save to "nofolder/m.safetensors": there is no folder "nofolder"'),
        (("--processes", "7"), 78, "shards is 6, fewer than the 7 processes of --processes"),
    ],
)
def test_mistakes(laptop, options, code, words):
    refused, output = laptop.run(*options)
    assert refused == code and words in output, output


def test_paths_of_this_machine(laptop):
    laptop.write("job.toml", data="train.csv")
    code, output = laptop.run()
    assert code == 78, output
    words = r'job.toml:\d+: key "files" of a reader: "train.csv" is a path of this machine, which pods do not see'
    assert re.search(words, output), output
    laptop.write("job.toml", data=str(laptop.data / "train.csv"))
    code, output = laptop.run()
    assert code == 78 and "which pods do not see; --host-path shows it to pods as /data/train.csv: write that" in output
