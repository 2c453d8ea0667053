#pragma once

#include "cluster/cluster.h"

namespace partita::cluster {

/// Names of the shipped device library, in its order.
std::vector<std::string> device_names();

/// `nodes` x `devices_per_node` devices of the library, with the links such machines usually have.
/// `name` may leave out what follows a dash where that stays unique ("H200"); capitals do not matter.
/// Throws InputError that names `where` for an unknown or ambiguous name and for more devices than a node
/// holds.
Cluster library_cluster(std::string_view name, int nodes, int devices_per_node, std::string_view where);

/// CLUSTER of the command line: `8xA100-80GB`, `4x8xH100-80GB` (nodes x devices), `L4` (one device) or a JSON
/// file.
Cluster read_cluster(const std::string& argument);

}  // namespace partita::cluster
