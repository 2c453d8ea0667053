# find_package(Partita) gives Partita::base, Partita::model, ... one target per folder of src/ that needs no torch.
include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json 3.11)
find_dependency(fmt)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/PartitaTargets.cmake)
