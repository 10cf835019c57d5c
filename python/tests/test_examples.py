"""The examples, as users start them: the same results on any number of ranks."""

import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "torch_python"


def run(ranks, program, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    done = subprocess.run([*command, str(EXAMPLES / program), *arguments], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_digits_are_learnt_alike_on_any_number_of_ranks():
    outputs = [re.findall(r"loss (\S+) right (\S+)", run(ranks, "digits.py")) for ranks in (1, 2, 4)]
    assert all(len(epochs) == 8 for epochs in outputs)
    for epochs in outputs[1:]:
        for (loss, _), (alone, _) in zip(epochs, outputs[0]):
            assert abs(float(loss) - float(alone)) < 2e-6
    assert all(float(epochs[-1][1]) > 0.9 for epochs in outputs)


def test_the_same_tokens_on_any_number_of_ranks():
    texts = {run(ranks, "decode.py").splitlines()[0] for ranks in (1, 2, 4)}
    assert len(texts) == 1
    assert len(set(texts.pop().split()[1:])) > 3, "a text and not one token again and again"
