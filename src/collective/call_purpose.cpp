#include <cohort/collective/call_purpose.h>

#include <fmt/format.h>

namespace cohort {
namespace {

constexpr char kSeparator = '\x1f';

std::string_view take_field(std::string_view& line) {
  const std::size_t end = line.find(kSeparator);
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

/// A copy of a purpose that needs nothing of the caller's any more.
class SpokenPurpose final : public CallPurpose, public std::enable_shared_from_this<SpokenPurpose> {
 public:
  explicit SpokenPurpose(const CallPurpose& purpose)
      : CallPurpose(purpose.fingerprint(), purpose.caller()), words_(purpose.words()) {}

  [[nodiscard]] CallWords words() const override { return words_; }
  [[nodiscard]] std::shared_ptr<const CallPurpose> spoken() const override { return shared_from_this(); }

 protected:
  [[nodiscard]] PurposeWords own_words() const override { return words_.purpose; }

 private:
  CallWords words_;
};

/// Names come from the program; a line ends where ours do.
std::string one_line(std::string text) {
  for (char& character : text)
    if (static_cast<unsigned char>(character) < ' ') character = ' ';
  return text;
}

}  // namespace

std::shared_ptr<const CallPurpose> CallPurpose::spoken() const {
  if (spoken_ == nullptr) spoken_ = std::make_shared<const SpokenPurpose>(*this);
  return spoken_;
}

CallWords CallPurpose::words() const {
  CallWords words{caller_, caller_ == Caller::kReplica ? to_string(device_) : "", own_words()};
  if (outer_ == nullptr) return words;
  CallWords outer = outer_->words();
  std::string& details = outer.purpose.details;
  for (const std::string& inner : {words.purpose.action, words.purpose.details})
    if (!inner.empty()) details += details.empty() ? inner : ", " + inner;
  return outer;
}

std::string shortened(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  text.resize(limit - 3);
  return text + "...";
}

std::string to_line(const CallWords& words) {
  if (words.purpose.action.empty()) return {};
  return fmt::format("{}{}{}{}{}{}{}", static_cast<int>(words.caller), kSeparator, words.device, kSeparator,
                     one_line(shortened(words.purpose.action)), kSeparator,
                     one_line(shortened(words.purpose.details)));
}

CallWords from_line(std::string_view line) {
  if (line.empty()) return {};
  CallWords words;
  const std::string_view caller = take_field(line);
  if (caller == "1") words.caller = Caller::kReplica;
  if (caller == "2") words.caller = Caller::kWorker;
  words.device = take_field(line);
  words.purpose.action = take_field(line);
  words.purpose.details = take_field(line);
  return words;
}

}  // namespace cohort
