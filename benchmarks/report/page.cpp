#include "report/page.h"

#include "report/page_text.h"

namespace cohort::bench {
namespace {

constexpr std::string_view kBegin = R"(<script type="application/json" id="report">)";
constexpr std::string_view kEnd = "</script>";

/// JSON in which nothing can end the script that it stands in, or begin a comment there. These letters occur
/// in its texts alone, where an escape says the same.
std::string harmless(const Json& report) {
  std::string text;
  for (const char letter : report.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    switch (letter) {
      case '<': text += "\\u003c"; break;
      case '>': text += "\\u003e"; break;
      case '&': text += "\\u0026"; break;
      default: text += letter;
    }
  }
  return text;
}

}  // namespace

void write_page(std::ostream& stream, const Json& report) {
  stream << kPageBeforeReport << kBegin << harmless(report) << kEnd << kPageAfterReport;
}

std::string results_in_page(std::string_view page) {
  const std::size_t begin = page.find(kBegin);
  if (begin == std::string_view::npos) return {};
  page.remove_prefix(begin + kBegin.size());
  return std::string(page.substr(0, page.find(kEnd)));
}

}  // namespace cohort::bench
