"""dist_train with parameter servers: the bounded mode. SPDX-License-Identifier: Apache-2.0"""

import pytest

from test_team import needs_engine, run

BOUNDED = """
import warnings

model = classifier()
parameters = tenon.parameters.create([model.cost, model.accuracy])
from models import labels, pixels

events = []


def handler(event):
    events.append(event)
    if rank == 0 and os.environ["SCENARIO"] == "killed" and len(events) == 20:
        import subprocess
        others = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True).stdout.split()
        os.kill(int(others[0]), 9)


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tenon.dist_train([model.cost, model.accuracy], parameters, {"pixel": pixels, "label": labels}, handler, updater="adam",
                     batch_size=50, processes=3, num_parameter_servers=2, staleness=3, passes=20)
end = [event for event in events if isinstance(event, tenon.event.EndPass)][-1]
print(end.samples == len(labels), end.cost < 0.9 * next(e for e in events if isinstance(e, tenon.event.EndPass)).cost)
print(*[str(each.message) for each in caught], end.repeated <= 1, end.torn <= end.repeated)
"""


@pytest.mark.parametrize("scenario", ["", "killed"])
def test_parameter_servers_train_in_the_bounded_mode(environment, tmp_path, scenario):
    needs_engine()
    done = run(BOUNDED, tmp_path, SCENARIO=scenario)
    assert done.returncode == 0, done.stderr
    lost = "process 1 was ended by signal 9 (Killed); the training went on without it " if scenario else ""
    assert done.stdout.splitlines()[1:] == ["True True", f"{lost}True True"], done.stdout + done.stderr
