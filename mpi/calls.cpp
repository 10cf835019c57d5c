#include "calls.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/mpi/session.h>

namespace cohort::mpi {
namespace {

std::string own_name() {
  int usable = 0;
  int finalized = 0;
  int rank = -1;
  MPI_Initialized(&usable);
  MPI_Finalized(&finalized);
  if (usable == 0 || finalized != 0 || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
    return "this process";
  return fmt::format("worker {}", rank);
}

[[noreturn]] void throw_failed(int status, const char* call) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(status, text.data(), &length) != MPI_SUCCESS) length = 0;
  int kind = MPI_ERR_OTHER;
  MPI_Error_class(status, &kind);
  const std::string message =
      fmt::format("{} failed on {}: {} (error {})", call, own_name(),
                  std::string_view(text.data(), static_cast<std::size_t>(length)), status);
  throw_error(kind == MPI_ERR_NO_MEM ? ErrorCode::kUnavailable : ErrorCode::kInternal, message);
}

void require_success(int status, const char* call) {
  if (status != MPI_SUCCESS) throw_failed(status, call);
}

}  // namespace

// The call as written is part of the message.
#define COHORT_MPI(call) require_success((call), #call)

int init_thread(int* argc, char*** argv, int wanted_level) {
  int granted = MPI_THREAD_SINGLE;
  COHORT_MPI(MPI_Init_thread(argc, argv, wanted_level, &granted));
  return granted;
}

bool initialized() {
  int flag = 0;
  COHORT_MPI(MPI_Initialized(&flag));
  return flag != 0;
}

bool finalized() {
  int flag = 0;
  COHORT_MPI(MPI_Finalized(&flag));
  return flag != 0;
}

int thread_level() {
  int level = MPI_THREAD_SINGLE;
  COHORT_MPI(MPI_Query_thread(&level));
  return level;
}

bool is_main_thread() {
  int flag = 0;
  COHORT_MPI(MPI_Is_thread_main(&flag));
  return flag != 0;
}

void finalize() { COHORT_MPI(MPI_Finalize()); }

void abort(MPI_Comm comm, int code) noexcept { MPI_Abort(comm, code); }

std::string processor_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  COHORT_MPI(MPI_Get_processor_name(name.data(), &length));
  return {name.data(), static_cast<std::size_t>(length)};
}

namespace {

/// Between MPI_T_init_thread and MPI_T_finalize, which count.
class ToolsInterface {
 public:
  ToolsInterface() {
    int granted = MPI_THREAD_SINGLE;
    // Open MPI says from then on that MPI itself has been given this level.
    usable_ = MPI_T_init_thread(thread_level(), &granted) == MPI_SUCCESS;
  }
  ~ToolsInterface() {
    if (usable_) MPI_T_finalize();
  }
  ToolsInterface(const ToolsInterface&) = delete;
  ToolsInterface& operator=(const ToolsInterface&) = delete;

  [[nodiscard]] bool usable() const noexcept { return usable_; }

