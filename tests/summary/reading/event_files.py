"""Reads what write_summaries has written to the event files of a folder, and fails where it is not the same."""
import struct, sys
import numpy
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

guidance = {plugin_event_accumulator.TENSORS: 0}
log = plugin_event_accumulator.EventAccumulator(sys.argv[1], size_guidance=guidance)
log.Reload()
values = lambda tag: [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in log.Tensors(tag)]
plugin = lambda tag: log.SummaryMetadata(tag).plugin_data

scalars = [(step, float(value)) for step, value in values("train/loss")]
expected = [(step, -1.0) for step in range(3)] + [(step, float(numpy.float32(1 / (1 + step)))) for step in (3, 4, 5)]
assert scalars == expected, scalars
assert plugin("train/loss").plugin_name == "scalars"
assert log.SummaryMetadata("train/loss").summary_description == ""  # that of the first value
(step, nan), = values("nan, \"quoted\"")
assert step == -1 and numpy.isnan(nan), nan
assert set(log.PluginTagToContent("scalars")) == {"train/loss", "nan, \"quoted\""}

(step, bins), = values("weights")
assert step == 3 and plugin("weights").plugin_name == "histograms"
assert numpy.allclose(bins, [[1, 2.8, 3], [2.8, 4.6, 1], [4.6, 6.4, 0], [6.4, 8.2, 0], [8.2, 10, 1]]), bins

(step, text), = values("note")
assert step == 4 and text.item() == "some **text**,\n\"\u00e9\"".encode() and plugin("note").plugin_name == "text", text
(step, texts), = values("notes")
assert list(texts) == [b"a", b"b"], texts
(step, matrix), = values("matrix")
assert step == 5 and matrix.dtype == numpy.int32 and matrix.tolist() == [[1, 2, 3], [4, 5, 6]], matrix

start = plugin_data_pb2.HParamsPluginData()
start.ParseFromString(plugin("_hparams_/session_start_info").content)
given = start.session_start_info
assert given.hparams["rate"].number_value == 0.5 and given.hparams["layers"].number_value == 3
assert given.hparams["nesterov"].bool_value is True
assert given.hparams["optimizer"].string_value == "sgd" and given.start_time_secs > 1e9, given
end = plugin_data_pb2.HParamsPluginData()
end.ParseFromString(plugin("_hparams_/session_end_info").content)
assert end.session_end_info.status == 1 and end.session_end_info.end_time_secs >= given.start_time_secs, end
print("tensorboard has read scalars, a histogram, texts, a tensor and hyperparameters")
