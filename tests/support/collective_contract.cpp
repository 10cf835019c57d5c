#include "communicator_contracts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "collective/communicator_base.h"

#include "reduction_inputs.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

std::string label(Communicator& communicator, DType dtype, ReduceOp op, std::size_t elements) {
  return fmt::format("member {} of {}, {} of {}[{}]", communicator.rank(), communicator.size(), to_string(op),
                     to_string(dtype), elements);
}

/// The same elements, one element into a larger buffer: aligned for the dtype and nothing more.
Tensor shifted_copy(const Tensor& source) {
  const auto elements = static_cast<std::int64_t>(source.elements());
  Tensor copy = Tensor::uninitialized({elements + 1}, source.dtype()).rows(1, elements + 1);
  copy.copy_from(source);
  return copy;
}

void expect_same(const Tensor& got, const Tensor& wanted, const std::string& what) {
  EXPECT_TRUE(bitwise_equal(got, wanted)) << what << ": got " << got << ", wanted " << wanted;
}

void check_reduction(Communicator& communicator, DType dtype, ReduceOp op, std::size_t elements) {
  const std::string what = label(communicator, dtype, op, elements);
  const int members = communicator.size();
  const Tensor input = exact_inputs(communicator.rank(), dtype, op, elements);
  const Tensor wanted = exact_result(members, dtype, op, elements);

  const Tensor out_of_place = Tensor::zeros(input.shape(), dtype);
  communicator.all_reduce(input, out_of_place, op);
  expect_same(out_of_place, wanted, "all_reduce, " + what);
  expect_same(input, exact_inputs(communicator.rank(), dtype, op, elements), "input of all_reduce, " + what);

  const Tensor in_place = shifted_copy(input);
  communicator.all_reduce(in_place, op);
  expect_same(in_place, wanted, "all_reduce in place and unaligned, " + what);

  const int root = static_cast<int>(elements) % members;
  const Tensor at_root = Tensor::zeros(input.shape(), dtype);
  communicator.reduce(input, at_root, op, root);
  expect_same(at_root, communicator.rank() == root ? wanted : Tensor::zeros(input.shape(), dtype),
              "reduce, " + what);
}

void check_reduce_scatter(Communicator& communicator, DType dtype, ReduceOp op, std::size_t block) {
  const auto members = static_cast<std::size_t>(communicator.size());
  const auto begin = static_cast<std::int64_t>(block) * communicator.rank();
  const auto end = begin + static_cast<std::int64_t>(block);
  const Tensor input = exact_inputs(communicator.rank(), dtype, op, block * members);
  const Tensor wanted = exact_result(communicator.size(), dtype, op, block * members).rows(begin, end);
  const std::string what = label(communicator, dtype, op, block);

  const Tensor output = Tensor::zeros(wanted.shape(), dtype);
  communicator.reduce_scatter(input, output, op);
  expect_same(output, wanted, "reduce_scatter, " + what);

  communicator.reduce_scatter(input, input.rows(begin, end), op);
  expect_same(input.rows(begin, end), wanted, "reduce_scatter in place, " + what);
}

/// Elements whose values encode their owner and their place.
Tensor labelled(int rank, std::int64_t elements, DType dtype = DType::kInt32) {
  Tensor tensor = Tensor::uninitialized({elements}, dtype);
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    std::int64_t index = 0;
    for (T& value : tensor.span<T>()) value = convert_element<T>((rank * 100 + index++) % 100);
  });
  return tensor;
}

void check_gathers(Communicator& communicator, DType dtype, std::int64_t block) {
  const int members = communicator.size();
  const std::int64_t mine = block * communicator.rank();
  Tensor wanted = Tensor::zeros({block * members}, dtype);
  for (int rank = 0; rank < members; ++rank) {
    wanted.rows(block * rank, block * (rank + 1)).copy_from(labelled(rank, block, dtype));
  }

  const Tensor gathered = Tensor::zeros(wanted.shape(), dtype);
  communicator.all_gather(labelled(communicator.rank(), block, dtype), gathered);
  expect_same(gathered, wanted, "all_gather");

  const Tensor in_place = Tensor::zeros(wanted.shape(), dtype);
  in_place.rows(mine, mine + block).copy_from(labelled(communicator.rank(), block, dtype));
  communicator.all_gather(in_place.rows(mine, mine + block), in_place);
  expect_same(in_place, wanted, "all_gather in place");

  for (int root = 0; root < members; ++root) {
    const bool is_root = communicator.rank() == root;
    const Tensor at_root = Tensor::zeros(wanted.shape(), dtype);
    communicator.gather(labelled(communicator.rank(), block, dtype), at_root, root);
    if (is_root) expect_same(at_root, wanted, "gather");

    const Tensor part = Tensor::zeros({block}, dtype);
    communicator.scatter(is_root ? wanted : Tensor(), part, root);
    expect_same(part, labelled(communicator.rank(), block, dtype), "scatter");

    const Tensor everywhere = labelled(communicator.rank(), block, dtype);
    communicator.broadcast(everywhere, root);
    expect_same(everywhere, labelled(root, block, dtype), "broadcast");
  }
}

