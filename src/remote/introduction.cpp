#include "introduction.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

namespace cohort::remote {
namespace {

template <class Integer>
Integer integer(const nlohmann::json& json, const char* name) {
  const nlohmann::json& value = json.at(name);
  if (!value.is_number_integer()) throw InvalidArgument("'{}' of a task's introduction is no number", name);
  return value.get<Integer>();
}

}  // namespace

std::string to_text(const Introduction& introduction) {
  return nlohmann::json{{"type", introduction.task.type},
                        {"id", introduction.task.id},
                        {"wanted_type", introduction.wanted.type},
                        {"wanted_id", introduction.wanted.id},
                        {"host", introduction.host},
                        {"incarnation", introduction.incarnation},
                        {"pid", introduction.pid},
                        {"heartbeat_ms", introduction.heartbeat.count()},
                        {"offers_descriptor", introduction.offers_descriptor},
                        {"nonce_address", introduction.nonce_address},
                        {"nonce", introduction.nonce}}  // A host may have any name.
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Introduction parse_introduction(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    Introduction introduction;
    json.at("type").get_to(introduction.task.type);
    introduction.task.id = integer<int>(json, "id");
    json.at("wanted_type").get_to(introduction.wanted.type);
    introduction.wanted.id = integer<int>(json, "wanted_id");
    json.at("host").get_to(introduction.host);
    introduction.incarnation = integer<std::uint64_t>(json, "incarnation");
    introduction.pid = integer<std::int64_t>(json, "pid");
    introduction.heartbeat = std::chrono::milliseconds(integer<std::int32_t>(json, "heartbeat_ms"));
    json.at("offers_descriptor").get_to(introduction.offers_descriptor);
    introduction.nonce_address = integer<std::uint64_t>(json, "nonce_address");
    introduction.nonce = integer<std::uint64_t>(json, "nonce");
    return introduction;
  } catch (const nlohmann::json::exception& e) {
    throw InvalidArgument("a task introduces itself by what is no introduction: {}", e.what());
  }
}

std::string name_of(const ClusterTask& task) { return fmt::format("{} {}", task.type, task.id); }

}  // namespace cohort::remote
