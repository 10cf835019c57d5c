#!/usr/bin/env bash
# PyPI's tensorboard reads what Cohort writes: scalars, histograms, texts, tensors, hyperparameters, and none of
# the steps before a restart. The packages come into PACKAGES; where they cannot be had, the test is skipped.
#
#   read_by_tensorboard.sh WRITE_SUMMARIES PACKAGES
set -euo pipefail
write=$1 packages=$2
skipped=77

export PYTHONPATH=$packages PYTHONDONTWRITEBYTECODE=1
if ! python3 -c 'import tensorboard, google.protobuf, numpy, packaging' 2>/dev/null; then
  rm -rf "$packages"
  # Not its web server, and none of what that needs.
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --retries 1 --timeout 10 \
      --target "$packages" 'tensorboard==2.20.0' 'protobuf==6.31.1' 'numpy==2.2.6' 'packaging==25.0' \
      'absl-py==2.3.0' 'setuptools==80.9.0' </dev/null; then
    rm -rf "$packages"
    echo "skipped: python3 with pip (apt-get install python3-pip) and PyPI are needed for the package tensorboard"
    exit $skipped
  fi
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$write" "$scratch/logs"
python3 - "$scratch/logs" <<'END'
import struct, sys
import numpy
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

guidance = {event_accumulator.TENSORS: 0}
log = event_accumulator.EventAccumulator(sys.argv[1], size_guidance=guidance)
log.Reload()
values = lambda tag: [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in log.Tensors(tag)]
plugin = lambda tag: log.SummaryMetadata(tag).plugin_data

scalars = [(step, float(value)) for step, value in values("train/loss")]
expected = [(step, -1.0) for step in range(3)] + [(step, float(numpy.float32(1 / (1 + step)))) for step in (3, 4, 5)]
assert scalars == expected, scalars
assert plugin("train/loss").plugin_name == "scalars"
assert set(log.PluginTagToContent("scalars")) == {"train/loss"}

(step, bins), = values("weights")
assert step == 3 and plugin("weights").plugin_name == "histograms"
assert numpy.allclose(bins, [[1, 2.8, 3], [2.8, 4.6, 1], [4.6, 6.4, 0], [6.4, 8.2, 0], [8.2, 10, 1]]), bins

(step, text), = values("note")
assert step == 4 and text.item() == b"some **text**" and plugin("note").plugin_name == "text", text
(step, texts), = values("notes")
assert list(texts) == [b"a", b"b"], texts
(step, matrix), = values("matrix")
assert step == 5 and matrix.dtype == numpy.int32 and matrix.tolist() == [[1, 2, 3], [4, 5, 6]], matrix

start = plugin_data_pb2.HParamsPluginData()
start.ParseFromString(plugin("_hparams_/session_start_info").content)
given = start.session_start_info
assert given.hparams["rate"].number_value == 0.5 and given.hparams["nesterov"].bool_value is True
assert given.hparams["optimizer"].string_value == "sgd" and given.start_time_secs > 1e9, given
end = plugin_data_pb2.HParamsPluginData()
end.ParseFromString(plugin("_hparams_/session_end_info").content)
assert end.session_end_info.status == 1 and end.session_end_info.end_time_secs >= given.start_time_secs, end
END
echo "tensorboard has read scalars, a histogram, texts, a tensor and hyperparameters"