 private:
  bool usable_ = false;
};

template <class Number>
std::optional<std::size_t> read_variable(MPI_T_cvar_handle handle) {
  Number value = 0;
  if (MPI_T_cvar_read(handle, &value) != MPI_SUCCESS || value < 0) return std::nullopt;
  return static_cast<std::size_t>(value);
}

std::optional<std::size_t> read_variable(MPI_T_cvar_handle handle, MPI_Datatype type) {
  if (type == MPI_INT || type == MPI_UNSIGNED) return read_variable<int>(handle);
  if (type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED_LONG_LONG || type == MPI_COUNT)
    return read_variable<long long>(handle);
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> control_variable(const char* name) {
  const ToolsInterface tools;
  int index = 0;
  if (!tools.usable() || MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return std::nullopt;
  int verbosity = 0;
  int binding = MPI_T_BIND_NO_OBJECT;
  int scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (MPI_T_cvar_get_info(index, nullptr, nullptr, &verbosity, &type, nullptr, nullptr, nullptr, &binding,
                          &scope) != MPI_SUCCESS) {
    return std::nullopt;
  }
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
  if (binding != MPI_T_BIND_NO_OBJECT ||
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) {
    return std::nullopt;
  }
  const std::optional<std::size_t> value = count == 1 ? read_variable(handle, type) : std::nullopt;
  MPI_T_cvar_handle_free(&handle);
  return value;
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  COHORT_MPI(MPI_Get_library_version(text.data(), &length));
  return first_line(text.data());  // some libraries count the final zero
}

std::string first_line(std::string_view text) {
  std::string line;
  for (const char each : text.substr(0, text.find_first_of("\r\n"))) {
    const bool is_blank = each == ' ' || each == '\t';
    if (!is_blank) line += each;
    if (is_blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

int comm_rank(MPI_Comm comm) {
  int rank = 0;
  COHORT_MPI(MPI_Comm_rank(comm, &rank));
  return rank;
}

int comm_size(MPI_Comm comm) {
  int size = 0;
  COHORT_MPI(MPI_Comm_size(comm, &size));
  return size;
}

int largest_tag(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  COHORT_MPI(MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&value), &found));
  constexpr int kPromised = 32767;
  return found != 0 ? *static_cast<const int*>(value) : kPromised;
}

Comm::Comm(MPI_Comm comm) : comm_(comm) { COHORT_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN)); }

Comm& Comm::operator=(Comm&& other) noexcept {
  std::swap(comm_, other.comm_);
  return *this;
}

Comm::~Comm() {
  int finalized = 0;
  if (comm_ == MPI_COMM_NULL || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
  MPI_Comm_free(&comm_);
}

Comm Comm::duplicate(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  COHORT_MPI(MPI_Comm_dup(comm, &copy));
  return Comm(copy);
}

Comm Comm::of_members(MPI_Comm comm, std::span<const int> ranks) {
  constexpr int kTag = 0;
  MPI_Group everyone = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm part = MPI_COMM_NULL;
  COHORT_MPI(MPI_Comm_group(comm, &everyone));
  COHORT_MPI(MPI_Group_incl(everyone, static_cast<int>(ranks.size()), ranks.data(), &group));
  COHORT_MPI(MPI_Comm_create_group(comm, group, kTag, &part));
  COHORT_MPI(MPI_Group_free(&group));
  COHORT_MPI(MPI_Group_free(&everyone));
  return Comm(part);
}

Comm Comm::sharing_memory(MPI_Comm comm) {
  MPI_Comm part = MPI_COMM_NULL;
  COHORT_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, comm_rank(comm), MPI_INFO_NULL, &part));
  return Comm(part);
}

Op::Op(MPI_User_function* function) {
  constexpr int kCommutative = 1;
  COHORT_MPI(MPI_Op_create(function, kCommutative, &op_));
}

Op::~Op() {
  int finalized = 0;
  if (op_ == MPI_OP_NULL || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
  MPI_Op_free(&op_);
}

MPI_Request isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Isend(data, count, type, to, tag, comm, &request));
  return request;
}

MPI_Request irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Irecv(data, count, type, from, tag, comm, &request));
  return request;
}

void recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm) {
  COHORT_MPI(MPI_Recv(data, count, type, from, tag, comm, MPI_STATUS_IGNORE));
}

namespace {
MessageInfo message_info_of(const MPI_Status& status) {
  int bytes = 0;
  COHORT_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
  return {status.MPI_SOURCE, status.MPI_TAG, static_cast<std::size_t>(std::max(bytes, 0))};
}
}  // namespace

std::optional<MessageInfo> iprobe_any(int tag, MPI_Comm comm) {
  int found = 0;
  MPI_Status status;
  COHORT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &found, &status));
  if (found == 0) return std::nullopt;
  return message_info_of(status);
}

bool test(MPI_Request& request, MessageInfo* info) {
  int completed = 0;
  MPI_Status status;
  COHORT_MPI(MPI_Test(&request, &completed, &status));
  if (completed != 0 && info != nullptr) *info = message_info_of(status);
  return completed != 0;
}