void check_uneven_gather(Communicator& communicator) {
  const auto members = static_cast<std::size_t>(communicator.size());
  std::vector<std::size_t> counts;
  std::vector<Tensor> parts;
  std::int64_t total = 0;
  for (std::size_t rank = 0; rank < members; ++rank) {
    counts.push_back(rank * 3 % 5);  // member 0 contributes nothing
    total += static_cast<std::int64_t>(counts.back());
  }
  const Tensor wanted = Tensor::zeros({total}, DType::kInt32);
  std::int64_t begin = 0;
  for (std::size_t rank = 0; rank < members; ++rank) {
    const auto count = static_cast<std::int64_t>(counts[rank]);
    wanted.rows(begin, begin + count).copy_from(labelled(static_cast<int>(rank), count));
    begin += count;
  }
  const Tensor output = Tensor::zeros({total}, DType::kInt32);
  const auto mine = static_cast<std::int64_t>(counts[static_cast<std::size_t>(communicator.rank())]);
  communicator.all_gather_uneven(labelled(communicator.rank(), mine), output, counts);
  expect_same(output, wanted, "all_gather_uneven");
}

void check_all_to_all(Communicator& communicator) {
  constexpr std::int64_t kBlock = 3;
  const int members = communicator.size();
  const Tensor input = Tensor::zeros({kBlock * members}, DType::kInt64);
  const Tensor wanted = Tensor::zeros(input.shape(), DType::kInt64);
  for (int other = 0; other < members; ++other) {
    input.rows(kBlock * other, kBlock * (other + 1)).fill(communicator.rank() * 100 + other);
    wanted.rows(kBlock * other, kBlock * (other + 1)).fill(other * 100 + communicator.rank());
  }
  const Tensor output = Tensor::zeros(input.shape(), DType::kInt64);
  communicator.all_to_all(input, output);
  expect_same(output, wanted, "all_to_all");
}

/// Long enough for vector instructions, and a tail: the two may differ in what they do on overflow.
template <class T>
void check_wrapping(Communicator& communicator) {
  constexpr std::int64_t kElements = 4099;
  const Tensor values = Tensor::uninitialized({kElements}, kDTypeOf<T>);
  constexpr auto kValue = static_cast<T>(std::numeric_limits<T>::max() - 10);
  std::ranges::fill(values.span<T>(), kValue);
  communicator.all_reduce(values, ReduceOp::kSum);
  const auto wanted = static_cast<T>(std::uint64_t{kValue} * static_cast<std::uint64_t>(communicator.size()));
  EXPECT_THAT(values.span<T>(), ::testing::Each(wanted)) << to_string(kDTypeOf<T>) << " must wrap";
}

}  // namespace

