// Every MPI function that Cohort uses, each wrapped once: an error becomes an exception
// with the call and MPI's own text. Nothing else calls MPI. The names are those of MPI
// without the prefix, in the form that its C++ users know.
//
// Not thread-safe by itself: `MpiLock` lets one thread at a time call MPI.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

namespace cohort::mpi {

// ---- the library ----

/// MPI_Init_thread; returns the thread level that was granted. @throws Unavailable
int init_thread(int* argc, char*** argv, int wanted_level);
[[nodiscard]] bool initialized();
[[nodiscard]] bool finalized();
[[nodiscard]] int thread_level();
[[nodiscard]] bool is_main_thread();
void finalize();
/// Ends all processes of `comm`; may fail to, and then returns.
void abort(MPI_Comm comm, int code) noexcept;
[[nodiscard]] std::string processor_name();
/// The first line of a text, with single blanks: what libraries say of themselves is often a page.
[[nodiscard]] std::string first_line(std::string_view text);
/// The value of one of the library's variables (MPI_T); nothing when it has none of that name, or not a
/// whole number.
[[nodiscard]] std::optional<std::size_t> control_variable(const char* name);

// ---- communicators and operators ----

[[nodiscard]] int comm_rank(MPI_Comm comm);
[[nodiscard]] int comm_size(MPI_Comm comm);
/// The largest tag that messages on `comm` may have; at least 32767.
[[nodiscard]] int largest_tag(MPI_Comm comm);

/// A communicator of Cohort's own: errors return, and it is freed unless MPI was finalised.
class Comm {
 public:
  Comm() = default;
  Comm(Comm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  Comm& operator=(Comm&& other) noexcept;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  ~Comm();

  /// Collective over `comm`.
  [[nodiscard]] static Comm duplicate(MPI_Comm comm);
  /// Collective over these ranks of `comm` alone; they are numbered in this order.
  [[nodiscard]] static Comm of_members(MPI_Comm comm, std::span<const int> ranks);
  /// Collective over `comm`: those of it that share memory with the caller, in the same order.
  [[nodiscard]] static Comm sharing_memory(MPI_Comm comm);

  [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }

  /// Never frees it: for communicators on which something may still be pending.
  void leak() noexcept { comm_ = MPI_COMM_NULL; }

 private:
  explicit Comm(MPI_Comm comm);
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// A reduction operator of Cohort's own; it is commutative.
class Op {
 public:
  explicit Op(MPI_User_function* function);
  Op(Op&& other) noexcept : op_(std::exchange(other.op_, MPI_OP_NULL)) {}
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  Op& operator=(Op&&) = delete;
  ~Op();

  [[nodiscard]] MPI_Op get() const noexcept { return op_; }

 private:
  MPI_Op op_ = MPI_OP_NULL;
};

// ---- messages ----

/// What a probe or a completed receive says about a message.
struct MessageInfo {
  int source = 0;
  int tag = 0;
  std::size_t bytes = 0;
};

[[nodiscard]] MPI_Request isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                                MPI_Comm comm);
[[nodiscard]] MPI_Request irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm);
void recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm);
/// The next message from anyone with this tag, if one is here.
[[nodiscard]] std::optional<MessageInfo> iprobe_any(int tag, MPI_Comm comm);
/// True once it has completed; it is then MPI_REQUEST_NULL.
[[nodiscard]] bool test(MPI_Request& request, MessageInfo* info = nullptr);

/// Requests that are tested together; those that have completed are MPI_REQUEST_NULL.
class RequestSet {
 public:
  explicit RequestSet(std::size_t size)
      : requests_(size, MPI_REQUEST_NULL), indices_(size), statuses_(size) {}

  [[nodiscard]] std::size_t size() const noexcept { return requests_.size(); }
  /// Makes room for one more, at the end.
  void grow();

  [[nodiscard]] MPI_Request& operator[](std::size_t index) { return requests_[index]; }
  [[nodiscard]] bool pending(std::size_t index) const { return requests_[index] != MPI_REQUEST_NULL; }

  /// The number of requests that have completed since the last call; see `index_of`, `truncated` and
  /// `message_info`.
  [[nodiscard]] std::size_t test_some();
  /// The same of one pending request: 0 or 1. MPI looks at the request again after it has looked at the
  /// network, and so finds it one call sooner than `test_some` does.
  [[nodiscard]] std::size_t test_one(std::size_t index);
  [[nodiscard]] std::size_t index_of(std::size_t completed) const {
    return static_cast<std::size_t>(indices_[completed]);
  }
  /// Whether the message was longer than the room for it.
  [[nodiscard]] bool truncated(std::size_t completed) const;
  [[nodiscard]] MessageInfo message_info(std::size_t completed) const;

 private:
  std::vector<MPI_Request> requests_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  bool some_failed_ = false;
};

/// Takes back a receive. False if a message has arrived for it, or has begun to: then it goes on.
[[nodiscard]] bool cancel(MPI_Request& request);

// ---- collectives ----

void all_gather(const void* input, void* output, int count, MPI_Datatype type, MPI_Comm comm);
[[nodiscard]] int all_reduce_min(int value, MPI_Comm comm);

[[nodiscard]] MPI_Request iall_reduce(const void* input, void* output, int count, MPI_Datatype type,
                                      MPI_Op op, MPI_Comm comm);
[[nodiscard]] MPI_Request ireduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op,
                                  int root, MPI_Comm comm);
[[nodiscard]] MPI_Request ibroadcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm);
[[nodiscard]] MPI_Request iall_gather(const void* input, void* output, int count, MPI_Datatype type,
                                      MPI_Comm comm);
/// `counts` and `offsets` must stay valid until the request has completed.
[[nodiscard]] MPI_Request iall_gather_uneven(const void* input, int count, void* output, const int* counts,
                                             const int* offsets, MPI_Datatype type, MPI_Comm comm);
[[nodiscard]] MPI_Request ireduce_scatter(const void* input, void* output, int count, MPI_Datatype type,
                                          MPI_Op op, MPI_Comm comm);
[[nodiscard]] MPI_Request iall_to_all(const void* input, void* output, int count, MPI_Datatype type,
                                      MPI_Comm comm);
[[nodiscard]] MPI_Request igather(const void* input, void* output, int count, MPI_Datatype type, int root,
                                  MPI_Comm comm);
[[nodiscard]] MPI_Request iscatter(const void* input, void* output, int count, MPI_Datatype type, int root,
                                   MPI_Comm comm);

}  // namespace cohort::mpi