void RequestSet::grow() {
  requests_.push_back(MPI_REQUEST_NULL);
  indices_.emplace_back();
  statuses_.emplace_back();
}

std::size_t RequestSet::test_some() {
  int completed = 0;
  const int status = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &completed,
                                  indices_.data(), statuses_.data());
  some_failed_ = status == MPI_ERR_IN_STATUS;
  if (!some_failed_) require_success(status, "MPI_Testsome");
  const std::size_t count = completed == MPI_UNDEFINED ? 0 : static_cast<std::size_t>(completed);
  for (std::size_t i = 0; some_failed_ && i < count; ++i) {
    if (!truncated(i)) require_success(statuses_[i].MPI_ERROR, "MPI_Testsome");
  }
  return count;
}

std::size_t RequestSet::test_one(std::size_t index) {
  int completed = 0;
  const int status = MPI_Test(&requests_[index], &completed, statuses_.data());
  indices_.front() = static_cast<int>(index);
  some_failed_ = status != MPI_SUCCESS;
  if (!some_failed_) return completed != 0 ? 1 : 0;
  statuses_.front().MPI_ERROR = status;
  if (!truncated(0)) require_success(status, "MPI_Test");
  return 1;
}

bool RequestSet::truncated(std::size_t completed) const {
  int kind = MPI_SUCCESS;
  if (some_failed_) COHORT_MPI(MPI_Error_class(statuses_[completed].MPI_ERROR, &kind));
  return kind == MPI_ERR_TRUNCATE;
}

MessageInfo RequestSet::message_info(std::size_t completed) const {
  return message_info_of(statuses_[completed]);
}

bool cancel(MPI_Request& request) {
  if (request == MPI_REQUEST_NULL) return false;  // a longer message than fits, which is never complete
  COHORT_MPI(MPI_Cancel(&request));
  // Not MPI_Wait: a message that has begun to arrive may take long, if its sender is stopped.
  int complete = 0;
  int cancelled = 0;
  MPI_Status status;
  COHORT_MPI(MPI_Request_get_status(request, &complete, &status));
  if (complete != 0) COHORT_MPI(MPI_Test_cancelled(&status, &cancelled));
  if (cancelled == 0) return false;
  COHORT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  return true;
}

void all_gather(const void* input, void* output, int count, MPI_Datatype type, MPI_Comm comm) {
  COHORT_MPI(MPI_Allgather(input, count, type, output, count, type, comm));
}

int all_reduce_min(int value, MPI_Comm comm) {
  int least = value;
  COHORT_MPI(MPI_Allreduce(&value, &least, 1, MPI_INT, MPI_MIN, comm));
  return least;
}

MPI_Request iall_reduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Iallreduce(input, output, count, type, op, comm, &request));
  return request;
}

MPI_Request ireduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op, int root,
                    MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Ireduce(input, output, count, type, op, root, comm, &request));
  return request;
}

MPI_Request ibroadcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Ibcast(data, count, type, root, comm, &request));
  return request;
}

MPI_Request iall_gather(const void* input, void* output, int count, MPI_Datatype type, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Iallgather(input, count, type, output, count, type, comm, &request));
  return request;
}

MPI_Request iall_gather_uneven(const void* input, int count, void* output, const int* counts,
                               const int* offsets, MPI_Datatype type, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Iallgatherv(input, count, type, output, counts, offsets, type, comm, &request));
  return request;
}

MPI_Request ireduce_scatter(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op,
                            MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Ireduce_scatter_block(input, output, count, type, op, comm, &request));
  return request;
}

MPI_Request iall_to_all(const void* input, void* output, int count, MPI_Datatype type, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Ialltoall(input, count, type, output, count, type, comm, &request));
  return request;
}

MPI_Request igather(const void* input, void* output, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Igather(input, count, type, output, count, type, root, comm, &request));
  return request;
}

MPI_Request iscatter(const void* input, void* output, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  COHORT_MPI(MPI_Iscatter(input, count, type, output, count, type, root, comm, &request));
  return request;
}

#undef COHORT_MPI

}  // namespace cohort::mpi