void check_reductions(Communicator& communicator) {
  for (const DType dtype : kAllDTypes) {
    for (const ReduceOp op : kAllOps) {
      if (!is_legal(op, dtype)) continue;
      for (const std::size_t elements : {0u, 1u, 13u, 1031u})
        check_reduction(communicator, dtype, op, elements);
      check_reduce_scatter(communicator, dtype, op, 5);
    }
  }
  check_reduction(communicator, DType::kFloat32, ReduceOp::kSum, 100'003);
}

void check_arithmetic(Communicator& communicator) {
  const bool last = communicator.rank() == communicator.size() - 1;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : kAllOps) {
    const Tensor values = Tensor::from({last ? kNaN : 1.0f, 2.0f});
    communicator.all_reduce(values, op);
    EXPECT_TRUE(std::isnan(values.span<float>()[0])) << to_string(op) << " must propagate NaN";
    EXPECT_FALSE(std::isnan(values.span<float>()[1]));
  }

  const Tensor zeros = Tensor::from({last ? -0.0f : 0.0f, last ? 0.0f : -0.0f});
  const bool alone = communicator.size() == 1;
  communicator.all_reduce(zeros, ReduceOp::kMin);
  EXPECT_TRUE(std::signbit(zeros.span<float>()[0])) << "the minimum of 0 and -0 is -0";
  EXPECT_EQ(std::signbit(zeros.span<float>()[1]), !alone);

  check_wrapping<std::int8_t>(communicator);
  check_wrapping<std::uint8_t>(communicator);
  check_wrapping<std::int16_t>(communicator);
  check_wrapping<std::uint16_t>(communicator);
  check_wrapping<std::uint32_t>(communicator);

  // 256 + 1 + 1 + ... in bfloat16: each single addition would be rounded away.
  const Tensor rounding = Tensor::from({bfloat16(communicator.rank() == 0 ? 256.0f : 1.0f)});
  communicator.all_reduce(rounding, ReduceOp::kSum);
  const bfloat16 wanted(256.0f + static_cast<float>(communicator.size() - 1));
  EXPECT_EQ(rounding.span<bfloat16>()[0].bits(), wanted.bits()) << "16-bit sums are rounded once";
}

void check_data_movement(Communicator& communicator) {
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kInt32, DType::kFloat64}) {
    for (const std::int64_t block : {0, 1, 7}) check_gathers(communicator, dtype, block);
  }
  check_uneven_gather(communicator);
  check_all_to_all(communicator);
  communicator.barrier();
}

namespace {

/// Where a member's buffers lie.
enum class Memory { kCohorts, kOrdinary, kMixed };

/// Uninitialised; with `kMixed` odd members have ordinary memory.
Tensor buffer_in(Memory memory, int rank, std::size_t elements) {
  const Shape shape{static_cast<std::int64_t>(elements)};
  if (memory == Memory::kCohorts || (memory == Memory::kMixed && rank % 2 == 0))
    return Tensor::uninitialized(shape, DType::kInt32);
  auto values = std::make_shared<std::vector<std::int32_t>>(elements);
  const std::span<std::int32_t> span(*values);
  return Tensor::wrap(span, shape, std::move(values));
}

/// What member `rank` contributes at `index`; different everywhere.
std::int32_t mark(int rank, std::size_t index) {
  return static_cast<std::int32_t>(index) * 31 + (rank + 1) * 1'000'003;
}

class EveryCollective {
 public:
  EveryCollective(Communicator& communicator, Memory memory, std::size_t elements)
      : communicator_(communicator),
        memory_(memory),
        elements_(elements),
        rank_(communicator.rank()),
        size_(communicator.size()),
        members_(static_cast<std::size_t>(size_)) {}

  void check() {
    all_reduce();
    rooted(static_cast<int>(elements_) % size_);
    blocks();
  }

 private:
  [[nodiscard]] Tensor contribution(std::size_t elements) const {
    Tensor tensor = buffer_in(memory_, rank_, elements);
    std::size_t index = 0;
    for (std::int32_t& value : tensor.span<std::int32_t>()) value = mark(rank_, index++);
    return tensor;
  }
  [[nodiscard]] Tensor room(std::size_t elements) const {
    Tensor tensor = buffer_in(memory_, rank_, elements);
    tensor.fill(-1);
    return tensor;
  }

  /// `wanted(index)` for every element of `got`.
  template <class Wanted>
  void expect(const Tensor& got, Wanted wanted, const char* what) const {
    std::size_t index = 0;
    for (const std::int32_t value : got.span<std::int32_t>()) {
      if (value != wanted(index)) {
        ADD_FAILURE() << what << " of " << elements_ << " elements, memory " << static_cast<int>(memory_)
                      << ", member " << rank_ << " of " << size_ << ": element " << index << " is " << value
                      << ", wanted " << wanted(index) << " (" << communicator_.last_algorithm() << ")";
        return;
      }
      ++index;
    }
  }

  [[nodiscard]] std::int32_t sum_at(std::size_t index) const {
    std::int32_t sum = 0;
    for (int member = 0; member < size_; ++member) sum += mark(member, index);
    return sum;
  }

  void all_reduce() const {
    const auto wanted = [&](std::size_t index) { return sum_at(index); };
    const Tensor in_place = contribution(elements_);
    communicator_.all_reduce(in_place, ReduceOp::kSum);
    expect(in_place, wanted, "all_reduce in place");
    const Tensor output = room(elements_);
    communicator_.all_reduce(contribution(elements_), output, ReduceOp::kSum);
    expect(output, wanted, "all_reduce");
  }

