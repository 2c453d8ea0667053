#pragma once

// One namespace per folder of src/. A folder sees the names of the folders that layers.txt lets it include;
// tests/unit/layers_test.py compares the two.

namespace partita {
namespace base {}
namespace model {
using namespace base;
}  // namespace model
namespace cluster {
using namespace base;
}  // namespace cluster
namespace layout {
using namespace model;
}  // namespace layout
namespace reshard {
using namespace layout;
using namespace cluster;
}  // namespace reshard
namespace schedule {
using namespace base;
}  // namespace schedule
namespace choose {
using namespace base;
}  // namespace choose
namespace cost {
using namespace model;
using namespace cluster;
}  // namespace cost
namespace profile {
using namespace cost;
}  // namespace profile
namespace plan {
using namespace layout;
using namespace schedule;
}  // namespace plan
namespace program {
using namespace layout;
}  // namespace program
namespace certify {
using namespace program;
}  // namespace certify
namespace lower {
using namespace plan;
using namespace program;
}  // namespace lower
namespace prove {
using namespace lower;
using namespace certify;
}  // namespace prove
namespace simulate {
using namespace program;
using namespace cost;
}  // namespace simulate
namespace estimate {
using namespace lower;
using namespace certify;
using namespace simulate;
using namespace choose;
}  // namespace estimate
namespace search {
using namespace estimate;
using namespace profile;
}  // namespace search
namespace run {
using namespace prove;
}  // namespace run
namespace measure {
using namespace search;
using namespace run;
}  // namespace measure
namespace cli {
using namespace reshard;
using namespace measure;
}  // namespace cli
}  // namespace partita
