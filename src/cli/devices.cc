#include <memory>

#include "base/error.h"
#include "cli/verbs.h"
#include "cluster/library.h"

namespace partita::cli {
namespace {

/// TFLOP/s of a dtype, or a dash where the device has no rate for it.
std::string show_rate(const Device& device, const char* dtype) {
  auto found = device.flops.find(dtype);
  return found == device.flops.end() ? "-" : fmt::format("{:.4g}", found->second / 1e12);
}

std::string table_of(const std::vector<Cluster>& devices) {
  std::string text = fmt::format("{:<15} {:>10} {:>9} {:>8} {:>8} {:>9} {:>9}\n", "device", "memory", "GB/s",
                                 "bfloat16", "float32", "in node", "across");
  for (const Cluster& row : devices) {
    text += fmt::format("{:<15} {:>10} {:>9.4g} {:>8} {:>8} {:>9.4g} {:>9.4g}\n", row.device.name,
                        show_bytes(row.device.memory), row.device.memory_bandwidth / 1e9,
                        show_rate(row.device, "bfloat16"), show_rate(row.device, "float32"),
                        row.in_node.bandwidth / 1e9, row.across.bandwidth / 1e9);
  }
  return text +
         "Compute in TFLOP/s, dense peak; links in GB/s that large messages reach, one way, for one "
         "device.\n";
}

void list_devices(const Command& command) {
  std::vector<Cluster> devices;
  Json names = Json::array(), details = Json::array();
  for (const std::string& name : device_names()) {
    devices.push_back(library_cluster(name, 1, 1, "devices"));
    names.push_back(name);
    details.push_back(Json::parse(to_json(devices.back()))["device"]);
  }
  command.answer({{"names", names}, {"devices", details}}, table_of(devices));
}

void show_cluster(const Command& command, const std::string& argument) {
  Cluster cluster = read_cluster(argument);
  Json json = {{"names", {cluster.device.name}}, {"cluster", Json::parse(to_json(cluster))}};
  command.answer(json, to_text(cluster));
}

}  // namespace

void add_devices(CLI::App& app, Command& command) {
  auto cluster = std::make_shared<std::string>();
  app.add_option("--cluster", *cluster,
                 "show this cluster instead: 8xA100-80GB, 4x8xH100-80GB, 4xcpu or a JSON file");
  app.footer("Example: partita devices --cluster 2x8xA100-80GB");
  app.callback(
      [cluster, &command] { cluster->empty() ? list_devices(command) : show_cluster(command, *cluster); });
}

}  // namespace partita::cli