  void rooted(int root) const {
    const bool is_root = rank_ == root;
    const Tensor reduced = room(elements_);
    communicator_.reduce(contribution(elements_), reduced, ReduceOp::kSum, root);
    expect(
        reduced, [&](std::size_t index) { return is_root ? sum_at(index) : -1; }, "reduce");

    const Tensor everywhere = is_root ? contribution(elements_) : room(elements_);
    communicator_.broadcast(everywhere, root);
    expect(
        everywhere, [&](std::size_t index) { return mark(root, index); }, "broadcast");

    const Tensor gathered = room(is_root ? elements_ * members_ : 0);
    communicator_.gather(contribution(elements_), gathered, root);
    expect(
        gathered,
        [&](std::size_t index) { return mark(static_cast<int>(index / elements_), index % elements_); },
        "gather");

    const Tensor part = room(elements_);
    communicator_.scatter(is_root ? contribution(elements_ * members_) : Tensor(), part, root);
    const auto begin = static_cast<std::size_t>(rank_) * elements_;
    expect(
        part, [&](std::size_t index) { return mark(root, begin + index); }, "scatter");
  }

  void blocks() const {
    const auto begin = static_cast<std::size_t>(rank_) * elements_;
    const auto from = [&](std::size_t index) { return static_cast<int>(index / elements_); };

    const Tensor gathered = room(elements_ * members_);
    communicator_.all_gather(contribution(elements_), gathered);
    expect(
        gathered, [&](std::size_t index) { return mark(from(index), index % elements_); }, "all_gather");

    const Tensor block = room(elements_);
    communicator_.reduce_scatter(contribution(elements_ * members_), block, ReduceOp::kSum);
    expect(
        block, [&](std::size_t index) { return sum_at(begin + index); }, "reduce_scatter");

    const Tensor exchanged = room(elements_ * members_);
    communicator_.all_to_all(contribution(elements_ * members_), exchanged);
    expect(
        exchanged, [&](std::size_t index) { return mark(from(index), begin + index % elements_); },
        "all_to_all");

    // Member 0 contributes most, the last one nothing.
    std::vector<std::size_t> counts;
    std::vector<int> owners;
    for (int member = 0; member < size_; ++member) {
      counts.push_back(elements_ - elements_ * static_cast<std::size_t>(member) / members_ -
                       (member == size_ - 1 ? elements_ / members_ : 0));
      owners.insert(owners.end(), counts.back(), member);
    }
    const Tensor uneven = room(owners.size());
    communicator_.all_gather_uneven(contribution(counts[static_cast<std::size_t>(rank_)]), uneven, counts);
    std::size_t first = 0;
    expect(
        uneven,
        [&](std::size_t index) {
          if (index == 0 || owners[index] != owners[index - 1]) first = index;
          return mark(owners[index], index - first);
        },
        "all_gather_uneven");
  }

  Communicator& communicator_;
  Memory memory_;
  std::size_t elements_;
  int rank_;
  int size_;
  std::size_t members_;
};

}  // namespace

void check_sizes_and_memory(Communicator& communicator) {
  for (const Memory memory : {Memory::kCohorts, Memory::kOrdinary, Memory::kMixed}) {
    // Around the limits between the ways that the data can take, and well beyond.
    for (const std::size_t elements : {1u, 14u, 15u, 2048u, 2049u, 8192u, 20'001u, 70'001u})
      EveryCollective(communicator, memory, elements).check();
  }
}

/// Messages with one tag come in the order of sending, however the receiver's looks fall between them.
void check_order_of_messages(Communicator& communicator) {
  constexpr std::int32_t kMessages = 1000;
  const bool sends = communicator.rank() % 2 == 0;
  const int other = communicator.rank() + (sends ? 1 : -1);
  const Tensor message = Tensor::zeros({1}, DType::kInt32);
  int late = 0;
  for (std::int32_t i = 0; other < communicator.size() && i < kMessages; ++i) {
    if (sends) {
      message.span<std::int32_t>()[0] = i;
      communicator.send(message, other, 9);
    } else {
      communicator.receive(message, other, 9);
      late += message.span<std::int32_t>()[0] == i ? 0 : 1;
    }
  }
  EXPECT_EQ(late, 0) << "messages that came out of order";
}

