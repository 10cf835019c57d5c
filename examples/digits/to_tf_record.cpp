// Writes the digits as TFRecord: each line of the CSV becomes a record of 65 bytes, which are its
// numbers.
//
//   digits_to_tf_record digits.csv digits.tfrecord
#include <cstdlib>
#include <exception>

#include <fmt/format.h>

#include <cohort/input/files/csv.h>
#include <cohort/input/files/tf_record.h>

int main(int argc, char** argv) {
  using namespace cohort;
  if (argc != 3) {
    fmt::print(stderr, "digits_to_tf_record: give the name of the CSV file and that of the TFRecord file\n");
    return 2;
  }
  try {
    TfRecordWriter writer(argv[2]);
    for (const Tensor& row : csv_dataset<Tensor>({argv[1]}, {.dtype = DType::kUInt8})) writer.write(row);
    writer.close();
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "digits_to_tf_record: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
