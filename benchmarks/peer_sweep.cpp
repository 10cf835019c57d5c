// peer_sweep: measures the collectives of the MPI that it is built with, by the harness and with
// the values of cohort-bench, but without Cohort. compare.sh builds it once for each MPI.
//
//   mpirun -n N peer_sweep COLLECTIVE --sizes MIN:MAX --dtype NAME --in-place yes|no
//                          --huge-pages on|off --label LABEL
//
// Prints a line for each size:
//   D,label,dtype,d,in place (0|1),ranks,bytes,call in us,fastest loop in us,whole iteration in us[,WRONG]
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <string>

#include <mpi.h>

#include "errors.h"
#include "harness.h"
#include "mpi_team.h"
#include "option_values.h"
#include "private_memory.h"
#include "timing.h"
#include "value_table.h"

namespace cohort::bench {
namespace {

struct Options {
  const Collective* collective = nullptr;
  SizeRange sizes{4, std::size_t{64} << 20};
  NumberFormat format;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool in_place = false;
  bool huge_pages = true;
  std::string label = "mpi";
};

/// MPI_DATATYPE_NULL where this MPI has no such type.
MPI_Datatype type_named(std::string_view name) {
  if (name == "float32") return MPI_FLOAT;
  if (name == "float64") return MPI_DOUBLE;
  if (name == "int32") return MPI_INT32_T;
#ifdef MPIX_C_FLOAT16
  if (name == "float16") return MPIX_C_FLOAT16;
#endif
#ifdef MPIX_BFLOAT16
  if (name == "bfloat16") return MPIX_BFLOAT16;
#endif
  return MPI_DATATYPE_NULL;
}

const Collective& collective_named(std::string_view command) {
  for (const Collective* collective : collectives()) {
    if (collective->command == command) return *collective;
  }
  throw UsageError("unknown collective '{}'", command);
}

Options parse(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) throw UsageError("give a collective, and a value for each option");
  Options options;
  options.collective = &collective_named(argv[1]);
  options.in_place = options.collective->in_place_by_default;
  std::string dtype = "float32";
  for (int i = 2; i < argc; i += 2) {
    const std::string option = argv[i];
    const std::string value = argv[i + 1];
    if (option == "--sizes") {
      options.sizes = parse_size_range(value);
    } else if (option == "--dtype") {
      dtype = value;
    } else if (option == "--in-place") {
      options.in_place = parse_choice(option, value, "yes", "no");
    } else if (option == "--huge-pages") {
      options.huge_pages = parse_choice(option, value, "on", "off");
    } else if (option == "--label") {
      options.label = value;
    } else {
      throw UsageError("unknown option {}", option);
    }
  }
  options.type = type_named(dtype);
  const std::optional<NumberFormat> format = find_number_format(dtype);
  if (!format || options.type == MPI_DATATYPE_NULL) throw UsageError("this MPI has no type for {}", dtype);
  options.format = *format;
  return options;
}

/// Launchers differ in what they bind a rank to. Where one leaves it several cores, it takes one.
void take_one_core(int rank) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  int skip = rank % std::max(CPU_COUNT(&allowed), 1);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    static_cast<void>(sched_setaffinity(0, sizeof(one), &one));
    return;
  }
}

Role role_for(const Options& options, std::size_t bytes, int rank, int ranks) {
  Role role{.member = rank, .members = ranks};
  if (!options.collective->moves_data()) return role;
  const auto blocks = static_cast<std::size_t>(options.collective->divided ? ranks : 1);
  role.elements = std::max<std::size_t>(bytes / options.format.bytes / blocks, 1) * blocks;
  return role;
}

Measurement measure_size(const Options& options, const Role& role, const MpiTeam& team,
                         const TickClock& clock) {
  const Layout layout = options.collective->layout(role);
  const std::size_t size = options.format.bytes;
  const bool input_within = layout.input < layout.output;
  const std::size_t offset = options.collective->mpi_result_first ? 0 : layout.offset * size;
  const PrivateMemory first(size * (options.in_place ? std::max(layout.input, layout.output) : layout.input),
                            options.huge_pages);
  const PrivateMemory second(options.in_place ? 0 : size * layout.output, options.huge_pages);
  const std::span<std::byte> input =
      first.bytes().subspan(options.in_place && input_within ? offset : 0, size * layout.input);
  const std::span<std::byte> output =
      options.in_place ? first.bytes().subspan(input_within ? 0 : offset, size * layout.output)
                       : second.bytes();

  MpiCall call{.group = team.handle(),
               .type = options.type,
               .op = MPI_SUM,
               .role = role,
               .in_place = options.in_place,
               .input = input.data(),
               .output = output.data()};
  call.divide_unevenly();
  const Contender contender{
      .input = input, .output = output, .call = [&] { options.collective->call_mpi(call); }};
  return measure(*options.collective, role, IntegerValues(options.format, role.members), {&contender, 1}, {},
                 team, clock)
      .front();
}

void print(const Options& options, const Role& role, const Measurement& measurement) {
  const double fastest = *std::min_element(measurement.call_us.begin(), measurement.call_us.end());
  std::printf("D,%s,%s,d,%d,%d,%zu,%.3f,%.3f,%.3f%s\n", options.label.c_str(),
              std::string(options.format.name).c_str(), options.in_place ? 1 : 0, role.members,
              role.elements * options.format.bytes, median(measurement.call_us), fastest,
              median(measurement.iteration_us), measurement.wrong.value_or(0) > 0 ? ",WRONG" : "");
  std::fflush(stdout);
}

void sweep(const Options& options) {
  const MpiTeam team;
  int rank = 0;
  int ranks = 0;
  check_mpi(MPI_Comm_rank(team.handle(), &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(team.handle(), &ranks), "MPI_Comm_size");
  take_one_core(rank);
  const TickClock clock;
  const std::vector<std::size_t> sizes =
      options.collective->moves_data() ? sizes_in(options.sizes) : std::vector<std::size_t>{0};
  for (const std::size_t bytes : sizes) {
    const Role role = role_for(options, bytes, rank, ranks);
    const Measurement measurement = measure_size(options, role, team, clock);
    if (rank == 0) print(options, role, measurement);
  }
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    cohort::bench::sweep(cohort::bench::parse(argc, argv));
  } catch (const cohort::bench::UsageError& error) {
    // Every rank has found the same mistake.
    std::cerr << "peer_sweep: " + std::string(error.what()) + "\n";
    MPI_Finalize();
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "peer_sweep: " + std::string(error.what()) + "\n";
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