void check_messages(Communicator& communicator) {
  if (communicator.size() == 1) return;
  check_order_of_messages(communicator);
  const int next = (communicator.rank() + 1) % communicator.size();
  const int previous = (communicator.rank() + communicator.size() - 1) % communicator.size();
  const Tensor first = Tensor::zeros({5}, DType::kInt32);
  const Tensor second = Tensor::zeros({2}, DType::kInt32);
  // Received in another order than sent: tags tell the messages apart.
  Work receive_second = communicator.receive_async(second, previous, 8);
  Work receive_first = communicator.receive_async(first, previous, 7);
  Work send_first = communicator.send_async(labelled(communicator.rank(), 5), next, 7);
  Work send_second = communicator.send_async(labelled(communicator.rank(), 2), next, 8);
  receive_first.wait();
  receive_second.wait();
  send_first.wait();
  send_second.wait();
  expect_same(first, labelled(previous, 5), "message with tag 7");
  expect_same(second, labelled(previous, 2), "message with tag 8");

  const Tensor short_tensor = Tensor::zeros({3}, DType::kInt32);
  Work sending = communicator.send_async(labelled(communicator.rank(), 4), next);
  const std::string text =
      message_of(ErrorCode::kInvalidArgument, [&] { communicator.receive(short_tensor, previous); });
  EXPECT_THAT(text, HasSubstr("int32[3]"));
  EXPECT_THAT(text, HasSubstr("int32[4]"));
  sending.wait();
  communicator.barrier();  // and the communicator is still usable
}

void check_async(Communicator& communicator) {
  constexpr int kInFlight = 12;
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < kInFlight; ++i) {
    tensors.push_back(
        exact_inputs(communicator.rank(), DType::kFloat32, ReduceOp::kSum, 17 * static_cast<std::size_t>(i)));
    works.push_back(i % 3 == 2 ? communicator.barrier_async()
                               : communicator.all_reduce_async(tensors.back(), ReduceOp::kSum));
  }
  for (int i = kInFlight - 1; i >= 0; --i) {
    const auto index = static_cast<std::size_t>(i);
    works[index].wait();
    works[index].wait();  // waiting twice is free
    EXPECT_TRUE(works[index].done());
    if (i % 3 == 2) continue;
    expect_same(tensors[index],
                exact_result(communicator.size(), DType::kFloat32, ReduceOp::kSum, 17 * index),
                "asynchronous all_reduce");
  }
  // A Work keeps the memory alive that it moves.
  Work orphan = communicator.all_reduce_async(
      exact_inputs(communicator.rank(), DType::kInt64, ReduceOp::kSum, 999), ReduceOp::kSum);
  orphan.wait();
}

void check_arguments(Communicator& communicator) {
  const auto refused = [&](auto&& function, const char* fragment) {
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, function), HasSubstr(fragment));
  };
  const Tensor floats = Tensor::zeros({6}, DType::kFloat32);
  const Tensor integers = Tensor::zeros({6}, DType::kInt32);
  const Tensor flags = Tensor::zeros({6}, DType::kBool);
  const int size = communicator.size();
  refused([&] { communicator.all_reduce(integers, ReduceOp::kMean); }, "cast to float32");
  refused([&] { communicator.all_reduce(flags, ReduceOp::kSum); }, "bool");
  refused([&] { communicator.all_reduce(floats, integers, ReduceOp::kSum); }, "dtypes must agree");
  refused([&] { communicator.all_reduce(floats.rows(0, 3), floats.rows(0, 4), ReduceOp::kSum); }, "needs 3");
  refused([&] { communicator.all_reduce(floats.rows(0, 3), floats.rows(1, 4), ReduceOp::kSum); }, "overlap");
  refused([&] { communicator.broadcast(floats, size); }, "root");
  refused([&] { communicator.broadcast(floats, -1); }, "not a member");
  refused([&] { communicator.all_gather(floats, Tensor::zeros({6 * size + 1}, DType::kFloat32)); }, "output");
  refused(
      [&] {
        communicator.all_gather_uneven(floats, floats,
                                       std::vector<std::size_t>(static_cast<std::size_t>(size) + 1));
      },
      "one per member");
  refused([&] { communicator.all_to_all(floats, floats); }, "overlap");
  refused([&] { communicator.send(floats, communicator.rank()); }, "with itself");
  refused([&] { communicator.send(floats, size); }, "peer");
  if (size > 1) {
    refused([&] { communicator.send(floats, (communicator.rank() + 1) % size, -1); }, "tag");
  }
}

