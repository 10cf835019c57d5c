// json_value POINTER...: reads JSON from standard input and prints the value at each JSON
// pointer, one a line; arrays and objects as their number of entries. Fails when the input
// is not JSON or a value is not there.
#include <iostream>

#include <nlohmann/json.hpp>

int main(int argc, char** argv) {
  try {
    const auto document = nlohmann::json::parse(std::cin);
    for (int i = 1; i < argc; ++i) {
      const auto& value = document.at(nlohmann::json::json_pointer(argv[i]));
      if (value.is_structured()) {
        std::cout << value.size() << "\n";
      } else if (value.is_string()) {
        std::cout << value.get<std::string>() << "\n";
      } else {
        std::cout << value << "\n";
      }
    }
  } catch (const std::exception& error) {
    std::cerr << "json_value: " << error.what() << "\n";
    return 1;
  }
}
