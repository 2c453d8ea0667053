#include "cli/pricing.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace partita::cli {

void add_calibration_flag(CLI::App& app, std::string& file) {
  app.add_option("--calibration", file,
                 "times that `partita calibrate` measured on this CPU, instead of the spec sheet");
}

Prices prices_of(const Cluster& cluster, const std::string& file) {
  if (file.empty()) return cluster;
  Calibration calibration = parse_calibration(read_file(file), file);
  if (!on_cpu(cluster))
    input_error(
        "--calibration {}: it was measured on a CPU ({}), but the devices are {}; take cpu, as in 4xcpu, "
        "or drop --calibration",
        file, calibration.machine, cluster.device.name);
  return {cluster, std::move(calibration)};
}

std::string show_tier(const Prices& prices) {
  double percent = 100 * prices.tier().expected_error;
  return prices.measured()
             ? fmt::format("Times are from samples of this machine; expect errors of {:.0f} %.\n", percent)
             : fmt::format("Times are from spec sheets; expect errors of {:.0f} % or more.\n", percent);
}

void write_tier(const Prices& prices, Json& json) {
  json["tier"] = prices.tier().name;
  json["expected_error"] = prices.tier().expected_error;
}

}  // namespace partita::cli