void check_packed(Communicator& communicator) {
  const int size = communicator.size();
  const Tensor tensor = exact_inputs(communicator.rank(), DType::kFloat32, ReduceOp::kSum, 10);
  communicator.all_reduce(tensor, tensor, ReduceOp::kSum, {.layout = 5});
  expect_same(tensor, exact_result(size, DType::kFloat32, ReduceOp::kSum, 10), "all_reduce with a layout");

  // As many elements, but another layout: the sum would be of things that do not belong together.
  if (size == 1) return;
  const std::uint64_t layout = communicator.rank() == size - 1 ? 6 : 5;
  const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
    communicator.all_reduce(tensor, tensor, ReduceOp::kSum, {.layout = layout});
  });
  EXPECT_THAT(text, HasSubstr("layout"));
}

namespace {

/// An all-reduce of so many elements that lie on GPUs.
CollectiveCall call_on_gpus(std::size_t elements) {
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.dtype = DType::kFloat32;
  call.elements = elements;
  call.device = Device(DeviceKind::kCuda, 0);
  return call;
}

void agree_often(Communicator& communicator) {
  for (const std::size_t elements : {0u, 3u, 1u << 20}) {
    CollectiveCall call = call_on_gpus(elements);
    call.timeout_seconds = 20;  // all members come, but not always within the short time of the communicator
    CommunicatorBase::agree(communicator, call);
    communicator.barrier({.timeout_seconds = call.timeout_seconds});
  }
  EXPECT_EQ(communicator.failure(), std::nullopt);
}

}  // namespace

void check_agreement_with_a_missing_member(Communicator& communicator) {
  agree_often(communicator);
  const int missing = communicator.size() - 1;
  if (communicator.size() == 1 || communicator.rank() == missing) return;
  const std::string text = message_of(ErrorCode::kDeadlineExceeded,
                                      [&] { CommunicatorBase::agree(communicator, call_on_gpus(8)); });
  EXPECT_THAT(text, names_missing(missing));
  EXPECT_THAT(text, HasSubstr("all_reduce #6"));
  EXPECT_THAT(text, HasSubstr("float32[8], sum, on GPUs"));
  ASSERT_TRUE(communicator.failure().has_value());
  EXPECT_EQ(communicator.failure()->what(), text);
}

void check_agreement_on_different_calls(Communicator& communicator) {
  agree_often(communicator);
  if (communicator.size() < 3) return;  // two members have no majority
  const int odd = communicator.size() - 1;
  const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
    if (communicator.rank() == odd)
      communicator.all_reduce(Tensor::zeros({8}, DType::kFloat32), ReduceOp::kSum);
    else
      CommunicatorBase::agree(communicator, call_on_gpus(8));
  });
  EXPECT_THAT(text, HasSubstr(fmt::format("member {} ", odd)));
  EXPECT_THAT(text, HasSubstr("all_reduce(float32[8], sum);"));
  EXPECT_THAT(text, HasSubstr("all_reduce(float32[8], sum, on GPUs)"));
  EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { communicator.barrier(); }), text);
}

void check_mismatch(Communicator& communicator) {
  if (communicator.size() < 3) return;  // two members have no majority
  const int odd = communicator.size() - 1;
  const std::int64_t elements = communicator.rank() == odd ? 24 : 25;
  const auto call = [&] {
    communicator.all_reduce(Tensor::zeros({elements}, DType::kFloat32), ReduceOp::kSum);
  };
  const std::string text = message_of(ErrorCode::kInvalidArgument, call);
  EXPECT_THAT(text, HasSubstr(fmt::format("member {} ", odd)));
  EXPECT_THAT(text, HasSubstr("float32[24]"));
  EXPECT_THAT(text, HasSubstr("float32[25]"));
  EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { communicator.barrier(); }), text);
}

void check_missing(Communicator& communicator) {
  const int missing = communicator.size() - 1;
  if (communicator.size() == 1 || communicator.rank() == missing) return;
  const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] {
    communicator.all_reduce(Tensor::zeros({8}, DType::kFloat32), ReduceOp::kSum);
  });
  EXPECT_THAT(text, names_missing(missing));
  EXPECT_THAT(text, HasSubstr("all_reduce #0"));
}

}  // namespace cohort::testing
